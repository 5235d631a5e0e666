"""Change one log as its kit says, and change it back; a crash at any step loses nothing.

1. What is there first is kept: a hard link to each file that is replaced, where the kit lies on
   the same file system, else a copy; and a copy of the tail that is cut off.
2. A note says which files were there. It is on disk before the first change.
3. New files are written under temporary names, synced, and renamed. No name is ever missing: a
   broker that finds no ``.index`` recovers the segment, and then cuts it by other rules.
4. The torn tail is cut off, and every segment that was read is synced, and then the folder.

Until the checkpoint is advanced (``checkpoint_change``) a broker recovers all that it would have
recovered before, and comes to the same end: the new files hold what it would write itself. A
rollback goes the same way back, once the checkpoint is as it was. Each step can be done again.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import is_there
from kafka_segments.files.changes.plain_files import open_plain, plain_status
from kafka_segments.files.storage.durable_files import (
    NO_ROOM,
    copy_durably,
    durable_file,
    free_bytes,
    move_durably,
    own_like,
    remove_temporaries,
    sha256_of,
    sync_file,
    sync_folder,
    write_together,
)
from kafka_segments.kafka.text.names import LOG_SUFFIX, file_name
from kafka_segments.verbs.change.recovery.apply.log_check import (
    CUT_OFF,
    ChangeNote,
    LogFolders,
    check_back,
    check_unchanged,
    is_as_said,
    write_note,
)
from kafka_segments.verbs.change.recovery.kit_manifest import Cut, LogKit, NewFile

_COPY_BYTES = 4 * 1024 * 1024


def change_log(folders: LogFolders, log: LogKit) -> None:
    """Put a kit's files into a log's folder, cut off its torn tail, and sync both to the disk.

    ``check_log`` has found the log to be as its kit says.

    Raises:
        SetAsideError: a file has become a link or has changed meanwhile, or its owner cannot be
            set.
        OSError: the file system refused a step; run it again, or go back.
    """
    if not is_there(folders.note):
        _keep(folders, log)
    segments = [file for file in log.files if file.name.endswith(LOG_SUFFIX)]
    like = folders.log / file_name(log.segments[0].base_offset, LOG_SUFFIX)
    _put(folders, [file for file in log.files if file not in segments], like)
    if log.cut is not None:
        _cut_off(folders.log, log)
    _put(folders, segments, like)  # an empty one, behind the end
    for segment in log.segments:
        sync_file(folders.log / file_name(segment.base_offset, LOG_SUFFIX))
    sync_folder(folders.log)


def _keep(folders: LogFolders, log: LogKit) -> None:
    """Keep what is there first, and note it; start anew where an earlier run did not finish."""
    folders.kept.mkdir(parents=True, exist_ok=True)
    remove_temporaries(folders.kept)
    found = [file.name for file in log.files if is_there(folders.log / file.name)]
    kept = [
        _keep_file(folders.log / file.name, folders.kept / file.name)
        for file in log.files
        if file.name in found and not is_as_said(folders.log / file.name, file)
    ]
    if log.cut is not None:
        segment = folders.log / file_name(log.cut.base_offset, LOG_SUFFIX)
        kept.append(_keep_bytes(segment, folders.kept / CUT_OFF, log.cut))
    sync_folder(folders.kept)
    sync_folder(folders.kept.parent)
    write_note(folders, ChangeNote(folder=str(folders.log), found=tuple(found), kept=tuple(kept)))


def _keep_file(path: Path, kept: Path) -> NewFile:
    kept.unlink(missing_ok=True)
    plain_status(path)
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        copy_durably(path, kept, finish=lambda copy: own_like(copy, path))
    return _kept(kept)


def _kept(path: Path) -> NewFile:
    size_bytes = plain_status(path).st_size
    return NewFile(name=path.name, size_bytes=size_bytes, sha256=sha256_of(path))


def _keep_bytes(segment: Path, kept: Path, cut: Cut) -> NewFile:
    """Copy the bytes that will be cut off; chunks of zeros become holes, which take no room."""
    kept.unlink(missing_ok=True)
    with open_plain(segment, "rb") as read, durable_file(kept, size_bytes=cut.size_bytes) as stream:
        read.seek(cut.position)
        while chunk := read.read(_COPY_BYTES):
            if any(chunk):
                stream.write(chunk)
            else:
                stream.seek(len(chunk), os.SEEK_CUR)
        stream.truncate()
    return _kept(kept)


def _cut_off(folder: Path, log: LogKit) -> None:
    """Cut off a torn tail; keep the mtime, which retention may go by."""
    with _last_segment(folder, log) as (stream, cut):
        size_bytes = os.fstat(stream.fileno()).st_size
        if size_bytes not in (cut.position, cut.position + cut.size_bytes):
            raise SetAsideError(folder, f"its last segment has {size_bytes} bytes by now: not cut")
        stream.truncate(cut.position)


def _give_back(folders: LogFolders, log: LogKit) -> None:
    """Append the bytes that were cut off."""
    kept_bytes = folders.kept / CUT_OFF
    with _last_segment(folders.log, log) as (stream, cut), open_plain(kept_bytes, "rb") as kept:
        stream.seek(cut.position)
        shutil.copyfileobj(kept, stream)


@contextmanager
def _last_segment(folder: Path, log: LogKit) -> Iterator[tuple[BinaryIO, Cut]]:
    """Open the segment with the torn tail; sync it at the end, with the mtime it had."""
    segment, cut = log.segments[-1], log.cut
    if cut is None:
        return
    path = folder / file_name(segment.base_offset, LOG_SUFFIX)
    with open_plain(path, "r+b") as stream:
        yield stream, cut
        stream.flush()
        os.utime(path, ns=(segment.mtime_ns, segment.mtime_ns))
        os.fsync(stream.fileno())


def _put(folders: LogFolders, files: Sequence[NewFile], like: Path) -> None:
    """Put the files in place that are not; those that are get synced with them."""
    present = [file.name for file in files if is_as_said(folders.log / file.name, file)]
    lacking = [file.name for file in files if file.name not in present]
    try:
        write_together(
            folders.log,
            ((name, _read(folders.kit / name)) for name in lacking),
            finish=lambda whole: own_like(whole, like),
            present=present,
        )
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        reason = f"{error.strerror}; {free_bytes(folders.log)} bytes are free: make room and run"
        raise OSError(error.errno, f"{reason} `recovery apply` again", str(folders.log)) from None


def _read(path: Path) -> bytes:
    with open_plain(path, "rb") as stream:
        return stream.read()


def change_log_back(folders: LogFolders, log: LogKit, note: ChangeNote) -> None:
    """Put the files of a log back as they were, as ``note`` says.

    Raises:
        SetAsideError: a segment or a file has changed since: nothing of the log is put back.
        OSError: the file system refused a step; run it again.
    """
    check_back(folders, log, note)
    write_note(folders, note.model_copy(update={"goes_back": True}))
    for file in reversed(log.files):
        if file.name not in note.found:
            (folders.log / file.name).unlink(missing_ok=True)
    if log.cut is not None:
        _give_back(folders, log)
    for name in note.found:
        if is_there(folders.kept / name):
            move_durably(folders.kept / name, folders.log / name)
    remove_temporaries(folders.log)
    sync_folder(folders.log)
    folders.note.unlink()
    _forget(folders, [file.name for file in note.kept])


def forget_kept(folders: LogFolders, log: LogKit) -> None:
    """Remove what was kept of a log that was not changed after all: there is no note.

    Raises:
        SetAsideError: it was changed, so the note has been lost.
    """
    check_unchanged(folders, log)
    _forget(folders, [file.name for file in log.files])


def _forget(folders: LogFolders, names: Sequence[str]) -> None:
    """Remove what was kept of a log; the folder, too, if nothing else lies in it."""
    if not folders.kept.is_dir():
        return
    remove_temporaries(folders.kept)
    for name in filter(lambda name: is_there(folders.kept / name), {*names, CUT_OFF}):
        (folders.kept / name).unlink()
    with suppress(OSError):  # something else does
        folders.kept.rmdir()
