"""Check that a log is as its kit saw it, or as an unfinished change has left it.

A change begins with a note of the files that were there first. No broker may have started since
then: it would have preallocated the index files of the last segment, which shows.

The same is checked before a log is changed and where nothing is to change. No link is followed: not
in the place of a folder, of a segment, of a file to replace, nor in the kit.
"""

import os
from pathlib import Path
from typing import ClassVar, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import is_there
from kafka_segments.files.changes.manifests import Manifest, Name, read_manifest, write_manifest
from kafka_segments.files.changes.plain_files import check_folder, is_plain_folder, plain_status
from kafka_segments.files.changes.set_aside import SUFFIXES
from kafka_segments.files.storage.durable_files import TEMPORARY, sha256_of
from kafka_segments.kafka.text.moments import mtime_text
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name, parse_segment_name
from kafka_segments.verbs.change.recovery.apply.log_end import check_end
from kafka_segments.verbs.change.recovery.kit_manifest import Cut, LogKit, NewFile, SeenSegment

NOTE = "note.json"
CUT_OFF = "cut-off-bytes"
"""The name under which the bytes that are cut off are kept."""


class LogFolders(NamedTuple):
    """The folders of a log: its own, that of the kit's new files, and that of its first files."""

    log: Path
    kit: Path
    kept: Path

    @property
    def note(self) -> Path:
        """Return where the note lies; if it exists, the log may have been changed."""
        return self.kept / NOTE


class ChangeNote(Manifest):
    """Which files were there before the change; ``goes_back``: a rollback was begun.

    ``kept`` are the files that lie in the kit since then. Files that already were as the kit has
    them are not kept.
    """

    remedy: ClassVar[str] = (
        "nothing is put back: what was there before lies beside it, to be copied by hand"
    )

    folder: str
    found: tuple[Name, ...]
    kept: tuple[NewFile, ...]
    goes_back: bool = False


def read_note(folders: LogFolders) -> ChangeNote | None:
    """Return the note of a change; None: no change was begun.

    Raises:
        SetAsideError: it cannot be used, or a folder is none.
    """
    check_folder(folders.log)
    check_folder(folders.kit)
    for folder in (folders.kept.parent.parent, folders.kept.parent, folders.kept):
        if not is_plain_folder(folder):
            return None
    return read_manifest(folders.note, ChangeNote) if is_there(folders.note) else None


def write_note(folders: LogFolders, note: ChangeNote) -> None:
    """Write the note of a change, and sync it to the disk."""
    write_manifest(folders.note, note)


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
    check_segments(folders, log, note)
    for segment in log.segments if by_digest else ():
        path = folders.log / file_name(segment.base_offset, LOG_SUFFIX)
        if path.stat().st_size == segment.size_bytes and sha256_of(path) != segment.sha256:
            raise SetAsideError(
                path, "its sha256 is not the one that the kit saw: make another kit"
            )
    _check_kit(folders, log)
    check_end(folders.log, folders.kit, log)
    for file in log.files:
        if is_there(folders.log / file.name):
            plain_status(folders.log / file.name)
    if note is not None:
        _check_kept(folders, log, note)
        _check_files(folders, log, note)


def check_back(folders: LogFolders, log: LogKit, note: ChangeNote) -> None:
    """Check that a log is as a change or an unfinished rollback left it, and what was kept, too.

    Raises:
        SetAsideError: something has changed since, or is gone.
    """
    check_segments(folders, log, note)
    _check_kept(folders, log, note)
    _check_files(folders, log, note)


def _check_kit(folders: LogFolders, log: LogKit) -> None:
    """Check that the kit holds the files that it names, and no other file of a segment."""
    for file in log.files:
        if not is_as_said(folders.kit / file.name, file):
            raise SetAsideError(folders.kit / file.name, "not as the kit says: make another kit")
    names = {entry.name for entry in folders.kit.iterdir() if entry.name.endswith(SUFFIXES)}
    others = names - {file.name for file in log.files}
    if others:
        raise SetAsideError(
            folders.kit / min(others), "lies in the kit, which does not name it: make another kit"
        )


def check_segments(folders: LogFolders, log: LogKit, note: ChangeNote | None) -> None:
    """Check that the segments of a log are those that its kit saw, and no others have come.

    ``note`` None: no change was begun. Else the torn tail may be cut off already, and the empty
    segment may be there.

    Raises:
        SetAsideError: they are not.
    """
    seen = {segment.base_offset: segment for segment in log.segments}
    for segment in log.segments:
        path = folders.log / file_name(segment.base_offset, LOG_SUFFIX)
        is_cut = log.cut is not None and log.cut.base_offset == segment.base_offset
        _check_segment(path, segment, log.cut if is_cut else None, note)
    added = {file.name for file in log.files}
    for entry in folders.log.iterdir():
        base = parse_segment_name(entry.name)
        if base is None or base < min(seen) or base in seen:
            continue
        if note is None or entry.name not in added or plain_status(entry).st_size:
            raise SetAsideError(
                entry, "this segment has come since the kit was made: make another kit"
            )


