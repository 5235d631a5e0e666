"""The log directories that are of one node, and what lies beside them."""

from collections.abc import Iterable, Iterator, Sequence

from kafka_segments.errors import SourceError
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.kafka.broker_rules.start.facts import StartDir
from kafka_segments.kafka.broker_rules.start.files import Identity, check_meta


def group_nodes(dirs: Iterable[StartDir]) -> list[list[StartDir]]:
    """Put the directories of a node together.

    1. Those with the same cluster id and node id are of one node, if they lie in one folder or
       only one of them has the metadata log.
    2. A directory whose identity is broken, or that of no directory with a metadata log, belongs to
       the node whose metadata log lies in the same folder as it does: each node has one.
    """
    dirs = list(dirs)
    groups = [[one] for one in dirs if one.metadata_folder]
    joined: list[list[StartDir]] = []
    for group in groups:
        same = [other for other in joined if _is_same(other[0], group[0])]
        if same:
            same[0].extend(group)
        else:
            joined.append(group)
    for one in dirs:
        if not one.metadata_folder:
            _join(joined, one)
    return [sorted(group, key=lambda one: one.uri) for group in joined]


def _is_same(one: StartDir, other: StartDir) -> bool:
    return _identity(one) == _identity(other) and _parent(one) == _parent(other)


def _join(groups: list[list[StartDir]], one: StartDir) -> None:
    identity = _identity(one)
    alike = [group for group in groups if identity and _identity(group[0]) == identity]
    here = [group for group in groups if _parent(group[0]) == _parent(one)]
    near = [group for group in alike if group in here]
    with_metadata = [group for group in here if any(each.metadata_folder for each in group)]
    if near or alike:
        (near or alike)[0].append(one)
    elif len(with_metadata) == 1:
        with_metadata[0].append(one)
    elif identity is None and len(here) == 1 and _identity(here[0][0]) is not None:
        here[0].append(one)
    else:
        groups.append([one])


def _identity(one: StartDir) -> tuple[str | None, int] | None:
    found = check_meta(one.meta.value) if one.meta.value else None
    if not isinstance(found, Identity) or found.node_id is None:
        return None
    return found.cluster_id, found.node_id


def _parent(one: StartDir) -> str:
    return one.uri.rpartition("/")[0]


def empty_folders_beside(group: Sequence[StartDir], sources: Sequence[str]) -> tuple[str, ...]:
    """Return empty folders beside a node's log directories, which may be unformatted ones."""
    parent = _parent(group[0])
    if not any(parent == source or parent.startswith(f"{source}/") for source in sources):
        return ()
    taken = {one.uri for one in group}
    try:
        folders = [entry.name for entry in entries_of(parent, "") if entry.is_folder]
        return tuple(
            f"{parent}/{name}"
            for name in folders
            if f"{parent}/{name}" not in taken and _is_empty(parent, name)
        )
    except SourceError:
        return ()


def of_other_clusters(group: Sequence[StartDir], dirs: Sequence[StartDir]) -> Iterator[str]:
    """Yield the directories beside a node's own that have its id and another cluster's."""
    own = _identity(group[0])
    for one in dirs:
        other = _identity(one)
        if own is None or other is None or one in group or _parent(one) != _parent(group[0]):
            continue
        if other[1] == own[1] and None not in (own[0], other[0]):
            yield one.uri


def _is_empty(parent: str, name: str) -> bool:
    return all(entry.name == "lost+found" for entry in entries_of(parent, name))
