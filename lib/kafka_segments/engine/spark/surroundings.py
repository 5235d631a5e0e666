"""What keeps a local session's JVM from starting and need not: set aside before it starts."""

import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_segments.engine.spark.home import foreign_home
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.plain_text import plain

LOOPBACK = "127.0.0.1"
_MOST_FILES = 1 << 16  # where the hard limit is none


def allow_open_files() -> None:
    """Raise this process's limit of open files to the highest that it may have, up to 65,536."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def require_temporary_folder() -> None:
    """Refuse to go on where no folder takes temporary files.

    Raises:
        UsageError: all folders are full, or not writable for this user.
    """
    try:
        tempfile.gettempdir()
    except OSError:
        raise UsageError(
            "no folder takes temporary files, neither TMPDIR nor /tmp, /var/tmp or this one: they"
            " are full, or not writable for this user; make room, or set TMPDIR to one of yours"
        ) from None


def require_current_folder() -> None:
    """Refuse to go on where the folder is gone that this process was started in: Spark needs one.

    Raises:
        UsageError: it is gone.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the folder in which this was started is gone: change to another one, such as `cd /`"
        ) from None


@contextmanager
def without_strangers() -> Iterator[None]:
    """Within a block, leave a foreign SPARK_HOME aside, and need no name of this machine."""
    before = dict(os.environ)
    foreign = foreign_home()
    if foreign is not None:
        told = f"{foreign}: left aside, PySpark's own Spark is taken; unset SPARK_HOME"
        sys.stderr.write(f"kafka-segments: {plain(told)}\n")
        del os.environ["SPARK_HOME"]
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    try:
        yield
    finally:
        for name in ("SPARK_HOME", "SPARK_LOCAL_IP"):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
