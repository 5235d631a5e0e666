"""Read the log directories below the sources, as a broker's start finds them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafka_segments.errors import (
    CorruptTextError,
    FileChangedError,
    SourceError,
    UnreadableObjectError,
)
from kafka_segments.files.folders.foreign_names import foreign_files_below
from kafka_segments.files.folders.listing_rows import MOST_LEVELS, leads_nowhere
from kafka_segments.files.folders.log_dir_folder import (
    NotedOffsets,
    is_log_dir,
    list_log_dir,
    noted_offsets,
)
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node.last_end import read_last_end
from kafka_segments.files.segments.segment_ends import read_segment_end
from kafka_segments.files.storage.files import Place, first_line, place, read_whole
from kafka_segments.files.storage.links import links_into
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.stores import REQUESTS_AT_ONCE, store_of
from kafka_segments.files.storage.threads import map_in_threads
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.broker_rules.start.log_start import FoundLog
from kafka_segments.kafka.index.segment.transaction_index import ends_below
from kafka_segments.kafka.text.checkpoints import BOOTSTRAP
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    METADATA_TOPIC,
    OF_LOG,
    SWAP_SUFFIX,
    TXN_INDEX_SUFFIX,
    PartitionFolder,
    file_name,
    is_of_partition,
    is_of_segment,
    parse_partition_folder,
    parse_segment_name,
)

_SWAPPED_LOG = LOG_SUFFIX + SWAP_SUFFIX
_MOST_INDEX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FoundLogDir:
    """A log directory: whose it is, how its broker stopped, its logs in the order of the load.

    ``problems``: what could not be read, or keeps the broker from starting.
    """

    uri: str
    cluster: str
    broker_id: int
    is_clean: bool
    logs: tuple[FoundLog, ...]
    problems: tuple[str, ...] = ()
    offsets: NotedOffsets = field(default_factory=dict, repr=False)
    entries: tuple[FileEntry, ...] = field(default=(), repr=False)


def find_log_dirs(
    sources: Iterable[str],
    *,
    cluster: str | None = None,
    broker_id: int | None = None,
    follow_links: bool = False,
) -> list[FoundLogDir]:
    """Read the log directories below sources, as ``absolute_uri`` gives them.

    A source that is one partition's folder counts as a log directory with this log alone. Its
    broker's checkpoints are looked for in the folder above.

    Raises:
        SourceError: a source has no log directory below, or cannot be listed.
    """
    found: dict[str, FoundLogDir] = {}
    named = tuple(sources)
    follow_into = links_into(named, follow=follow_links)
    links: list[tuple[str, FileEntry]] = []
    for source in named:
        here = list(_below(source, links, follow_into=follow_into))
        if not here:
            told = [f"{path} is {entry.oddity}" for path, entry in links]
            nothing = "no log directory: no <topic>-<partition> folder lies there"
            told += filter(None, [foreign_files_below(source)])
            raise SourceError(source, "; ".join((nothing, *told)))
        for log_dir in here:
            place_of = _real(log_dir.uri)
            found[place_of] = _together(found.get(place_of, log_dir), log_dir)
    dirs = _without_disks_of_links(list(found.values()))
    unread = _unread_links(links, dirs)
    return [_named(log_dir, cluster, broker_id) for log_dir in (*dirs, *unread)]


def logs_gone(named: int) -> str:
    """Return in words that a log directory has no log, though its checkpoints name some."""
    return (
        f"not known: no log lies there, and its checkpoints name {named}: is its disk mounted, and"
        " the copy whole?"
    )


def _together(one: FoundLogDir, same: FoundLogDir) -> FoundLogDir:
    """Return what two sources hold of a log directory, as where each is a partition's folder."""
    names = {entry.name for entry in one.entries}
    folders = {log.folder for log in one.logs}
    return replace(
        one,
        logs=(*one.logs, *(log for log in same.logs if log.folder not in folders)),
        problems=tuple(dict.fromkeys((*one.problems, *same.problems))),
        entries=(*one.entries, *(entry for entry in same.entries if entry.name not in names)),
    )


def _real(uri: str) -> str:
    """Return where a log directory lies; two links can lead to one."""
    return os.path.realpath(uri) if store_of(uri).is_local else uri


