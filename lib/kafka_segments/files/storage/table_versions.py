"""The version that each table of a build had when the last build ended, in a file of its own.

Where commits are taken away from the end of a table's log, as by a copy that was cut short, what is
left is a sound table with fewer rows. Only what stands beside the table tells of it.
"""

import json
from collections.abc import Callable, Iterable

from kafka_segments.files.storage.delta_log import last_version
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import place, read_if_there
from kafka_segments.files.storage.folder_lock import creation_lock
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri

_NAME = "_versions.json"
_MOST_BYTES = 64 * 1024


def noted_version(table: str) -> int | None:
    """Return the version that a table on a disk of this machine must have at least; None: any.

    It is to be asked before the table's log is listed: a build may commit meanwhile.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    version = _noted(warehouse).get(name) if store_of(warehouse).is_local else None
    return version if isinstance(version, int) else None


def note_versions(warehouse: str, names: Iterable[str]) -> None:
    """Note the versions that tables have now; those that are not there have none.

    Raises:
        OSError: the file cannot be written.
    """
    if not store_of(warehouse).is_local:
        return
    with creation_lock(warehouse, _NAME):  # versions are looked up within: none goes back
        there = ((name, last_version(join_uri(warehouse, name))) for name in names)
        _write(warehouse, {name: version for name, version in there if version is not None})


def forget_version(table: str) -> None:
    """Note nothing of a table any more.

    Raises:
        OSError: the file cannot be written.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    _keep(warehouse, lambda noted: noted != name)


def forget_missing(warehouse: str) -> None:
    """Note nothing any more of tables that are not there: they are made anew.

    Raises:
        OSError: the file cannot be written.
    """
    _keep(warehouse, lambda name: last_version(join_uri(warehouse, name)) is not None)


def _keep(warehouse: str, is_kept: Callable[[str], bool]) -> None:
    if not store_of(warehouse).is_local or not _noted(warehouse):
        return
    with creation_lock(warehouse, _NAME):
        noted = _noted(warehouse)
        kept = {name: version for name, version in noted.items() if is_kept(name)}
        if kept != noted:
            _write(warehouse, kept)


def _noted(warehouse: str) -> dict[str, object]:
    file = place(join_uri(warehouse, _NAME))
    try:
        noted = json.loads(read_if_there(file, most_bytes=_MOST_BYTES) or b"{}")
    except (
        OSError,
        ValueError,
        RecursionError,
    ):  # nothing is known then, as in a warehouse of an older release
        return {}
    return noted if isinstance(noted, dict) else {}


def _write(warehouse: str, noted: dict[str, object]) -> None:
    path = place(join_uri(warehouse, _NAME)).path
    write_durably(path, json.dumps(noted, sort_keys=True).encode())
