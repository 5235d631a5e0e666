"""Check that a log is as its kit saw it, or as an unfinished change has left it.

A change begins with a note of the files that were there first. No broker may have started since
then: it would have preallocated the index files of the last segment, which shows.
"""

from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.recovery.kit_manifest import Cut, LogKit, NewFile, SeenSegment
from kafka_segments.storage import backups
from kafka_segments.storage.backups import is_there
from kafka_segments.storage.durable_files import sha256_of
from kafka_segments.wire.moments import mtime_text
from kafka_segments.wire.names import LOG_SUFFIX, file_name, parse_segment_name

NOTE = "note.json"


class LogFolders(NamedTuple):
    """The folders of a log: its own, that of the kit's new files, and that of its first files."""

    log: Path
    kit: Path
    kept: Path

    @property
    def note(self) -> Path:
        """Return where the note lies; if it exists, the log may have been changed."""
        return self.kept / NOTE


class ChangeNote(NamedTuple):
    """Which files were there before the change; ``goes_back``: a rollback was begun.

    Files that already were as the kit has them are not kept.
    """

    found: tuple[str, ...]
    goes_back: bool = False


def read_note(folders: LogFolders) -> ChangeNote | None:
    """Return the note of a change; None: no change was begun."""
    return backups.read_manifest(folders.note, _parsed_note) if folders.note.exists() else None


def _parsed_note(note: Any) -> ChangeNote:
    return ChangeNote(tuple(map(str, note["found"])), bool(note["goes_back"]))


def write_note(folders: LogFolders, note: ChangeNote) -> None:
    """Write the note of a change, and sync it to the disk."""
    backups.write_manifest(folders.note, {"folder": str(folders.log), **note._asdict()})


def check_log(folders: LogFolders, log: LogKit, *, by_digest: bool) -> None:
    """Check that a log is as its kit saw it, or as an earlier run of ours left it.

    ``by_digest``: compare the segments' bytes; else their size and mtime.

    Raises:
        SetAsideError: a segment has changed, has come or is gone; a file of the kit is spoilt; or
            a rollback was begun.
    """
    note = read_note(folders)
    if note is not None and note.goes_back:
        raise SetAsideError(folders.log, "a rollback was begun: run `recovery rollback` to its end")
    check_segments(folders, log, is_begun=note is not None)
    for segment in log.segments if by_digest else ():
        path = folders.log / file_name(segment.base_offset, LOG_SUFFIX)
        if path.stat().st_size == segment.size_bytes and sha256_of(path) != segment.sha256:
            raise SetAsideError(
                path, "its sha256 is not the one that the kit saw: make another kit"
            )
    for file in log.files:
        if not is_as_said(folders.kit / file.name, file):
            raise SetAsideError(folders.kit / file.name, "not as the kit says: make another kit")
    if note is not None:
        check_files(folders, log, note)


def check_segments(folders: LogFolders, log: LogKit, *, is_begun: bool) -> None:
    """Check that the segments of a log are those that its kit saw, and no others have come.

    ``is_begun``: the torn tail may be cut off already, and the empty segment may be there.

    Raises:
        SetAsideError: they are not.
    """
    seen = {segment.base_offset: segment for segment in log.segments}
    for segment in log.segments:
        path = folders.log / file_name(segment.base_offset, LOG_SUFFIX)
        is_cut = log.cut is not None and log.cut.base_offset == segment.base_offset
        _check_segment(path, segment, log.cut if is_begun and is_cut else None)
    added = {file.name for file in log.files}
    for entry in folders.log.iterdir():
        base = parse_segment_name(entry.name)
        if base is None or base < min(seen) or base in seen:
            continue
        if not is_begun or entry.name not in added or entry.stat().st_size:
            raise SetAsideError(
                entry, "this segment has come since the kit was made: make another kit"
            )


def _check_segment(path: Path, segment: SeenSegment, cut: Cut | None) -> None:
    """Check a segment; with ``cut``, its tail may be cut off by now, and its mtime another."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise SetAsideError(path, "gone since the kit was made: make another kit") from None
    if cut is not None and cut.position <= stat.st_size <= segment.size_bytes:
        return
    if (stat.st_size, stat.st_mtime_ns) != (segment.size_bytes, segment.mtime_ns):
        raise SetAsideError(
            path,
            f"it has {stat.st_size} bytes and mtime {mtime_text(stat.st_mtime_ns)},"
            f" {segment.size_bytes} and {mtime_text(segment.mtime_ns)} when the kit was made: make"
            " another kit",
        )


def check_files(folders: LogFolders, log: LogKit, note: ChangeNote) -> None:
    """Check that no broker has started since a change was begun: it would have written index files.

    Raises:
        SetAsideError: a file is neither as it was at first nor as the kit has it.
    """
    for file in log.files:
        path, kept = folders.log / file.name, folders.kept / file.name
        is_back = note.goes_back and file.name in note.found and not is_there(kept)
        is_missing = file.name not in note.found and not is_there(path)
        is_first = is_there(kept) and is_there(path) and _is_same(path, kept)
        if not (is_back or is_missing or is_first or is_as_said(path, file)):
            raise SetAsideError(
                path, "it has changed since `recovery apply`: its broker has started meanwhile"
            )


def _is_same(path: Path, kept: Path) -> bool:
    return path.samefile(kept) or sha256_of(path) == sha256_of(kept)


def is_as_said(path: Path, file: NewFile) -> bool:
    """Tell whether a file has the SHA-256 that a kit names."""
    try:
        return path.stat().st_size == file.size_bytes and sha256_of(path) == file.sha256
    except FileNotFoundError:
        return False
