"""List a folder of a local disk: every name, whatever its bytes, and where its links lead."""

import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

NO_FILE = "a pipe, a socket or a device, no file"
_MAX_INT64 = 2**63 - 1
_DIGITS = 20  # of a segment's base offset, with which the names of its files begin
_NO_TEXT = "its name is no UTF-8, so nothing can be read by it; rename it"


class FileEntry(NamedTuple):
    """One name in a folder.

    ``oddity`` says why the name is neither a file nor a folder. ``link`` is the path that a
    symbolic link leads to in the end; the other fields are then those of that path.
    """

    name: str
    is_folder: bool
    size_bytes: int
    mtime_ns: int
    oddity: str | None = None
    link: str | None = None


def as_text(name: str) -> str:
    r"""Return a path as text; bytes that are not UTF-8 are escaped, as in ``\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def list_local_folder(folder: str, *, without: tuple[str, ...] = ()) -> list[FileEntry]:
    """Return the entries of a folder, in no order; no two of them have the same text for a name.

    ``without``: suffixes of plain files of segments that are left out, for which the disk is asked
    no more; what else is named so is not.

    Raises:
        OSError: the folder does not exist, is no folder, or may not be read.
    """
    with os.scandir(folder) as found:
        entries = [
            entry
            for name in found
            if not (name.name[_DIGITS:] in without and _is_of_segment(name))
            and (entry := _entry(name)) is not None
        ]
    odd = [entry for entry in entries if not is_text(entry.name)]
    if not odd:
        return entries
    return [*(entry for entry in entries if is_text(entry.name)), *_named(odd, entries)]


def _named(odd: list[FileEntry], entries: list[FileEntry]) -> Iterator[FileEntry]:
    """Yield the entries whose names are no text, each with a text that no other name has."""
    taken = {entry.name for entry in entries}
    for entry in sorted(odd):
        name = as_text(entry.name)
        while name in taken:
            name += "\\"
        taken.add(name)
        what = "a folder; " if entry.is_folder else ""
        yield FileEntry(name, False, entry.size_bytes, entry.mtime_ns, what + _NO_TEXT)


def is_text(name: str) -> bool:
    """Tell whether a path, as Python decodes it, is UTF-8 on disk."""
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)


def _is_of_segment(found: os.DirEntry[str]) -> bool:
    """Tell, without asking for its status, whether a name is a plain file's, and of a segment."""
    digits = found.name[:_DIGITS]
    return digits.isascii() and digits.isdigit() and found.is_file(follow_symlinks=False)


def _entry(found: os.DirEntry[str]) -> FileEntry | None:
    """Return what a name is, None if it has gone since the folder was opened."""
    link = os.path.realpath(found.path) if found.is_symlink() else None
    try:
        status = found.stat()
    except OSError as error:
        if link is not None:
            return FileEntry(found.name, False, 0, 0, why_not_followed(error, link), as_text(link))
        if error.errno == errno.ENOENT:
            return None
        raise
    is_folder, is_file = stat.S_ISDIR(status.st_mode), stat.S_ISREG(status.st_mode)
    return FileEntry(
        found.name,
        is_folder,
        status.st_size if is_file else 0,
        mtime_ns_of(status),
        None if is_folder or is_file else NO_FILE,
        None if link is None else as_text(link),
    )


def mtime_ns_of(status: os.stat_result) -> int:
    """Return the mtime in ns; later ones than 64 bits hold, from 2262 on, count as the last."""
    return min(status.st_mtime_ns, _MAX_INT64)


def why_not_followed(error: OSError, target: str) -> str:
    """Return why a link cannot be followed; ``target`` is where it leads."""
    if error.errno == errno.ELOOP:
        return "a link that leads round in a circle"
    if error.errno == errno.ENOENT:
        return f"a link that leads nowhere: {as_text(target)} is not there"
    return f"a link to {as_text(target)} that cannot be followed: {error.strerror}"
