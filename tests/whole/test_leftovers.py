"""The shell in a session of its own: what it says on stderr, and what it leaves."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.verbs.processes import MARK, left_in_the_end

pytestmark = pytest.mark.slow
_STATUS = re.compile(r"status (\d+), [\d.]+ s")
_LINES = (
    "build --source {logs} {tables} --index-dir {folder}/indexes",
    "sql 'SELECT topic FROM segments' {tables}",
    "retention decide {tables}",
    "validate {tables}",
)


@pytest.mark.long
def test_after_the_shell_no_process_and_no_temporary_file_is_left(
    broker: Path, tmp_path: Path
) -> None:
    places = {
        "logs": broker / "logs",
        "folder": tmp_path,
        "tables": f"--warehouse {tmp_path}/tables --output json --quiet",
    }
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()

    done = subprocess.run(
        [sys.executable, "-m", "kafka_segments", "shell"],
        input="\n".join(line.format(**places) for line in _LINES),
        env={**os.environ, MARK: str(tmp_path), "TMPDIR": str(temporary)},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )

    said = done.stderr.splitlines()
    assert [_STATUS.sub(r"\1", line) for line in said] == ["0"] * len(_LINES)
    assert all(line.startswith("{") for line in done.stdout.splitlines())
    assert left_in_the_end(str(tmp_path)) == []
    assert [*here.rglob("*"), *temporary.rglob("*")] == []