def _without_disks_of_links(dirs: list[FoundLogDir]) -> list[FoundLogDir]:
    """Leave out folders that only hold logs to which links in log directories lead."""
    targets = {entry.link for one in dirs for entry in one.entries if entry.link is not None}
    if not targets:
        return dirs
    return [one for one in dirs if not _holds_only(one, targets)]


def _holds_only(one: FoundLogDir, targets: set[str]) -> bool:
    files = [entry for entry in one.entries if not entry.is_folder]
    folders = [os.path.realpath(f"{one.uri}/{log.folder}") for log in one.logs]
    return not is_log_dir(files) and bool(folders) and targets.issuperset(folders)


def _unread_links(
    links: list[tuple[str, FileEntry]], dirs: list[FoundLogDir]
) -> Iterator[FoundLogDir]:
    """Yield log directories that lie behind links that were not followed, and were not read."""
    read = {_real(one.uri) for one in dirs}
    for path, entry in links:
        target = entry.link or ""
        if target in read or not Path(target).is_dir():
            continue
        try:
            if not _is_log_dir(target, entries_of(target, "")):
                continue
        except SourceError:
            pass  # it may be one
        yield FoundLogDir(path, "", -1, False, (), (f"{entry.oddity}: not read",))


def _named(log_dir: FoundLogDir, cluster: str | None, broker_id: int | None) -> FoundLogDir:
    return replace(
        log_dir,
        cluster=log_dir.cluster if cluster is None else cluster,
        broker_id=log_dir.broker_id if broker_id is None else broker_id,
    )


def _below(
    source: str, links: list[tuple[str, FileEntry]], *, follow_into: tuple[str, ...], level: int = 0
) -> Iterator[FoundLogDir]:
    """Yield the log directories below a folder; ``links`` gets the links that are not followed."""
    entries = entries_of(source, "", follow_into=follow_into)
    above, _, name = source.rpartition("/")
    here = parse_partition_folder(name)
    if here is not None and _has_log(entries) and _is_partition(entries):
        beside = [  # of its node no more is asked for
            entry
            for entry in entries_of(above, "")
            if not entry.is_folder and entry.name != BOOTSTRAP
        ]
        only = FileEntry(name, True, 0, 0)
        yield _log_dir(above, [*beside, only], follow_into=follow_into)
    elif _is_log_dir(source, entries):
        yield _log_dir(source, entries, follow_into=follow_into)
    elif level < MOST_LEVELS:
        links += [
            (join_uri(source, entry.name), entry)
            for entry in entries
            if entry.link is not None and entry.oddity is not None
        ]
        for entry in entries:
            if entry.is_folder and entry.oddity is None:
                child = join_uri(source, entry.name)
                try:
                    yield from _below(child, links, follow_into=follow_into, level=level + 1)
                except SourceError as error:  # gone by now, or not to be read
                    reason = f"cannot be listed: {error.reason}"
                    yield FoundLogDir(child, "", -1, False, (), (reason,))


def _is_log_dir(source: str, entries: list[FileEntry]) -> bool:
    """Tell a log directory from a folder of several log directories, named like ``node-1``."""
    if is_log_dir([entry for entry in entries if not entry.is_folder]):
        return True
    named = [entry.name for entry in entries if entry.is_folder and is_log_dir([entry])]
    return any(_is_log(source, name) for name in named)


def _is_log(source: str, name: str) -> bool:
    try:
        entries = entries_of(source, name)
    except SourceError:  # a running broker has removed it since, or it may not be read
        return False
    return _is_partition(entries)


def _has_log(entries: list[FileEntry]) -> bool:
    return any(entry.name.endswith(LOG_SUFFIX) for entry in entries)


def _is_partition(entries: list[FileEntry]) -> bool:
    has_folders = any(entry.is_folder for entry in entries)
    return is_of_partition(
        has_folders=has_folders, files=(entry.name for entry in entries if not entry.is_folder)
    )


