"""The folder of what a session needs for a while: one a process, gone when it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_segments.spark import scratch


def _last_act(program: str, folder: Path) -> str:
    """Run a program whose temporary folder is ``folder``; return what it prints."""
    head = "from kafka_segments.spark.scratch import scratch_folder\n"
    return subprocess.run(
        [sys.executable, "-c", head + program],
        env={"TMPDIR": str(folder), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_it_lies_where_tmpdir_says_and_is_gone_when_its_process_ends(tmp_path: Path) -> None:
    said = _last_act(
        "folder = scratch_folder()\n"
        "(folder / 'spark').mkdir()\n"
        "(folder / 'spark' / 'x').touch()\n"
        "print(folder.parent, folder == scratch_folder())\n",
        tmp_path,
    )

    assert said == f"{tmp_path} True\n"
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_forked_leaves_it(tmp_path: Path) -> None:
    said = _last_act(
        "import os, sys\n"
        "folder = scratch_folder()\n"
        "if not os.fork():\n    sys.exit()\n"
        "os.wait()\n"
        "print(folder.is_dir())\n",
        tmp_path,
    )

    assert said == "True\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("length", "is_short"), [(60, True), (61, False)])
def test_where_its_path_is_too_long_there_are_no_sockets_in_it(length: int, is_short: bool) -> None:
    folder = Path("/" + "f" * (length - 1))

    settings = scratch.scratch_settings(folder)

    assert settings["spark.sql.warehouse.dir"] == f"file://{folder}/warehouse"
    key = "spark.python.unix.domain.socket.enabled"
    assert settings.get(key) == (None if is_short else "false")