def _check_segment(
    path: Path, segment: SeenSegment, cut: Cut | None, note: ChangeNote | None
) -> None:
    """Check a segment; with ``cut``, its tail may be cut off by now, and its mtime another."""
    try:
        stat = plain_status(path)
    except FileNotFoundError:
        raise SetAsideError(path, "gone since the kit was made: make another kit") from None
    if cut is not None and note is not None:
        ends = (cut.position, segment.size_bytes)
        if stat.st_size in ends or (note.goes_back and ends[0] < stat.st_size < ends[1]):
            return
    if (stat.st_size, stat.st_mtime_ns) != (segment.size_bytes, segment.mtime_ns):
        raise SetAsideError(
            path,
            f"it has {stat.st_size} bytes and mtime {mtime_text(stat.st_mtime_ns)},"
            f" {segment.size_bytes} and {mtime_text(segment.mtime_ns)} when the kit was made: make"
            " another kit",
        )


def _check_kept(folders: LogFolders, log: LogKit, note: ChangeNote) -> None:
    """Check that a note fits its kit, and that all that it says was kept is there, as it was.

    In a rollback that was begun, files may be back in the log's folder by now.
    """
    names = {file.name for file in log.files}
    allowed = {*note.found, CUT_OFF} if log.cut is not None else {*note.found}
    kept = {file.name: file for file in note.kept}
    cut_bytes = 0 if log.cut is None else log.cut.size_bytes
    if not set(note.found) <= names or not kept.keys() <= allowed or len(kept) < len(note.kept):
        raise SetAsideError(folders.note, f"it names files that its kit does not; {note.remedy}")
    if cut_bytes and (CUT_OFF not in kept or kept[CUT_OFF].size_bytes != cut_bytes):
        raise SetAsideError(folders.note, f"{cut_bytes} bytes that are cut off are not kept")
    for name, file in kept.items():
        back = folders.log / name
        is_back = note.goes_back and not is_there(folders.kept / name) and is_as_said(back, file)
        if not is_back and not is_as_said(folders.kept / name, file):
            raise SetAsideError(
                folders.kept / name, f"it is not as it was when it was kept; {note.remedy}"
            )
    for entry in folders.kept.iterdir():
        if entry.name not in (*kept, NOTE) and not entry.name.endswith(TEMPORARY):
            raise SetAsideError(entry, f"{NOTE} does not name what is kept here; {note.remedy}")


def _check_files(folders: LogFolders, log: LogKit, note: ChangeNote) -> None:
    """Check that no broker has started since a change was begun: it would have written index files.

    Raises:
        SetAsideError: a file is neither as it was at first nor as the kit has it.
    """
    kept = {file.name: file for file in note.kept}
    for file in log.files:
        path, first = folders.log / file.name, kept.get(file.name)
        is_missing = file.name not in note.found and not is_there(path)
        is_first = first is not None and is_as_said(path, first)
        if not (is_missing or is_first or is_as_said(path, file)):
            raise SetAsideError(
                path, "it has changed since `recovery apply`: its broker has started meanwhile"
            )


def check_unchanged(folders: LogFolders, log: LogKit) -> None:
    """Check that a log without a note was not changed, though files of it lie in the kit.

    Raises:
        SetAsideError: it was, so the note has been lost.
    """
    if not is_plain_folder(folders.kept):
        return
    kept = [entry.name for entry in folders.kept.iterdir() if not entry.name.endswith(TEMPORARY)]
    try:
        check_segments(folders, log, None)
        is_same = all(
            _is_same(folders.log / name, folders.kept / name) for name in kept if name != CUT_OFF
        )
    except SetAsideError:
        is_same = False
    if kept and not is_same:
        raise SetAsideError(folders.note, f"gone, though the log was changed; {ChangeNote.remedy}")


def _is_same(path: Path, kept: Path) -> bool:
    if not is_there(path):
        return False
    return os.path.samestat(plain_status(path), plain_status(kept)) or (
        sha256_of(path) == sha256_of(kept)
    )


def is_as_said(path: Path, file: NewFile) -> bool:
    """Tell whether a plain file has the SHA-256 that a kit names.

    Raises:
        SetAsideError: there is something else of that name, a link say.
    """
    try:
        return plain_status(path).st_size == file.size_bytes and sha256_of(path) == file.sha256
    except FileNotFoundError:
        return False
