"""What a user types as a path or URI, told apart without importing Arrow."""

import os
from urllib.parse import unquote, urlsplit

from kafka_segments.errors import UsageError
from kafka_segments.files.storage.local_folder import as_text, is_text
from kafka_segments.files.storage.uris import misread_uri, root_of, scheme_of, without_secrets


def absolute_uri(text: str) -> str:
    """Return what a user typed as a URI; local paths become absolute, without a scheme.

    Raises:
        UsageError: the text is empty or no URI; it names no host or bucket, or a file on another
            host; it has credentials or options.
    """
    if not text:
        raise UsageError("an empty path is no source or target")
    if not is_text(text):
        raise UsageError(f"{as_text(text)}: no UTF-8, tables and URIs cannot name it; rename it")
    if reason := misread_uri(text):
        raise UsageError(reason)
    if not scheme_of(text):
        return _normalized(os.path.expanduser(text))
    from kafka_segments.files.storage.stores import checked_root  # noqa: PLC0415  it needs Arrow

    checked_root(text)
    told = without_secrets(text)
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise UsageError(f"{told}: {error}") from None
    if parts.scheme != "file":
        if "?" in text:
            bare = without_secrets(text.partition("?")[0])
            raise UsageError(
                f"{bare}?…: options in a URI are not taken; region, endpoint and credentials come"
                " from the environment, as docs/storage.md says"
            )
        if not parts.netloc:
            raise UsageError(
                f"{told} names no host or bucket, and no default is looked up, as that of Hadoop's"
                f" fs.defaultFS: {root_of(parts.scheme, 'NAME')}/…"
            )
        if {".", ".."}.intersection(parts.path.split("/")):
            raise UsageError(f"{told}: . and .. are taken as names here; give the folder meant")
        return text.rstrip("/")
    if parts.netloc not in ("", "localhost"):
        host = "" if "@" in text else f" {parts.netloc}"
        raise UsageError(f"{told} names the host{host}: a local path is file:///…")
    return _normalized(unquote(parts.path))


def _normalized(path: str) -> str:
    return "/" + os.path.abspath(path).lstrip("/")  # abspath keeps a double slash in front
