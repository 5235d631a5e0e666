"""The line of docs/machines.md that cron runs: a file for node_exporter appears whole, or stays."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.verbs.figures import read_figures

ROOT = Path(__file__).resolve().parents[2]


def _line(folder: Path, source: Path) -> str:
    page = (ROOT / "docs" / "machines.md").read_text("utf-8")
    line = next(line for line in page.splitlines() if line.startswith("*/15 * * * * kafka "))
    assert "%" not in line  # a new line, to cron
    command = line.removeprefix("*/15 * * * * kafka ")
    places = {"/var/lib/node_exporter/textfile": folder, "/data/kafka-logs": source}
    for place, here in places.items():
        assert command.count(place) == 1
        command = command.replace(place, str(here))
    return command


def _run(folder: Path, source: Path, bin_folder: Path) -> dict[str, str]:
    """Run the line as cron does, and return the files that it leaves."""
    subprocess.run(
        ["/bin/sh", "-c", _line(folder, source)],
        env={"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(folder)},
        check=False,
        timeout=300,
    )
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "textfile").mkdir()
    (tmp_path / "textfile" / "triage.prom").write_text("old\n")
    return tmp_path / "textfile"


@pytest.mark.long
def test_it_puts_the_figures_of_a_node_there(folder: Path, node: Path, tmp_path: Path) -> None:
    (tmp_path / "kafka-segments").write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT}/lib exec {sys.executable} -m kafka_segments "$@"\n'
    )
    (tmp_path / "kafka-segments").chmod(0o755)

    left = _run(folder, node, tmp_path)

    assert set(left) == {"triage.prom"}
    read = read_figures(left["triage.prom"])
    assert read["exit_status"] == {(str(node), "triage"): 0}
    assert set(read["triage_starts"].values()) == {1}


@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        ("echo new; exit 0", "new\n"),
        ("echo new; exit 1", "new\n"),
        ("echo new; exit 3", "new\n"),
        ("exit 2", "old\n"),
        ("echo half; kill -9 $$", "old\n"),
        ("echo half; exit 120", "old\n"),
    ],
)
def test_what_was_cut_short_is_not_put_there(
    folder: Path, tmp_path: Path, ends: str, kept: str
) -> None:
    verb = tmp_path / "kafka-segments"
    verb.write_text(f"#!/bin/sh\n{ends}\n")
    verb.chmod(0o755)

    assert _run(folder, tmp_path, tmp_path) == {"triage.prom": kept}
