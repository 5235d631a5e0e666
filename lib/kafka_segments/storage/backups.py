"""Bring back what was changed: the way back of each verb that changes files.

All of them keep what was there first, then note it, and only then change the place. So a crash
leaves at most a note of something that has not changed yet, and each step can be done again.

- ``build`` replaces index files, on any store: ``index_files`` copies their first bytes to the
  run's set-aside folder, under the same relative path. There is no manifest: copying the files back
  undoes it.
- ``compact`` replaces and removes index files: ``kept_files``, with a manifest of a line for each
  file.
- ``retention`` moves segments out of a log: ``set_aside``, with a manifest for each log.
- ``migrate`` swaps the folder of a log: ``migrate.staged_log``, with a manifest of both folders.
- ``recovery`` replaces index files, cuts a torn tail and advances a checkpoint:
  ``recovery.log_change``, with a note for each log and one of the checkpoint.

They share this module and ``durable_files``. A symbolic link is kept as a link; it is never
followed.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kafka_segments.errors import SetAsideError
from kafka_segments.storage.durable_files import sha256_of, write_durably

_Manifest = TypeVar("_Manifest")


class FileState(NamedTuple):
    """A file as it was when it was noted; ``sha256`` is that of ``sha256_of``."""

    name: str
    size_bytes: int
    mtime_ns: int
    sha256: str


def state_of(path: Path) -> FileState:
    """Return the state of a file; the file is read whole."""
    stat = status_of(path)
    return FileState(path.name, stat.st_size, stat.st_mtime_ns, sha256_of(path))


def status_of(path: Path) -> os.stat_result:
    """Return size and mtime of a path as a broker sees them.

    Those of a link are those of the file that it leads to. A link that leads nowhere has its own:
    it is a name in the folder all the same.

    Raises:
        FileNotFoundError: there is nothing of that name.
    """
    try:
        return path.stat()
    except OSError:
        if not path.is_symlink():
            raise
        return path.lstat()


def is_there(path: Path) -> bool:
    """Tell whether a name exists in its folder; a link does, even if it leads nowhere."""
    return os.path.lexists(path)


def write_manifest(path: Path, content: Mapping[str, Any]) -> None:
    """Write a manifest as JSON; it appears whole and is on disk."""
    write_durably(path, encoded(content))


def encoded(content: Mapping[str, Any]) -> bytes:
    """Return the JSON of a manifest."""
    return json.dumps(content, indent=1).encode()


def read_manifest(path: Path, parse: Callable[[Any], _Manifest]) -> _Manifest:
    """Return what ``parse`` makes of a manifest's JSON.

    Raises:
        SetAsideError: the manifest is not there, or cannot be parsed.
    """
    try:
        return parse(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetAsideError(path, f"no manifest that can be read: {error}") from None
