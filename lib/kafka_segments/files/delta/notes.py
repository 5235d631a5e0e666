"""What the log of each table was when it was last written, in a file beside the tables.

Where commits are taken away from the end of a table's log, as by a copy that was cut short, what is
left is a sound table with fewer rows. Where one ends behind any of its lines, or a flipped bit
makes its action an unknown one, it is a sound commit that did less. Only what stands beside the
table tells of these: its version, and the bytes and CRC-32 of each commit, none of which is ever
changed. A store looks after bits itself: the CRC-32 is noted of commits on local disks alone.

The notes have a CRC-32 of their own: a flipped bit in them would tell of a sound commit that it is
another one. It stands where a release that does not know it sees a table without commits.

Where the notes are lost, the last row of ``runs`` tells which versions the tables of a build had
(``last_build``).

A store has no locks: of two runs that write the notes at the same time the later one wins, and
what the other one had noted is lost. A version that is noted is then older than the log's: nothing
is refused for it.
"""

import json
import math
import time
import uuid
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kafka_segments.files.delta.last_build import versions_of_last_build
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import (
    Place,
    first_line,
    place,
    read_if_there,
    read_whole,
)
from kafka_segments.files.storage.folder_lock import creation_lock
from kafka_segments.files.storage.local_file import Kind
from kafka_segments.files.storage.publishing import publish
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri

NOTES = "_versions.json"
OF_SOURCES = (
    *("segments", "logs", "log_dirs", "offset_index", "time_index"),
    "unrecognized_files",
)
"""The tables that a build makes from its sources alone."""
_MOST_BYTES = 4 * 1024 * 1024
_OWN, _SUM = "_notes", "sum"
_KEPT_SECONDS = 60
_kept: dict[str, tuple[float, dict[str, "NotedLog"]]] = {}
"""When the notes of warehouses in stores were read, and what they said."""


class NotedLog(NamedTuple):
    """What is noted of a table's log.

    Attributes:
        version: the table has it at least.
        commit_bytes: the bytes of commits, by their versions.
        commit_crcs: the CRC-32 of these bytes, of those commits of which it is noted.
        is_signed: a release noted it that signs its commits.
    """

    version: int
    commit_bytes: Mapping[int, int]
    commit_crcs: Mapping[int, int] = MappingProxyType({})
    is_signed: bool = False


def noted_logs(warehouse: str, *, anew: bool = False) -> Mapping[str, NotedLog]:
    """Return what is noted of the logs of a warehouse's tables, by name.

    Where the notes are lost it is what the last build tells: the versions alone.

    It is to be asked before a table's log is listed: a build may commit meanwhile. A store is
    asked once a minute, or ``anew``: another run may have mended a table since.

    Raises:
        ValueError: the notes are spoilt, or cannot be read; says in words what was found.
        OSError: their store did not give them.
    """
    at, kept = _kept.get(warehouse, (-math.inf, {}))
    if not anew and time.monotonic() - at <= _KEPT_SECONDS:
        return kept
    noted = _noted(warehouse)
    if noted is None:
        built = versions_of_last_build(warehouse)
        noted = {name: NotedLog(version, {}, is_signed=True) for name, version in built.items()}
        _keep(warehouse, noted)
    return noted


def noted_log(table: str, *, anew: bool = False) -> NotedLog | None:
    """Return what ``noted_logs`` has of the log of a table; None: nothing. It raises the same."""
    warehouse, _, name = table.rstrip("/").rpartition("/")
    return noted_logs(warehouse, anew=anew).get(name)


def forget_version(table: str) -> None:
    """Note nothing of a table any more.

    Raises:
        OSError: the file cannot be written, or a store did not give it.
    """
    warehouse, _, name = table.rstrip("/").rpartition("/")
    with creation_lock(warehouse, NOTES):
        noted = read_notes(warehouse) or {}
        if noted.pop(name, None) is not None:
            write_notes(warehouse, noted)


