"""Change files on a local disk so that a crash leaves each change done or not begun.

A file is written under a temporary name beside its own, synced, and then renamed, so no reader sees
a part of it. An error removes the temporary file; a process that is killed leaves it, and its
suffix tells what it is. A folder is filled under another name, synced and renamed as well. A
symbolic link is moved, copied and digested as a link; it is never followed.
"""

import errno
import glob
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kafka_segments.errors import SetAsideError

TEMPORARY = ".kafka-segments-tmp"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Codes of the errors of a disk that is full."""
_DAY_NS = 86_400 * 10**9
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def temporary_name(path: str) -> str:
    """Return a name beside a path that no other process takes."""
    folder, separator, name = path.rpartition("/")
    return f"{folder}{separator}.{name}.{os.urandom(16).hex()}{TEMPORARY}"


def remove_temporaries(folder: Path, *, name: str | None = None) -> None:
    """Remove the temporary files that killed processes left in a folder.

    ``name``: only those of the file of that name, where other processes write beside this one.
    """
    pattern = "*" if name is None else f".{glob.escape(name)}.*"
    for leftover in folder.glob(f"{pattern}{TEMPORARY}"):
        leftover.unlink()


def older_temporaries(folder: Path, *, before_ns: int, name: str | None = None) -> list[Path]:
    """Return the temporary files in a folder that nobody has written to since a moment.

    ``name``: only those of the file of that name.
    """
    pattern = ".*" if name is None else f".{glob.escape(name)}.*"
    found = (path for path in sorted(folder.glob(f"{pattern}{TEMPORARY}")) if not path.is_symlink())
    return [path for path in found if path.is_file() and path.lstat().st_mtime_ns < before_ns]


def remove_older_temporaries(path: Path) -> None:
    """Remove what killed runs left of a file that is whole now: what is a day older than it."""
    before_ns = path.stat().st_mtime_ns - _DAY_NS
    for left in older_temporaries(path.parent, before_ns=before_ns, name=path.name):
        left.unlink(missing_ok=True)


@contextmanager
def durable_file(
    path: Path | str,
    *,
    size_bytes: int | None,
    finish: Callable[[Path], object] | None = None,
    is_synced: bool = True,
    replaces: bool = True,
) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name when it is whole and on disk.

    Args:
        path: its name.
        size_bytes: its size in the end, for the message of a full disk; None: not known.
        finish: is called with the whole file before it is renamed, to set its owner and mtime.
        is_synced: wait until the file and its name are on disk. Without it a crash of the machine
            may leave the file empty; a crash of the process does not.
        replaces: a file of that name is replaced; else it stays.

    Raises:
        FileExistsError: without ``replaces``, there is a file of that name.
        OSError: the file cannot be written. For a full disk the text says how much is free.
    """
    temporary = temporary_name(os.fspath(path))
    try:
        with open(temporary, "xb") as stream:
            yield stream
            if is_synced:
                stream.flush()
                os.fsync(stream.fileno())
        _name_whole(temporary, path, finish=finish, is_synced=is_synced, replaces=replaces)
    except BaseException as error:
        _give_up(temporary, path, size_bytes, error)
        raise


def _name_whole(
    temporary: str,
    path: Path | str,
    *,
    finish: Callable[[Path], object] | None,
    is_synced: bool,
    replaces: bool,
) -> None:
    if finish is not None:
        finish(Path(temporary))
    if replaces:
        os.replace(temporary, path)
    else:
        os.link(temporary, path)
        os.unlink(temporary)
    if is_synced:
        sync_folder(Path(path).parent)


def _give_up(
    temporary: str, path: Path | str, size_bytes: int | None, error: BaseException
) -> None:
    """Remove an unfinished file; of a full disk an error says how much is free."""
    written_bytes = _removed(Path(temporary))
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        wanted = "" if size_bytes is None else f" of {size_bytes}"
        reason = f"{os.strerror(error.errno)}: {written_bytes}{wanted} bytes were written,"
        free = free_bytes(Path(path).parent)
        raise OSError(error.errno, f"{reason} {free} are free", str(path)) from None


def _removed(unfinished: Path) -> int:
    """Remove a file if it exists; return the bytes that it had."""
    try:
        size_bytes = unfinished.lstat().st_size
    except FileNotFoundError:
        return 0
    unfinished.unlink()
    return size_bytes


def write_durably(
    path: Path | str,
    data: bytes,
    *,
    finish: Callable[[Path], object] | None = None,
    is_synced: bool = True,
    replaces: bool = True,
) -> None:
    """Write a file that appears whole; arguments and errors are those of ``durable_file``.

    By the system's own calls, as such files are many.
    """
    temporary = temporary_name(os.fspath(path))
    try:
        descriptor = os.open(temporary, _NEW_FILE, 0o666)
        try:
            written = os.write(descriptor, data) if data else 0
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _name_whole(temporary, path, finish=finish, is_synced=is_synced, replaces=replaces)
    except BaseException as error:
        _give_up(temporary, path, len(data), error)
        raise


