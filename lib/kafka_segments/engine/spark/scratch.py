"""The folder of what a session's JVM needs for a while: sockets, libraries, what it shuffles.

Left to itself the JVM puts that into ``/tmp``, whatever TMPDIR says, and an empty folder of tables
where it was started. A JVM that is killed leaves all of it behind; a later process removes it.
"""

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_PREFIX = "ks-"
_OWNER = "kafka-segments.owner"  # locked by the process whose folder it is, as long as it lives
_DAY_SECONDS = 86_400  # a JVM may live on for a while when its process was killed
_SOCKET = f".{'0' * 36}.sock"  # as Spark and PySpark name theirs
_LONGEST_SOCKET = 103  # bytes of a path, where it is shortest: macOS


@cache
def scratch_folder() -> Path:
    """Return the folder of this process, made at the first call and removed when it ends.

    There is one a process, as PySpark starts one JVM, which outlives its sessions.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    owner = os.open(folder / _OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(owner, fcntl.LOCK_EX)  # the kernel lets go of it when the process ends
    # systemd-tmpfiles leaves a folder alone that is locked itself, and what lies below it.
    fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), fcntl.LOCK_SH)
    remove_left(folder.parent, before=folder.stat().st_mtime - _DAY_SECONDS)
    atexit.register(_remove, folder, os.getpid())
    return folder


def remove_left(parent: Path, *, before: float) -> None:
    """Remove the folders of this user's processes that were killed; younger ones stay.

    ``before``: in seconds since 1970. Folders without our own locked file are not ours.
    """
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if _is_left(folder, before):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path, before: float) -> bool:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    owner = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(owner).st_mtime < before
    finally:
        os.close(owner)


def scratch_settings(folder: Path) -> dict[str, str]:
    """Return the settings by which a session keeps to the folder, but for the JVM's own option.

    Where its path is too long for sockets in it, the JVM and Python's workers talk over TCP.
    """
    settings = {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri()}
    if len(os.fsencode(folder / _SOCKET)) > _LONGEST_SOCKET:
        settings["spark.python.unix.domain.socket.enabled"] = "false"
    return settings


def let_jvm_remove(spark: SparkSession, folder: Path) -> None:
    """Have the JVM remove the folder when it ends: this process may be killed before it."""
    jvm: Any = spark.sparkContext._jvm
    hooks = jvm.org.apache.spark.util.ShutdownHookManager
    hooks.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))


def _remove(folder: Path, owner: int) -> None:
    """Remove it; a process that was forked from its owner ends without."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
