"""The recipe of docs/kubernetes.md: its image's last step as root, its script as another user."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LIBRARY, ROOT
from support.house.other_user import give, open_folder, require_other_user, run_as_other
from support.verbs.recovery_kits import crashed_log

pytestmark = pytest.mark.long  # all is compiled anew
CASE = "v2-txn-interleaved-multi-segment"
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()


class _Recipe:
    """The recipe with the paths of an image's file system below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        (folder / "tmp").mkdir()
        shutil.copytree(
            LIBRARY, folder / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.nb[ic]")
        )
        script = folder / "bin" / "kafka-segments"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m kafka_segments "$@"\n')
        script.chmod(0o755)
        pairs = re.search(r"^ENV (.*)$", PAGE, re.MULTILINE)
        assert pairs is not None
        self._environment = {
            **dict(pair.split("=") for pair in pairs[1].split()),
            "PATH": f"{script.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder / "lib"),
        }

    def compile(self) -> None:
        step = re.search(r"(?<=&& )mkdir -p /tmp/logs.*?(?=\n```)", PAGE, re.DOTALL)
        assert step is not None
        text = step[0].replace("/tmp/", f"{self.folder}/tmp/")
        home = {"HOME": str(self.folder / "tmp")}
        subprocess.run(["sh", "-c", text], env=self._environment | home, check=True)

    def start(self) -> subprocess.CompletedProcess[str]:
        script = re.search(r"(?<=      - \|\n).*?(?=    volumeMounts)", PAGE, re.DOTALL)
        assert script is not None
        text = script[0].replace("/var/lib/kafka", str(self.data))
        text = text.replace("/dev/termination-log", str(self.data / "termination-log"))
        environment = self._environment | {"TMPDIR": str(self.data)}
        return run_as_other(["sh", "-c", text], environment, self.data)


@pytest.fixture(scope="module")
def recipe() -> Iterator[_Recipe]:
    require_other_user()
    with open_folder(Path("/tmp")) as folder:
        recipe = _Recipe(folder)
        recipe.compile()
        yield recipe


@pytest.fixture
def disks(recipe: _Recipe, synthetic: Path) -> Iterator[list[Path]]:
    """Two log directories of a crashed broker, which the other user owns."""
    recipe.data.mkdir()
    logs = [recipe.data / f"data-{number}" / "logs" for number in range(2)]
    for log_dir in logs:
        crashed_log(log_dir, synthetic / CASE / "t-0", torn=bytes(100))
    give(recipe.data)
    yield logs
    shutil.rmtree(recipe.data)


def _point(log_dir: Path) -> str:
    return (log_dir / "recovery-point-offset-checkpoint").read_text().splitlines()[3]


def test_any_user_makes_and_applies_a_kit_a_disk_and_compiles_nothing(
    recipe: _Recipe, disks: list[Path]
) -> None:
    done = recipe.start()

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("t-0: done") == 2, done.stderr
    assert "NO KIT" not in done.stderr
    assert all(_point(log_dir) != "t 0 0" for log_dir in disks)
    compiled = recipe.data.glob("kafka-segments-compiled-*/**/*.nbc")
    assert sorted(path.name for path in compiled) == []


def test_a_disk_without_a_kit_is_said_and_stops_nothing(recipe: _Recipe, disks: list[Path]) -> None:
    (disks[0].parent / "kits").write_text("no folder")

    done = recipe.start()

    assert done.returncode == 0
    said = f"NO KIT for {disks[0]} (status "
    assert said in done.stderr
    assert said in (recipe.data / "termination-log").read_text()
    assert (_point(disks[0]), _point(disks[1]) != "t 0 0") == ("t 0 0", True)


def test_after_a_clean_stop_nothing_is_read(recipe: _Recipe, disks: list[Path]) -> None:
    for log_dir in disks:
        (log_dir / ".kafka_cleanshutdown").touch()

    done = recipe.start()

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
