"""A commit of Spark's that is held between its look at the version and its rename."""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp

import pyspark

ROOT = Path(__file__).resolve().parents[3]
_SOURCE = ROOT / "tests" / "hadoop" / "HeldRenames.java"
_JARS = Path(pyspark.__file__).with_name("jars")
_PATIENCE_SECONDS = 900


class HeldCommits:
    """Holds, in a ``with`` statement, a table's commits by sessions that have the ``settings``."""

    def __init__(self, folder: Path, table: Path) -> None:
        folder = Path(mkdtemp(dir=folder))
        classes = folder / "classes"
        compiling = ["javac", "-d", str(classes), "-cp", f"{_JARS}/*", str(_SOURCE)]
        subprocess.run(compiling, check=True)
        self.settings: Mapping[str, str] = {
            "spark.driver.extraClassPath": str(classes),
            "spark.hadoop.fs.AbstractFileSystem.file.impl": "HeldRenames",
            "spark.hadoop.held.folder": str(folder),
            "spark.hadoop.held.commits": str(table / "_delta_log"),
        }
        self._hold, self._held = folder / "hold", folder / "held"
        self._lock = table.parent / "_locks" / f"{table.name}.commits"

    def __enter__(self) -> None:
        self._hold.touch()

    def wait_for_one(self) -> str:
        """Wait until a commit is held; return the name of its file."""
        _wait_until(self._held.exists, "no commit came")
        return self._held.read_text()

    def wait_for_another(self, is_done: Callable[[], bool]) -> None:
        """Wait until another run waits for the lock of the table's commits, or is done."""
        _wait_until(lambda: is_done() or _is_waited_for(self._lock), "no other run came")

    def __exit__(self, *_: object) -> None:
        self._hold.unlink()


def _is_waited_for(lock: Path) -> bool:
    """Ask the kernel, whose table has lines as ``1: -> FLOCK ADVISORY WRITE pid device:inode``."""
    waiting = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    inode = f":{lock.stat().st_ino}"
    return any("->" in words and words[6].endswith(inode) for words in waiting)


def _wait_until(comes: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not comes():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)
