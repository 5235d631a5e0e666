"""The real shell at a terminal: Ctrl-C in the middle of Spark's job, and a verb after it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.spark.ready_builds import ReadyBuild
from support.verbs.processes import MARK, left_in_the_end
from support.verbs.terminal import CTRL_C, CTRL_D, Terminal

pytestmark = [pytest.mark.slow, pytest.mark.spark]
PROMPT = rb"kafka-segments>"
RUNNING = rb"\d of \d+ tasks"
NAMES = "abcdefgh"
ENDLESS = (
    "sql 'SELECT count(hash("
    + ", ".join(f"{name}.path" for name in NAMES)
    + ")) FROM "
    + ", ".join(f"segments {name}" for name in NAMES)
    + "' --warehouse "
)
COUNTED = "sql 'SELECT count(*) AS counted FROM segments' --output csv --warehouse "


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    folder = str(tmp_path)
    variables = {MARK: folder, "TMPDIR": folder, "XDG_STATE_HOME": folder}
    shell = Terminal("shell", folder=tmp_path, variables=variables)
    yield shell
    shell.close()


def test_ctrl_c_in_a_job_of_spark_ends_the_verb_and_the_next_one_works(
    broker_build: ReadyBuild, terminal: Terminal, tmp_path: Path
) -> None:
    warehouse = f"{broker_build.warehouse}\r".encode()
    terminal.shown(PROMPT)
    terminal.type(ENDLESS.encode() + warehouse)
    terminal.shown(RUNNING)

    terminal.type(CTRL_C)
    interrupted = terminal.shown(rb"status \d+,")
    terminal.shown(PROMPT)
    terminal.type(COUNTED.encode() + warehouse)
    counted = terminal.shown(rb"status \d+,")
    terminal.shown(PROMPT)
    terminal.type(CTRL_D)

    assert terminal.end() == 0
    assert interrupted.endswith("status 130,")
    assert "kafka-segments: interrupted; what was done is kept, run it again" in interrupted
    assert "Traceback" not in interrupted + counted
    assert re.search(r"counted\r?\n24\r?\n", counted), counted
    assert counted.endswith("status 0,")
    assert left_in_the_end(str(tmp_path)) == []