def create_empty(path: str) -> bool:
    """Make an empty file, which is whole as soon as it exists; return whether that is done.

    It is not where there is something of that name, or where the file cannot be made.
    """
    try:
        os.close(os.open(path, _NEW_FILE, 0o666))
    except OSError:
        return False
    return True


def write_together(
    folder: Path,
    files: Iterable[tuple[str, bytes]],
    *,
    finish: Callable[[Path], object],
    present: Iterable[str] = (),
) -> None:
    """Write files of a folder; all are whole and on disk before the first gets its name.

    The names are on disk after ``sync_folder``.

    Args:
        folder: where, for this process alone: temporary files that are there are removed.
        files: their names and bytes; files of these names are replaced.
        finish: is called with each file before it is synced, to set its owner.
        present: names of files that stay, and are synced before the others get theirs.

    Raises:
        OSError: a step was refused. The files that have their names are whole, the others are as
            they were.
    """
    remove_temporaries(folder)
    written: dict[str, Path] = {}
    try:
        for name, data in files:
            written[name] = Path(temporary_name(str(folder / name)))
            written[name].write_bytes(data)
            finish(written[name])
        for path in (*(folder / name for name in present), *written.values()):
            sync_file(path)
        for name, temporary in written.items():
            os.replace(temporary, folder / name)
    except BaseException:
        remove_temporaries(folder)
        raise


def copy_durably(
    source: Path, path: Path, *, finish: Callable[[Path], object] | None = None
) -> None:
    """Copy a file with its mode and mtime, whole or not at all.

    Raises:
        OSError: see ``durable_file``, or the source cannot be read.
    """

    def like_source(whole: Path) -> None:
        shutil.copystat(source, whole)
        if finish is not None:
            finish(whole)

    size_bytes = source.stat().st_size
    with (
        source.open("rb") as read,
        durable_file(path, size_bytes=size_bytes, finish=like_source) as stream,
    ):
        shutil.copyfileobj(read, stream)


def move_durably(source: Path, target: Path) -> None:
    """Move a file; to another file system it is copied, compared, and then removed here.

    Raises:
        SetAsideError: the copy differs, or its owner cannot be set.
        OSError: a step was refused. The file is then at its source, at its target, or at both.
    """
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        if source.is_symlink():
            _copy_link(source, target)
        else:
            copy_durably(source, target, finish=lambda copy: _check_copy(copy, source))
        source.unlink()
    sync_folder(target.parent)
    sync_folder(source.parent)


def _copy_link(source: Path, target: Path) -> None:
    temporary = Path(temporary_name(str(target)))
    temporary.symlink_to(source.readlink())
    try:
        shutil.copystat(source, temporary, follow_symlinks=False)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink()
        raise
    sync_folder(target.parent)


def _check_copy(copy: Path, source: Path) -> None:
    """Give a copy the owner and mtime of its source, and check that it has the same bytes."""
    own_like(copy, source)
    stat = source.stat()
    os.utime(copy, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with copy.open("rb") as stream:
        os.fsync(stream.fileno())
    if sha256_of(copy) != sha256_of(source):
        raise SetAsideError(
            copy, f"its sha256 differs from that of {source}, which it is copied from"
        )


def name_folder(
    whole: Path,
    folder: Path,
    *,
    note: Callable[[], object] | None = None,
    replaced: Path | None = None,
    is_synced: bool = True,
) -> None:
    """Give a folder that was filled under another name its own, so that it appears whole.

    Args:
        whole: the folder, on the same file system. Its files are on disk, if that matters.
        folder: its name.
        note: is called before the rename, when the names in the folder are on disk: it may write
            what the folder holds.
        replaced: where a folder of that name goes; None: there is none.
        is_synced: wait until the names in the folder, and then its own, are on disk.

    Raises:
        OSError: a step was refused; the folder has the one name or the other.
    """
    if is_synced:
        sync_folder(whole)
    if note is not None:
        note()
    if replaced is not None and folder.exists():
        os.replace(folder, replaced)
    os.replace(whole, folder)
    if is_synced:
        sync_folder(folder.parent)


def own_like(path: Path, other: Path) -> None:
    """Give a file the owner and mode of another one.

    Raises:
        SetAsideError: this process may not; only that owner and root may.
    """
    stat, mine = other.stat(), path.stat()
    if (stat.st_uid, stat.st_gid) != (mine.st_uid, mine.st_gid):
        try:
            os.chown(path, stat.st_uid, stat.st_gid)
        except PermissionError:
            raise SetAsideError(
                other, f"run as its owner, uid {stat.st_uid}, or as root: a broker must own it"
            ) from None
    path.chmod(stat.st_mode & 0o7777)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex; of a link, that of the path it holds."""
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_file(file: Path) -> None:
    """Wait until the bytes of a file that was written and closed are on disk."""
    _sync(file)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(path: Path) -> int:
    """Return the bytes that can still be written to the file system of a path, existing or not."""
    found = os.statvfs(nearest_folder(path))
    return found.f_bavail * found.f_frsize


def nearest_folder(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
