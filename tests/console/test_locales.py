"""Names in every locale: as UTF-8 in files and pipes, escaped where a terminal lacks a letter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.verbs.terminal import Terminal

ASCII = {"PYTHONIOENCODING": "ascii"}


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A log directory with a letter that ASCII has not."""
    folder = tmp_path / "düsk"
    (folder / "orders-0").mkdir(parents=True)
    return folder


def test_a_pipe_gets_utf_8(disk: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafka_segments", "disk", disk, "--output", "json"],
        env={**os.environ, **ASCII},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["log_dir"] == str(disk)


@pytest.mark.parametrize(("variables", "shown"), [(ASCII, "d\\xfcsk"), ({}, "düsk")])
def test_a_terminal_gets_what_it_can_show(
    variables: dict[str, str], shown: str, disk: Path
) -> None:
    terminal = Terminal("triage", "düsk", folder=disk.parent, variables=variables)
    try:
        assert terminal.end() == 1
        assert shown in terminal.said.decode()
    finally:
        terminal.close()


def test_without_colours_nothing_but_text_is_shown(disk: Path) -> None:
    terminal = Terminal("disk", "düsk", folder=disk.parent, variables={"NO_COLOR": "1"})
    try:
        assert terminal.end() == 1
        assert "düsk" in terminal.said.decode()
        assert not any(b"\x1b[3%d" % colour in terminal.said for colour in range(8))
    finally:
        terminal.close()
