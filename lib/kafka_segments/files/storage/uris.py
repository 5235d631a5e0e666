"""The parts of URIs; a local path is absolute and has no scheme."""

import re
from collections.abc import Iterable, Sequence

LOCAL_ROOT = "/"
"""What every local path starts with, and no URI."""
_AFTER_SCHEME = "://"
_BEGINS_AS_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CREDENTIALS = re.compile(r":.*@.*", re.DOTALL)

GLOB_SIGN = re.compile(r"[\\*?,{}\[\]]")
"""A sign that Spark takes for part of a pattern in the paths that it is to read."""


def join_uri(*parts: str) -> str:
    """Return a URI joined with relative paths; empty parts are left out."""
    return "/".join(part.rstrip("/") if part != "/" else "" for part in parts if part)


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI, the empty string for a path."""
    scheme, separator, _ = uri.partition(_AFTER_SCHEME)
    return scheme if separator else ""


def misread_uri(text: str) -> str | None:
    """Return why a text that begins as a URI is none, without what may be a secret; None: it is.

    As in RFC 3986, 4.2, a relative path whose first name has a colon is written with ``./``.
    """
    found = _BEGINS_AS_URI.match(text)
    if found is None or text.startswith(_AFTER_SCHEME, found.end(1)):
        return None
    scheme = found[1]
    return f"{scheme}:…: a URI begins with {scheme}://; a path of that name is written ./{scheme}:…"


def without_secrets(text: str) -> str:
    """Return a path or URI as a message may say it: credentials and what follows are left out."""
    return _CREDENTIALS.sub(":…", text)


def split_uri(uri: str) -> tuple[str, str, str]:
    """Return scheme, authority and path of a URI; the path is taken as it stands."""
    scheme, _, rest = uri.partition(_AFTER_SCHEME)
    authority, _, path = rest.partition("/")
    return scheme, authority, path


def root_of(scheme: str, authority: str) -> str:
    """Return the URI of a host or bucket."""
    return f"{scheme}{_AFTER_SCHEME}{authority}"


def last_component(uri: str) -> str:
    """Return the last part of a path or URI."""
    return uri.rstrip("/").rpartition("/")[2]


def folders_below(sources: Sequence[str]) -> dict[str, str]:
    """Return the folder of each source below an index folder; a single source has none."""
    is_single = len(sources) == 1
    return {source: "" if is_single else last_component(source) for source in sources}


def lies_in(path: str, folder: str) -> bool:
    """Tell whether a path or URI is that of a folder, or of something below it."""
    root = folder.rstrip("/")
    return path in (folder, root) or path.startswith(f"{root}/")


def split_below(path: str, folders: Iterable[str]) -> tuple[str, str]:
    """Return the first of some folders that a path lies in, and the path below it.

    Raises:
        ValueError: it lies in none of them.
    """
    folders = tuple(folders)
    for folder in folders:
        if lies_in(path, folder):
            return folder, path[len(folder.rstrip("/")) + 1 :]
    raise ValueError(f"{path} lies in none of {', '.join(folders)}")
