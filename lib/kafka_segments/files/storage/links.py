"""Judge symbolic links below a source: none is followed unless that is asked for.

A source itself may be a link: the user names it. What lies below it was put there by others, and a
link there may lead to any file that this process can read: none is followed out of what was named.
"""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.local_folder import NO_FILE, FileEntry, as_text, why_not_followed
from kafka_segments.files.storage.stores import store_of

_BY_OPTION = "; --follow-links does"
_AS_A_SOURCE = ", with what it leads to as a source, too"


def links_into(sources: Sequence[str], *, follow: bool) -> tuple[str, ...]:
    """Return the folders into which links are followed: the sources of this machine, or none."""
    return tuple(source for source in sources if follow and store_of(source).is_local)


def with_links_judged(
    source: str, relative_path: str, entries: list[FileEntry], *, follow_into: Sequence[str]
) -> list[FileEntry]:
    """Return the entries of a folder, with an oddity for each link that is not to be followed.

    ``follow_into``: see ``links_into``. A link is followed to what lies in these folders, but
    not to a folder that holds the link itself, which would never end.
    """
    if all(entry.link is None for entry in entries):
        return entries
    above = _folders_above(source, relative_path) if follow_into else []
    return [_judged(entry, source, above, follow_into) for entry in entries]


def _judged(
    entry: FileEntry, source: str, above: list[PurePosixPath], follow_into: Sequence[str]
) -> FileEntry:
    if entry.link is None or entry.oddity is not None:
        return entry
    reason = _why_left(entry.link, source, follow_into)
    if follow_into and entry.is_folder and _holds_one_of(entry.link, above):
        reason = f"a link to {entry.link}, which holds it: following it would never end"
    if reason is None:
        return entry
    return FileEntry(entry.name, False, 0, 0, reason, entry.link)


def _holds_one_of(folder: str, below: list[PurePosixPath]) -> bool:
    return any(path.is_relative_to(folder) for path in below)


def _why_left(target: str, source: str, follow_into: Sequence[str]) -> str | None:
    """Return why a link is not followed; None: it is."""
    if lies_in(target, source):
        return None if follow_into else f"a link, to {target}: not followed{_BY_OPTION}"
    if any(lies_in(target, root) for root in follow_into):
        return None
    if follow_into:
        return f"a link out of the sources, to {target}: not followed; give that as a source, too"
    return f"a link out of the source, to {target}: not followed{_BY_OPTION}{_AS_A_SOURCE}"


def lies_in(target: str, root: str) -> bool:
    """Tell whether a real path lies in a folder, which may be a link."""
    return PurePosixPath(target).is_relative_to(os.path.realpath(root))


def is_folder_outside(path: str, sources: Sequence[str]) -> bool:
    """Tell whether a local link leads to a folder that is not read as part of a source."""
    target = os.path.realpath(path)
    return Path(target).is_dir() and not any(lies_in(target, root) for root in sources)


def without_option(reason: str) -> str:
    """Return why a link was left, in words of a verb that never follows links."""
    return reason.replace(_BY_OPTION + _AS_A_SOURCE, "").replace(_BY_OPTION, "")


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


def look_at(file: Place, *, source: str, follow_into: Sequence[str] = ()) -> OddFile | None:
    """Return what a local path is if it is no plain file.

    None stands for a plain file, a path that does not exist, and a path of another store. The kinds
    are ``folder``, ``special`` (a pipe, a socket, a device), ``link`` (to a file), and
    ``dangling_link`` and ``endless_link``, which lead to no file. A link to a folder is a
    ``folder``, as it is to a broker. A link to a file that is followed (``follow_into``: as of
    ``links_into``) has an empty reason.
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
        return OddFile("link", _why_left(target, source, follow_into) or "", target)
    kind, what = ("folder", "a folder, no file") if stat.S_ISDIR(mode) else ("special", NO_FILE)
    if target is None:
        return OddFile(kind, what)
    return OddFile(kind, f"a link to {as_text(target)}: {what}", as_text(target))
