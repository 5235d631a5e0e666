"""Note what the logs of tables are, and mark what somebody else took back of them since."""

from collections.abc import Iterable, Iterator

from kafka_segments.files.delta.log import TableLog, list_log, version_of
from kafka_segments.files.delta.notes import (
    NOTES,
    OF_SOURCES,
    NotedLog,
    noted_logs,
    read_notes,
    write_notes,
)
from kafka_segments.files.delta.taken_back import taken_back_since
from kafka_segments.files.storage.folder_lock import creation_lock
from kafka_segments.files.storage.read_again import mark_read_again
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri


def mark_taken_back(warehouse: str, names: Iterable[str]) -> dict[str, str]:
    """Have all segments read again where somebody left other rows in a table.

    Return the marks that are new, and why each is there, in words.

    Commits since the version that is noted are looked at, all where none is: a RESTORE of the
    entries, say, leaves a table of segments that says of all of them that they are read.

    Raises:
        OSError: a mark cannot be written, or a store did not give the notes.
        SourceError: a log cannot be listed.
    """
    noted = read_notes(warehouse) or {}
    found: dict[str, str] = {}
    for name in names:
        found |= _marked(warehouse, name, list_log(join_uri(warehouse, name)), noted.get(name))
    return found


def taken_back(warehouse: str, names: Iterable[str]) -> list[str]:
    """Return in words what somebody took back of tables since they were noted, none of it marked.

    Of tables of which nothing is noted it is not asked: their next build does.

    Raises:
        ValueError, OSError: see ``noted_logs``.
        SourceError: a log cannot be listed.
    """
    noted = noted_logs(warehouse)
    return [
        why
        for name in names
        if name in noted
        for why, _ in _taken_back(name, list_log(join_uri(warehouse, name)), noted[name])
    ]


def note_versions(warehouse: str, names: Iterable[str]) -> None:
    """Note the logs that tables have now; of those that are not there nothing is noted.

    What somebody altered of a build's tables meanwhile is marked as by ``mark_taken_back``.

    Notes that are spoilt stay: what they had said of other tables is not known.

    Raises:
        OSError: the file cannot be written, or a store did not give it.
    """
    with creation_lock(warehouse, NOTES):  # logs are listed within: no version goes back
        noted = read_notes(warehouse)
        if noted is None:
            return
        for name in names:
            log = list_log(join_uri(warehouse, name))
            before = noted.pop(name, None)
            if log.version is not None:
                if name in OF_SOURCES:
                    _marked(warehouse, name, log, before)
                sizes = {version_of(commit): commit.size_bytes for commit in log.commits}
                noted[name] = NotedLog(log.version, sizes, _crcs_of(log), is_signed=True)
        write_notes(warehouse, noted)


def _taken_back(name: str, log: TableLog, noted: NotedLog | None) -> Iterator[tuple[str, str]]:
    """Yield what somebody took back of a table, in words, and a name of each such commit."""
    since, is_signed = (-1, False) if noted is None else (noted.version, noted.is_signed)
    for commit in taken_back_since(log, since, is_signed=is_signed):
        yield f"table {name}: {commit.text}", f"{name}-{commit.version}-{commit.at_ms}"


def _marked(warehouse: str, name: str, log: TableLog, noted: NotedLog | None) -> dict[str, str]:
    found = {}
    for why, of in _taken_back(name, log, noted):
        mark = mark_read_again(warehouse, why, of=of)
        if mark is not None:
            found[mark] = why
    return found


def _crcs_of(log: TableLog) -> dict[int, int]:
    if not store_of(log.table).is_local:
        return {}
    crcs = ((version_of(commit), log.crc(commit)) for commit in log.commits)
    return {version: crc for version, crc in crcs if crc is not None}
