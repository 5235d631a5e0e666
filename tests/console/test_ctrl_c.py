"""Ctrl-C at a terminal, in the middle of a job of Spark: one line, status 130, nothing left."""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ready_builds import ReadyBuild

ENDLESS = "SELECT count(hash(" + ", ".join(f"{n}.path" for n in "abcdefgh") + ")) FROM "
SECONDS = 180
CTRL_C = b"\x03"
MARK = "KAFKA_SEGMENTS_CTRL_C_TEST"


def _marked(mark: str) -> list[str]:
    """Return the command lines of living processes that have inherited the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in found if line]


@pytest.mark.slow
def test_ctrl_c_in_a_running_job_leaves_no_traceback_and_no_process(
    broker_build: ReadyBuild, tmp_path: Path
) -> None:
    query = ENDLESS + ", ".join(f"segments {name}" for name in "abcdefgh")
    words = ["sql", query, "--warehouse", str(broker_build.warehouse)]
    mark = f"{MARK}={tmp_path}"
    terminal, inner = pty.openpty()
    verb = subprocess.Popen(
        ["setsid", "-c", "-w", sys.executable, "-m", "kafka_segments", *words],
        env={**os.environ, MARK: str(tmp_path)},
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    os.close(inner)
    said, is_sent, until = b"", False, time.monotonic() + SECONDS
    while time.monotonic() < until and verb.poll() is None:
        if select.select([terminal], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):  # the other end is closed
                said += os.read(terminal, 65_536)
        if not is_sent and re.search(rb"\d of \d+ tasks", said):
            os.write(terminal, CTRL_C)
            is_sent = True
    status = verb.wait(timeout=10)
    while time.monotonic() < until and _marked(mark):
        time.sleep(0.2)

    assert status == 130
    assert b"kafka-segments: interrupted; what was done is kept, run it again" in said
    assert b"Traceback" not in said
    assert _marked(mark) == []
