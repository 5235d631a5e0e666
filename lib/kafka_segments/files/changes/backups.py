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

They share this module, ``durable_files``, and ``manifests``, which reads all that they note. A
symbolic link is kept as a link; it is never followed.
"""

import os
from pathlib import Path

from kafka_segments.files.changes.manifests import Count, Int64, Name, Part, Sha256
from kafka_segments.files.storage.durable_files import sha256_of


class FileState(Part):
    """A file as it was when it was noted; ``sha256`` is that of ``sha256_of``."""

    name: Name
    size_bytes: Count
    mtime_ns: Int64
    sha256: Sha256


def state_of(path: Path) -> FileState:
    """Return the state of a file; the file is read whole."""
    stat = status_of(path)
    return FileState(
        name=path.name,
        size_bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        sha256=sha256_of(path),
    )


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
