"""A command that ends in the middle of a job of Spark, by Ctrl-C or at once: nothing is left."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from processes import MARK, left_in_the_end, living
from ready_builds import ReadyBuild

ENDLESS = "SELECT count(hash(" + ", ".join(f"{n}.path" for n in "abcdefgh") + ")) FROM "
SECONDS = 180
CTRL_C = b"\x03"
INTERRUPTED = b"kafka-segments: interrupted; what was done is kept, run it again"
JVM_KILLED = b"Spark's JVM ended: SIGKILL"

pytestmark = [pytest.mark.slow, pytest.mark.spark]


class End(NamedTuple):
    """A command's end: its status, what the terminal showed, and what it left."""

    status: int
    said: bytes
    processes: list[str]
    files: list[str]


def _ended(warehouse: Path, folder: Path, *, by: str) -> End:
    """Run a query without end at a terminal of its own, and end it when its tasks run."""
    query = ENDLESS + ", ".join(f"segments {name}" for name in "abcdefgh")
    words = ["sql", query, "--warehouse", str(warehouse)]
    here, temporary = folder / "here", folder / "temporary"
    here.mkdir()
    temporary.mkdir()
    terminal, inner = pty.openpty()
    verb = subprocess.Popen(
        ["setsid", "-c", "-w", sys.executable, "-m", "kafka_segments", *words],
        env={**os.environ, MARK: str(folder), "TMPDIR": str(temporary)},
        cwd=here,
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    os.close(inner)
    said, is_ended, until = b"", False, time.monotonic() + SECONDS
    while time.monotonic() < until and verb.poll() is None:
        if select.select([terminal], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):  # the other end is closed
                said += os.read(terminal, 65_536)
        if not is_ended and re.search(rb"\d of \d+ tasks", said):
            assert list(temporary.iterdir())
            if by == CTRL_C.decode():
                os.write(terminal, CTRL_C)
            else:
                found = living(str(folder))
                (victim,) = [pid for pid, line in found.items() if by in line]
                os.kill(victim, signal.SIGKILL)
            is_ended = True
    status = verb.wait(timeout=10)
    os.close(terminal)
    left = left_in_the_end(str(folder))
    return End(
        status, said, left, [str(path) for path in (*here.rglob("*"), *temporary.rglob("*"))]
    )


@pytest.mark.parametrize(
    ("by", "status", "says"),
    [
        (CTRL_C.decode(), 130, INTERRUPTED),
        (f"{sys.executable} -m kafka_segments", -signal.SIGKILL, b""),
        ("/bin/java ", 3, JVM_KILLED),
    ],
    ids=["ctrl-c", "command killed", "jvm killed"],
)
def test_a_command_that_ends_in_a_running_job_leaves_no_traceback_process_or_file(
    broker_build: ReadyBuild, tmp_path: Path, by: str, status: int, says: bytes
) -> None:
    end = _ended(broker_build.warehouse, tmp_path, by=by)

    assert end.status == status, end.said[-2000:]
    assert says in end.said
    assert b"Traceback" not in end.said
    assert end.processes == []
    assert end.files == []
