"""The package as its users have it: the wheel in an environment of its own, run elsewhere."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[3]
PYTHONS = os.environ.get("WHEEL_PYTHONS", sys.executable).split(os.pathsep)
"""Pythons that have what the package needs, of the locked releases: ``make test-wheel``."""
_OF_THE_TESTS = ("PYTHON", "NUMBA_", "PYSPARK_", "SPARK_", "KAFKA_SEGMENTS_", "XDG_", "VIRTUAL_")
_SECONDS = 300


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    return Path(next(iter(WheelBuilder(str(ROOT)).build(directory=str(folder)))))


class InstalledPackage:
    """The wheel in a new environment, which borrows the packages that it needs from another.

    Nothing leads to the checkout but ``KAFKA_SEGMENTS_JARS``: not the folder that commands are run
    in, no variable, and not the environment's own ``.pth`` files, which count only where they lie.
    """

    def __init__(self, wheel: Path, python: str, folder: Path) -> None:
        environment, self.elsewhere = folder / "environment", folder / "elsewhere"
        self.elsewhere.mkdir(parents=True)
        subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
        self.bin = environment / "bin"
        installing = [sys.executable, "-m", "pip", "--python", self.bin / "python", "install"]
        alone = ["-q", "--no-deps", "--no-index", wheel]
        subprocess.run([*installing, *alone], check=True)
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(_said(self.bin / "python", "-c", where))
        (self.packages / "borrowed.pth").write_text(_said(python, "-c", where), "utf-8")
        self._variables = {
            **{key: text for key, text in os.environ.items() if not key.startswith(_OF_THE_TESTS)},
            "HOME": str(folder / "home"),
            "KAFKA_SEGMENTS_JARS": str(ROOT / "jars"),
            "KAFKA_SEGMENTS_CLASS_ARCHIVE": "off",
        }

    def run(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment to its end, in a folder that is nobody's."""
        return subprocess.run(
            [self.bin / program, *map(str, arguments)],
            cwd=self.elsewhere,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )


def _said(*command: str | Path) -> str:
    words: Sequence[str | Path] = command
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