def _log_dir(uri: str, entries: list[FileEntry], *, follow_into: tuple[str, ...]) -> FoundLogDir:
    row = list_log_dir(place(uri), uri, "", uri, entries)
    meta = row.meta or {}
    offsets = noted_offsets(row)
    named = [
        (entry.name, folder)
        for entry in _in_brokers_order(uri, entries)
        if (folder := parse_partition_folder(entry.name)) is not None
    ]

    def read(folder: tuple[str, PartitionFolder]) -> FoundLog | str:
        return _log(uri, *folder, offsets, follow_into=follow_into)

    read_logs = list(map_in_threads(read, named, threads=REQUESTS_AT_ONCE))
    gone = () if named or not offsets else (logs_gone(len(offsets)),)
    return FoundLogDir(
        uri,
        meta.get("cluster_id") or "",
        -1 if meta.get("node_id") is None else meta["node_id"],
        bool(meta.get("was_clean_shutdown")),
        tuple(log for log in read_logs if isinstance(log, FoundLog)),
        (*gone, *(log for log in read_logs if isinstance(log, str))),
        entries=tuple(entries),
    )


def _in_brokers_order(uri: str, entries: list[FileEntry]) -> list[FileEntry]:
    """Return the folders in the order in which a broker takes them: as the disk lists them."""
    folders = [entry for entry in entries if entry.is_folder]
    if not place(uri).store.is_local:
        return folders
    with os.scandir(uri) as names:
        turn = {name.name: number for number, name in enumerate(names)}
    return sorted(folders, key=lambda entry: turn.get(entry.name, len(turn)))


def _log(
    uri: str,
    name: str,
    folder: PartitionFolder,
    offsets: NotedOffsets,
    *,
    follow_into: tuple[str, ...],
) -> FoundLog | str:
    """Read a partition's folder; return a text that says why if it cannot be read."""
    try:
        entries = entries_of(uri, name, follow_into=follow_into)
    except SourceError as error:
        return f"{name}: {error.reason}"
    files = [entry for entry in entries if not entry.is_folder and entry.oddity is None]
    here = place(uri).child(name)
    noted = offsets.get((folder.topic, folder.partition), {})
    sizes = {file.name: file.size_bytes for file in files}
    try:
        swaps = {
            base: read_segment_end(here, base, sizes, suffix=SWAP_SUFFIX)
            for name in sizes
            if name.endswith(_SWAPPED_LOG) and (base := _base_offset(name)) >= 0
        }
        refused = frozenset(
            base
            for file in files
            if file.name.endswith(TXN_INDEX_SUFFIX)
            and (base := _base_offset(file.name)) >= 0
            and is_txn_index_refused(here.child(file.name), base)
        )
    except (OSError, CorruptTextError, FileChangedError, UnreadableObjectError) as error:
        return f"{name}: {first_line(error)}"
    return FoundLog(
        log_dir=uri,
        folder=name,
        topic=folder.topic,
        partition=folder.partition,
        state=folder.state,
        files=sizes,
        recovery_point=noted.get("recovery_point"),
        log_start_offset=noted.get("log_start_offset"),
        swap_end_offsets={
            base: base if end.next_offset is None else end.next_offset
            for base, end in swaps.items()
        },
        refused_txn_indexes=refused,
        swap_starts={base: end.first_offset or base for base, end in swaps.items()},
        bad_swaps={
            file_name(base, _SWAPPED_LOG): f"{end.problem} (at byte {end.position})"
            for base, end in swaps.items()
            if end.problem is not None
        },
        folders=tuple(entry.name for entry in entries if entry.is_folder),
        unread=tuple(_unread(entries)),
        end=None if folder.topic == METADATA_TOPIC else read_last_end(here, sizes),
    )


def _unread(entries: list[FileEntry]) -> Iterator[tuple[str, str]]:
    """Yield what is in the place of a log's files and is none; dangling links are no files."""
    for entry in entries:
        is_of_log = is_of_segment(entry.name) or entry.name in OF_LOG
        if entry.oddity and is_of_log and not leads_nowhere(entry):
            yield entry.name, entry.oddity


def _base_offset(name: str) -> int:
    found = parse_segment_name(name.partition(".")[0] + LOG_SUFFIX)
    return -1 if found is None else found


def is_txn_index_refused(file: Place, base_offset: int) -> bool:
    """Tell whether Kafka's check of a ``.txnindex`` fails.

    Raises:
        OSError: it cannot be read.
    """
    return ends_below(read_whole(file, most_bytes=_MOST_INDEX_BYTES), base_offset)
