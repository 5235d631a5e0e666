"""Judge symbolic links below a source: none is followed unless that is asked for.

A source itself may be a link: the user names it. What lies below it was put there by others, and a
link there may lead to any file that this process can read.
"""

import errno
import os
import stat
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kafka_segments.storage.files import Place
from kafka_segments.storage.local_folder import NO_FILE, FileEntry, as_text, why_not_followed

_BY_OPTION = "; --follow-links does"
_NOT_FOLLOWED = f"not followed{_BY_OPTION}"


def with_links_judged(
    source: str, relative_path: str, entries: list[FileEntry], *, follow: bool
) -> list[FileEntry]:
    """Return the entries of a folder, with an oddity for each link that is not to be followed.

    ``follow``: every link is followed, except one to a folder that holds the link itself, which
    would never end.
    """
    if all(entry.link is None for entry in entries):
        return entries
    above = _folders_above(source, relative_path) if follow else []
    root = os.path.realpath(source)
    return [_judged(entry, root, above, follow=follow) for entry in entries]


def _judged(entry: FileEntry, root: str, above: list[PurePosixPath], *, follow: bool) -> FileEntry:
    if entry.link is None or entry.oddity is not None:
        return entry
    if not follow:
        return FileEntry(entry.name, False, 0, 0, _why_left(entry.link, root), entry.link)
    if entry.is_folder and any(folder.is_relative_to(entry.link) for folder in above):
        reason = f"a link to {entry.link}, which holds it: following it would never end"
        return FileEntry(entry.name, False, 0, 0, reason, entry.link)
    return entry


def _why_left(target: str, root: str) -> str:
    where = "a link" if PurePosixPath(target).is_relative_to(root) else "a link out of the source"
    return f"{where}, to {target}: {_NOT_FOLLOWED}"


def is_folder_outside(path: str, source: str) -> bool:
    """Tell whether a local link leads to a folder that is not read as part of its source."""
    target = Path(os.path.realpath(path))
    return target.is_dir() and not target.is_relative_to(os.path.realpath(source))


def without_option(reason: str) -> str:
    """Return why a link was left, in words of a verb that never follows links."""
    return reason.replace(_BY_OPTION, "")


def _folders_above(source: str, relative_path: str) -> list[PurePosixPath]:
    """Return the folders from the source down to a folder, that one included, without links."""
    paths = [source]
    for name in filter(None, relative_path.split("/")):
        paths.append(os.path.join(paths[-1], name))
    return [PurePosixPath(os.path.realpath(path)) for path in paths]


class OddFile(NamedTuple):
    """A path that is no plain file: its kind, what it is, and where it leads if it is a link."""

    kind: str
    reason: str
    target: str = ""


def look_at(file: Place, *, source: str) -> OddFile | None:
    """Return what a local path is if it is no plain file.

    None stands for a plain file, a path that does not exist, and a path of another store. The kinds
    are ``folder``, ``special`` (a pipe, a socket, a device), ``link`` (to a file), and
    ``dangling_link`` and ``endless_link``, which lead to no file. A link to a folder is a
    ``folder``, as it is to a broker.
    """
    if not file.store.is_local:
        return None
    try:
        mode = os.lstat(file.path).st_mode
    except OSError:
        return None  # the one who reads it gets the error
    if stat.S_ISREG(mode):
        return None
    target = os.path.realpath(file.path) if stat.S_ISLNK(mode) else None
    if target is not None:
        try:
            mode = Path(file.path).stat().st_mode
        except OSError as error:
            kind = "endless_link" if error.errno == errno.ELOOP else "dangling_link"
            return OddFile(kind, why_not_followed(error, target), as_text(target))
    if target is not None and stat.S_ISREG(mode):
        target = as_text(target)
        return OddFile("link", _why_left(target, os.path.realpath(source)), target)
    kind, what = ("folder", "a folder, no file") if stat.S_ISDIR(mode) else ("special", NO_FILE)
    if target is None:
        return OddFile(kind, what)
    return OddFile(kind, f"a link to {as_text(target)}: {what}", as_text(target))