def forget_spoilt(warehouse: str) -> None:
    """Note nothing of any table where the notes are spoilt: all tables are made whole.

    A folder in the place of the notes is kept beside them, as ``_spoilt_versions-…``.

    Raises:
        OSError: the file cannot be written, or a store did not give it.
    """
    if read_notes(warehouse) is None:
        with creation_lock(warehouse, NOTES):
            file = place(join_uri(warehouse, NOTES))
            if file.store.is_local and file.kind() is Kind.FOLDER:
                kept = place(join_uri(warehouse, f"_spoilt_versions-{uuid.uuid4().hex[:8]}"))
                file.filesystem.move(file.path, kept.path)
            write_notes(warehouse, {})


def _noted(warehouse: str) -> dict[str, NotedLog] | None:
    """Return what the notes say; None: there are none, lost, of an older release or not yet."""
    file = place(join_uri(warehouse, NOTES))
    try:
        data = _bytes_of(file)
    except OSError as error:
        if not file.store.is_local:  # it is to be asked again, and nothing is known to be spoilt
            raise OSError(f"{join_uri(warehouse, NOTES)}: {first_line(error)}") from None
        raise ValueError(f"cannot be read: {error}") from None
    if data is None:
        return None
    try:
        noted = json.loads(data)
        own = noted.pop(_OWN, {})
        logs = {name: _log_of(log) for name, log in noted.items()}
        is_as_written = own.get(_SUM) in (None, _sum_of(noted))
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError):
        raise ValueError("is spoilt") from None
    if not is_as_written:
        raise ValueError("is spoilt, by its own CRC-32")
    _keep(warehouse, logs)
    return logs


def _sum_of(noted: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(noted, sort_keys=True).encode())


def _keep(warehouse: str, noted: Mapping[str, NotedLog]) -> None:
    if not store_of(warehouse).is_local:
        _kept[warehouse] = time.monotonic(), dict(noted)


def _bytes_of(file: Place) -> bytes | None:
    """Return the bytes of the notes, None without any; a store is not asked for them beforehand."""
    if file.store.is_local:
        return read_if_there(file, most_bytes=_MOST_BYTES)
    try:
        return read_whole(file, most_bytes=_MOST_BYTES)
    except FileNotFoundError:
        return None


def _log_of(noted: Any) -> NotedLog:
    sizes = {int(version): int(size) for version, size in noted["bytes"].items()}
    crcs = {int(version): int(crc) for version, crc in noted.get("crc32", {}).items()}
    return NotedLog(int(noted["version"]), sizes, crcs, noted.get("signed") is True)


def read_notes(warehouse: str) -> dict[str, NotedLog] | None:
    """Return what the notes say of the logs of a warehouse's tables, by name; None: spoilt.

    What ``runs`` tells where they are lost is none of it: a build that ends has its row there, with
    versions that somebody may have made meanwhile.

    Raises:
        OSError: a store did not give the notes.
    """
    try:
        return _noted(warehouse) or {}
    except ValueError:
        return None


def write_notes(warehouse: str, noted: Mapping[str, NotedLog]) -> None:
    """Write what is noted of the logs of a warehouse's tables; ``creation_lock`` is held.

    Raises:
        OSError: the file cannot be written.
    """
    file = place(join_uri(warehouse, NOTES))
    logs = {
        name: {
            "version": log.version,
            "bytes": log.commit_bytes,
            "crc32": dict(log.commit_crcs),
            "signed": log.is_signed,
        }
        for name, log in noted.items()
    }
    own = {"version": 0, "bytes": {}, _SUM: _sum_of(json.loads(json.dumps(logs)))}
    data = json.dumps({**logs, _OWN: own}, sort_keys=True).encode()
    if file.store.is_local:
        write_durably(file.path, data)
    else:
        publish(file, data)
    _keep(warehouse, noted)
