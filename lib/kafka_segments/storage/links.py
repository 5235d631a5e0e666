"""Symbolic links below a source: none is followed unless it is asked for, and none for ever.

A source itself may be a link: it is named by the one who asks. What lies below it was put there
by others, and may lead to any file that this process can read.
"""

import errno
import os
import stat
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kafka_segments.storage.files import Place
from kafka_segments.storage.local_folder import NO_FILE, FileEntry, as_text, why_not_followed

_NOT_FOLLOWED = "not followed; --follow-links does"


def with_links_judged(
    source: str, relative_path: str, entries: list[FileEntry], *, follow: bool
) -> list[FileEntry]:
    """Make oddities of the links in a folder below a source that are not to be followed.

    ``follow``: all are followed but those to a folder that holds the one in which they lie.
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


def _folders_above(source: str, relative_path: str) -> list[PurePosixPath]:
    """Give the folders on the way from the source to a folder, itself too, without links."""
    paths = [source]
    for name in filter(None, relative_path.split("/")):
        paths.append(os.path.join(paths[-1], name))
    return [PurePosixPath(os.path.realpath(path)) for path in paths]


class OddFile(NamedTuple):
    """A path that is no plain file: its kind, what it is, and of a link where it leads."""

    kind: str
    reason: str
    target: str = ""


def look_at(file: Place, *, source: str) -> OddFile | None:
    """Say what a local path is that is no plain file; None: one, or nothing, or no local path.

    Kinds: ``folder``, ``special`` (a pipe, a socket, a device), ``link``, and ``dangling_link``
    and ``endless_link`` that lead to no file. A link to a folder is a folder, as to a broker.
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
