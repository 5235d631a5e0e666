"""What the log of each table was when it was last written, in a file beside the tables.

Where commits are taken away from the end of a table's log, as by a copy that was cut short, what is
left is a sound table with fewer rows. Where one ends behind any of its lines, it is a sound commit
that did less. Only what stands beside the table tells of both: its version, and the bytes of each
commit, none of which is ever changed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka_segments.files.storage.delta_log import (
    commits_since_checkpoint,
    last_version,
    last_version_among,
    log_entries,
)
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import place, read_if_there
from kafka_segments.files.storage.folder_lock import creation_lock
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri

NOTES = "_versions.json"
_MOST_BYTES = 4 * 1024 * 1024


class NotedLog(NamedTuple):
    """What is noted of a table's log.

    Attributes:
        version: the table has it at least.
        commit_bytes: the bytes of commits, by their versions.
    """

    version: int
    commit_bytes: Mapping[int, int]


def noted_log(table: str) -> NotedLog | None:
    """Return what is noted of the log of a table on a disk of this machine; None: nothing.

    It is to be asked before the table's log is listed: a build may commit meanwhile.

    Raises:
        ValueError: the notes are spoilt, or cannot be read; says in words what was found.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    return _noted(warehouse).get(name) if store_of(warehouse).is_local else None


def note_versions(warehouse: str, names: Iterable[str]) -> None:
    """Note the logs that tables have now; of those that are not there nothing is noted.

    Notes that are spoilt stay: what they had said of other tables is not known.

    Raises:
        OSError: the file cannot be written.
    """
    if not store_of(warehouse).is_local:
        return
    with creation_lock(warehouse, NOTES):  # logs are listed within: no version goes back
        noted = _noted_or_none(warehouse)
        if noted is None:
            return
        for name in names:
            entries = log_entries(join_uri(warehouse, name))
            version = last_version_among(entries)
            noted.pop(name, None)
            if version is not None:
                commits = commits_since_checkpoint(entries)
                sizes = {int(entry.name[:20]): entry.size_bytes for entry in commits}
                noted[name] = NotedLog(version, sizes)
        _write(warehouse, noted)


def forget_version(table: str) -> None:
    """Note nothing of a table any more.

    Raises:
        OSError: the file cannot be written.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    if store_of(warehouse).is_local:
        with creation_lock(warehouse, NOTES):
            noted = _noted_or_none(warehouse) or {}
            if noted.pop(name, None) is not None:
                _write(warehouse, noted)


def forget_spoilt(warehouse: str) -> None:
    """Note nothing of any table where the notes are spoilt: all tables are made whole.

    Raises:
        OSError: the file cannot be written.
    """
    if store_of(warehouse).is_local and _noted_or_none(warehouse) is None:
        with creation_lock(warehouse, NOTES):
            _write(warehouse, {})


def forget_missing(warehouse: str) -> None:
    """Note nothing any more of tables that are not there: they are made anew.

    Raises:
        OSError: the file cannot be written.
    """
    if not store_of(warehouse).is_local or not _missing(warehouse):
        return
    with creation_lock(warehouse, NOTES):
        missing = _missing(warehouse)
        noted = _noted_or_none(warehouse) or {}
        _write(warehouse, {name: log for name, log in noted.items() if name not in missing})


def _missing(warehouse: str) -> set[str]:
    """Return the tables that are noted and not there; where the notes are spoilt, none is known."""
    return {
        name
        for name in _noted_or_none(warehouse) or {}
        if last_version(join_uri(warehouse, name)) is None
    }


def _noted(warehouse: str) -> dict[str, NotedLog]:
    try:
        data = read_if_there(place(join_uri(warehouse, NOTES)), most_bytes=_MOST_BYTES)
    except OSError as error:
        raise ValueError(f"cannot be read: {error}") from None
    if data is None:  # as in a warehouse of an older release
        return {}
    try:
        return {name: _log_of(noted) for name, noted in json.loads(data).items()}
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
        raise ValueError("is spoilt") from None


def _log_of(noted: Any) -> NotedLog:
    sizes = {int(version): int(size) for version, size in noted["bytes"].items()}
    return NotedLog(int(noted["version"]), sizes)


def _noted_or_none(warehouse: str) -> dict[str, NotedLog] | None:
    """Return what is noted; None: the notes are spoilt."""
    try:
        return _noted(warehouse)
    except ValueError:
        return None


def _write(warehouse: str, noted: Mapping[str, NotedLog]) -> None:
    path = place(join_uri(warehouse, NOTES)).path
    logs = {
        name: {"version": log.version, "bytes": log.commit_bytes} for name, log in noted.items()
    }
    write_durably(path, json.dumps(logs, sort_keys=True).encode())
