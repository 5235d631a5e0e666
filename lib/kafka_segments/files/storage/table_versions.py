"""What the log of each table was when it was last written, in a file beside the tables.

Where commits are taken away from the end of a table's log, as by a copy that was cut short, what is
left is a sound table with fewer rows. Where one ends behind any of its lines, it is a sound commit
that did less. Only what stands beside the table tells of both: its version, and the bytes of each
commit, none of which is ever changed.
"""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
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
    commit_bytes: Mapping[int, int] = MappingProxyType({})


def noted_log(table: str) -> NotedLog | None:
    """Return what is noted of the log of a table on a disk of this machine; None: nothing.

    It is to be asked before the table's log is listed: a build may commit meanwhile.

    Raises:
        ValueError: the notes are spoilt, or cannot be read; says in words what was found.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    noted = _noted(warehouse).get(name) if store_of(warehouse).is_local else None
    try:
        if noted is None or isinstance(noted, int):  # of 0.4.0
            return None if noted is None else NotedLog(noted)
        sizes = {int(version): int(size) for version, size in noted["bytes"].items()}
        return NotedLog(int(noted["version"]), sizes)
    except (TypeError, KeyError, AttributeError, ValueError):
        raise ValueError("is spoilt") from None


def note_versions(warehouse: str, names: Iterable[str]) -> None:
    """Note the logs that tables have now; of those that are not there nothing is noted.

    Raises:
        OSError: the file cannot be written.
    """
    if not store_of(warehouse).is_local:
        return
    with creation_lock(warehouse, NOTES):  # logs are listed within: no version goes back
        noted = _noted_or_nothing(warehouse)
        for name in names:
            entries = log_entries(join_uri(warehouse, name))
            version = last_version_among(entries)
            noted.pop(name, None)
            if version is not None:
                commits = commits_since_checkpoint(entries)
                sizes = {str(int(entry.name[:20])): entry.size_bytes for entry in commits}
                noted[name] = {"version": version, "bytes": sizes}
        _write(warehouse, noted)


def forget_version(table: str) -> None:
    """Note nothing of a table any more; where the notes are spoilt, of no table.

    Raises:
        OSError: the file cannot be written.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    if store_of(warehouse).is_local:
        with creation_lock(warehouse, NOTES):
            try:
                noted = _noted(warehouse)
            except ValueError:
                _write(warehouse, {})
            else:
                if noted.pop(name, None) is not None:
                    _write(warehouse, noted)


def forget_missing(warehouse: str) -> None:
    """Note nothing any more of tables that are not there: they are made anew.

    Raises:
        OSError: the file cannot be written.
    """
    if not store_of(warehouse).is_local or not _missing(warehouse):
        return
    with creation_lock(warehouse, NOTES):
        missing = _missing(warehouse)
        noted = _noted_or_nothing(warehouse)
        _write(warehouse, {name: log for name, log in noted.items() if name not in missing})


def _missing(warehouse: str) -> set[str]:
    """Return the tables that are noted and not there; where the notes are spoilt, none is known."""
    return {
        name
        for name in _noted_or_nothing(warehouse)
        if last_version(join_uri(warehouse, name)) is None
    }


def _noted(warehouse: str) -> dict[str, Any]:
    try:
        data = read_if_there(place(join_uri(warehouse, NOTES)), most_bytes=_MOST_BYTES)
    except OSError as error:
        raise ValueError(f"cannot be read: {error}") from None
    if data is None:  # as in a warehouse of an older release
        return {}
    try:
        noted = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("is spoilt") from None
    if not isinstance(noted, dict):
        raise ValueError("is spoilt")  # noqa: TRY004
    return noted


def _noted_or_nothing(warehouse: str) -> dict[str, Any]:
    """Return what is noted, to be written anew: what is spoilt is forgotten."""
    try:
        return _noted(warehouse)
    except ValueError:
        return {}


def _write(warehouse: str, noted: Mapping[str, object]) -> None:
    path = place(join_uri(warehouse, NOTES)).path
    write_durably(path, json.dumps(noted, sort_keys=True).encode())
