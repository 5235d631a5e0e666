"""What every section of the benchmarks shares: its shape, its files, its own process."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from segments import batch, write_segment

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / "build" / "bench"
GB = 1e9
ROUNDS = 5
BATCHES = {"16 KB": 16 * 1024, "1 KB": 1024, "100 B": 100}
sys.path.insert(0, str(ROOT / "tests"))


@dataclass
class Section:
    """One section of the report: Markdown, and the figures that plots and the model take."""

    title: str
    lines: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def say(self, line: str) -> None:
        """Add a line, and show it to who waits."""
        self.lines.append(line)
        print(line, flush=True)

    def table(self, *columns: str) -> None:
        """Begin a table."""
        self.lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]

    def row(self, *cells: str) -> None:
        """Add a row of a table."""
        self.say(f"| {' | '.join(cells)} |")


def best(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Give the seconds of the quickest round."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def read_only(files: list[Path]) -> None:
    """Read files into one buffer and do nothing with them: the machine's limit."""
    buffer = memoryview(bytearray(1 << 20))
    for file in files:
        with file.open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass


def drop_from_cache(files: list[Path]) -> None:
    """Make the next read come from the disk."""
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def log_directory(
    *,
    batch_bytes: int,
    files: int,
    each: int,
    make: Callable[[int, int, int], bytes] = batch,
) -> Iterator[list[Path]]:
    """Make a log directory of ``files`` partitions with one segment each; removed in the end."""
    folder = SCRATCH / "logs"
    made = []
    for number in range(files):
        made.append(folder / f"bench-{number}" / f"{0:020d}.log")
        write_segment(made[-1], batch_bytes=batch_bytes, size_bytes=each, make=make)
    try:
        yield made
    finally:
        shutil.rmtree(folder)


def job(
    source: Path, *options: str, tree: Path = ROOT, scratch: Path = SCRATCH
) -> dict[str, float]:
    """Run ``job.py`` over a source in a new process; gives the figures that it prints.

    ``options``: without ``--cores`` it takes ``usable_cores``.
    ``tree``: the checkout whose program and package are run.
    ``scratch``: where it writes index files and tables, which go in the end.
    """
    if "--cores" not in options:
        options = (*options, "--cores", str(usable_cores()))
    scratch.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, str(tree / "benchmarks" / "job.py")]
    done = subprocess.run(
        [*program, str(source), str(scratch / "job"), *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": str(tree / "lib")},
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


@cache
def usable_cores() -> int:
    """Return how many cores this process may use; counted once."""
    return len(os.sched_getaffinity(0))


def machine() -> str:
    """Say what this machine is."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{usable_cores()} cores ({model}), {memory:.0f} GiB, {platform.platform()}"
