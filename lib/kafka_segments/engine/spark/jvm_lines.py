"""What Spark's JVM prints by itself: kept aside, shown where it ends before its time."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_segments.kafka.text.plain_text import plain

_MOST_LINES = 20
_MOST_BYTES = 64 * 1024


class JvmLines:
    """Where a JVM that is about to start writes, stdout and stderr alike.

    With messages of level INFO (``--verbose``) that is stderr. A file without a name otherwise:
    warnings about Java's modules and of Ivy tell a user nothing, and what fails in a task is told
    as an error of the command.
    """

    def __init__(self) -> None:
        is_shown = logging.getLogger().isEnabledFor(logging.INFO)
        self._file = None if is_shown else tempfile.TemporaryFile()  # noqa: SIM115  the JVM's, too

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let what is started meanwhile inherit it as stdout and stderr."""
        sys.stdout.flush()
        sys.stderr.flush()
        before = os.dup(1), os.dup(2)
        os.dup2(2 if self._file is None else self._file.fileno(), 1)
        os.dup2(1, 2)
        try:
            yield
        finally:
            for number, kept in enumerate(before, start=1):
                os.dup2(kept, number)
                os.close(kept)

    def close(self) -> None:
        """Close our side of it; a JVM that is still ending has its own."""
        if self._file is not None:
            self._file.close()

    def text(self) -> str:
        """Return what it wrote, the first and last of much; empty where that went to stderr."""
        if self._file is None:
            return ""
        size = os.fstat(self._file.fileno()).st_size
        last = max(0, size - _MOST_BYTES)
        data = os.pread(self._file.fileno(), min(_MOST_BYTES, last), 0)
        data += os.pread(self._file.fileno(), _MOST_BYTES, last)
        return data.decode("utf-8", "replace")

    def show(self) -> None:
        """Write the last lines on stderr: they say why the JVM ended."""
        lines = self.text().splitlines()[-_MOST_LINES:]
        sys.stderr.write("".join(f"{plain(line)}\n" for line in lines))
