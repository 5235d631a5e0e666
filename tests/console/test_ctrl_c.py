"""A command that ends in the middle of a job of Spark, by a signal: nothing is left."""

import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from support.spark.ready_builds import ReadyBuild
from support.verbs.processes import MARK, left_in_the_end, living
from support.verbs.terminal import CTRL_C, Terminal

ENDLESS = "SELECT count(hash(" + ", ".join(f"{n}.path" for n in "abcdefgh") + ")) FROM "
INTERRUPTED = b"kafka-segments: interrupted; what was done is kept, run it again"
TERMINATED = b"kafka-segments: ended by SIGTERM; what was done is kept, run it again"
COMMAND = f"{sys.executable} -m kafka_segments"
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
    variables = {MARK: str(folder), "TMPDIR": str(temporary)}
    terminal = Terminal(*words, folder=here, variables=variables)
    try:
        terminal.shown(rb"\d of \d+ tasks")
        assert list(temporary.iterdir())
        if by == CTRL_C.decode():
            terminal.type(CTRL_C)
        else:
            name, _, line = by.partition(" ")
            found = living(str(folder))
            (victim,) = [pid for pid, words in found.items() if line in words]
            os.kill(victim, signal.Signals[name])
        status = terminal.end()
    finally:
        terminal.close()
    left = left_in_the_end(str(folder))
    return End(
        status,
        terminal.said,
        left,
        [str(path) for path in (*here.rglob("*"), *temporary.rglob("*"))],
    )


@pytest.mark.parametrize(
    ("by", "status", "says"),
    [
        (CTRL_C.decode(), 130, INTERRUPTED),
        pytest.param(f"SIGTERM {COMMAND}", 143, TERMINATED, marks=pytest.mark.long),
        pytest.param(f"SIGKILL {COMMAND}", -signal.SIGKILL, b"", marks=pytest.mark.long),
        ("SIGKILL /bin/java ", 3, JVM_KILLED),
    ],
    ids=["ctrl-c", "command terminated", "command killed", "jvm killed"],
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
