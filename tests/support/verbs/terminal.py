"""A terminal of its own, with one of our commands in its foreground: keys in, what it shows out."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

CTRL_C, CTRL_D = b"\x03", b"\x04"
_SECONDS = 180
_LINES, _COLUMNS = 24, 100
_WHERE_IS_THE_CURSOR, _AT_THE_TOP = b"\x1b[6n", b"\x1b[1;1R"


class Terminal:
    """The command runs in ``folder`` until it ends or ``close`` is called."""

    def __init__(self, *words: str, folder: Path, variables: Mapping[str, str]) -> None:
        self._screen, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, _COLUMNS, 0, 0))
        self.said = b""
        self._waited_for = 0
        self.command = subprocess.Popen(
            ["setsid", "-c", "-w", sys.executable, "-m", "kafka_segments", *words],
            env={**os.environ, "TERM": "xterm", **variables},
            cwd=folder,
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)

    def type(self, keys: bytes) -> None:
        """Type keys; Ctrl-C among them goes to the whole group in the foreground."""
        os.write(self._screen, keys)

    def shown(self, pattern: bytes) -> str:
        """Wait until something has been shown; return all since the last wait."""
        until = time.monotonic() + _SECONDS
        while not (found := re.compile(pattern).search(self.said, self._waited_for)):
            assert time.monotonic() < until and self._read(), self.said[-3000:]
        begin, self._waited_for = self._waited_for, found.end()
        return self.said[begin : found.end()].decode()

    def end(self) -> int:
        """Read what is shown until nobody has the terminal any more; return the exit status."""
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and self._read():
            pass
        return self.command.wait(timeout=10)

    def close(self) -> None:
        """End the command where it has not ended."""
        if self.command.poll() is None:
            self.command.kill()
            self.command.wait()
        os.close(self._screen)

    def _read(self) -> bool:
        """Read what has come within a moment; tells whether more can come."""
        if not select.select([self._screen], [], [], 0.2)[0]:
            return True
        more = b""
        with contextlib.suppress(OSError):  # the other end is closed
            more = os.read(self._screen, 65_536)
        self.said += more
        if _WHERE_IS_THE_CURSOR in more:
            self.type(_AT_THE_TOP)
        return bool(more)
