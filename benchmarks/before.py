"""Measure an older revision and this one in turn, in one run: ``bench.py --before REVISION``.

Each side of a measure is a process of its own with its own revision's package. The same files are
read by both. Builds, decisions and searches are those of the revision's own benchmarks, whose names
of figures stay; single segments are read by ``sides.py``. What a revision cannot do is ``-``.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from kernel import SHAPES
from many import write_many
from sections import BATCHES, GB, ROOT, SCRATCH, Section, job, log_directory
from stores import BUCKET, PAUSE_MS, s3_server

from kafka_segments.engine.spark.archive import SWITCH
from segments import write_segment

SIDES = ("before", "now")
_ROUNDS = 5
_FILES = 8
_MEMORY = Path("/dev/shm")  # a file system in memory, where there is one
_SAID = {
    "many": [
        " The segments and all that is written lie in memory: on a disk its journal decides how"
        " long the names of so many new files take, and it takes twice as long at one time as at"
        " another."
    ]
}
Figures = Mapping[str, float]


class Measure(NamedTuple):
    """A figure: what it is of, its name for the reader, and whether more is better."""

    name: str
    unit: str
    is_rate: bool


Found = dict[Measure, dict[str, float]]
"""The best figure of each side; a side that could not do it is missing."""


class Trees(NamedTuple):
    """Where the two revisions lie."""

    before: Path
    now: Path

    def in_turn(self, rounds: int) -> Iterator[tuple[str, Path]]:
        """Give each side's name and folder, round after round, with all written to the disk.

        Every other round begins with this revision: a side that always came second would find
        what the first one left in memory.
        """
        for number in range(rounds):
            sides = list(zip(SIDES, self, strict=True))
            for side in reversed(sides) if number % 2 else sides:
                os.sync()
                yield side


def bench_before(name: str, revision: str, *, quick: bool) -> Section:
    """Compare a section of an older revision with that of this one."""
    section = Section(f"Before and now: {name}")
    section.lines += [
        f"An older revision, {_commit(revision)}, and this one in turn, in one run, on the same"
        " files. Each measure is a process of its own; the best of each side is taken. Both do"
        " without the archive of classes, which a command would make for the older one meanwhile.",
        *_SAID.get(name, ()),
        "",
    ]
    section.table("measure", "before", "now", "times as good")
    with patch.dict(os.environ, {SWITCH: "off"}), _worktree(revision) as before:
        trees = Trees(before, ROOT)
        _compile(trees)
        found = COMPARED[name](trees, quick=quick)
    for measure, sides in found.items():
        _row(section, measure, sides)
    return section


def _row(section: Section, measure: Measure, sides: Mapping[str, float]) -> None:
    before, now = map(sides.get, SIDES)
    times = "-"
    if before and now:
        times = f"**{now / before if measure.is_rate else before / now:.1f}x**"
    texts = (
        "-" if value is None else f"{value:,.4g} {measure.unit}".rstrip() for value in (before, now)
    )
    section.row(measure.name, *texts, times)
    for side, value in sides.items():
        section.figures[f"{side} {measure.name}"] = value


def _commit(revision: str) -> str:
    command = ["git", "log", "-1", "--format=%h of %cs", revision]
    return subprocess.check_output(command, cwd=ROOT, text=True).strip()


@contextmanager
def _worktree(revision: str) -> Iterator[Path]:
    """Check a revision out beside this one, with the same environment and JARs."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=SCRATCH)) / "before"
    git = ["git", "worktree"]
    subprocess.run(
        [*git, "add", "--quiet", "--detach", str(folder), revision], cwd=ROOT, check=True
    )
    try:
        for name in ("jars", ".venv"):
            if not (folder / name).exists():
                (folder / name).symlink_to((ROOT / name).resolve())
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], cwd=ROOT, check=True)
        folder.parent.rmdir()


def _compile(trees: Trees) -> None:
    """Let both sides compile what they call, by a build of one segment."""
    with log_directory(batch_bytes=1024, files=1, each=64 * 1024) as files:
        for tree in trees:
            job(files[0].parent.parent, "--once", tree=tree)


def _ran(tree: Path, *command: str) -> Figures | None:
    """Run a program with a revision's package; give what it prints last, None if it fails."""
    paths = [tree / "lib", tree / "benchmarks", tree / "tests"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, *command], env=env, cwd=tree, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _take(found: Found, side: str, measure: Measure, value: float | None) -> None:
    """Keep a figure if it is the best of its side."""
    if value is not None:
        sides = found.setdefault(measure, {})
        best = max if measure.is_rate else min
        sides[side] = best(value, sides.get(side, value))


def _side(tree: Path, what: str, *given: str) -> Figures | None:
    return _ran(tree, str(Path(__file__).with_name("sides.py")), what, *given)


def _kernel(trees: Trees, *, quick: bool) -> Found:
    found: Found = {}
    size = (32 << 20) if quick else (1 << 30)
    for name, (make, batch_bytes) in SHAPES.items():
        with log_directory(batch_bytes=batch_bytes, files=1, each=size, make=make) as files:
            for side, tree in trees.in_turn(2 if quick else _ROUNDS):
                took = _side(tree, "kernel", str(files[0]))
                rate = None if took is None else took["bytes"] / took["seconds"] / GB
                _take(found, side, Measure(name, "GB/s", is_rate=True), rate)
    return found


def _job(trees: Trees, *, quick: bool) -> Found:
    found: Found = {}
    size = (256 << 20) if quick else (8 << 30)
    for name, batch_bytes in BATCHES.items():
        with log_directory(batch_bytes=batch_bytes, files=_FILES, each=size // _FILES) as files:
            for side, tree in trees.in_turn(1 if quick else 2):
                ran = job(files[0].parent.parent, tree=tree)
                for figure, told in (("scan", "scan job"), ("build", "warm build")):
                    measure = Measure(f"{told}, {name}", "s", is_rate=False)
                    _take(found, side, measure, ran[figure])
    return found


def _many(trees: Trees, *, quick: bool) -> Found:
    """Build many small segments, in memory where it has a file system."""
    found: Found = {}
    for count in (100, 1_000) if quick else (1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else SCRATCH) as root:
            folder = Path(root)
            write_many(folder / "many", count)
            for side, tree in trees.in_turn(2):
                ran = job(folder / "many", "--once", tree=tree, scratch=folder)
                for figure, told in (("first", "first build"), ("unchanged", "nothing changed")):
                    measure = Measure(f"{told}, {count:,} segments", "s", is_rate=False)
                    _take(found, side, measure, ran[figure])
    return found


def _stores(trees: Trees, *, quick: bool) -> Found:
    found: Found = {}
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=SCRATCH)))
        for number in range(_FILES):
            file = root / BUCKET / "few" / f"topic-{number}" / f"{0:020d}.log"
            write_segment(file, batch_bytes=16_384, size_bytes=2**23 if quick else 2**28)
        stack.enter_context(s3_server(root))
        measure = Measure(f"one task, {PAUSE_MS} ms a request", "MB/s", is_rate=True)
        for side, tree in trees.in_turn(1 if quick else _ROUNDS):
            took = _side(tree, "store", f"s3://{BUCKET}/few")
            rate = None if took is None else took["bytes"] / took["seconds"] / 1e6
            _take(found, side, measure, rate)
    return found


def _own(module: str) -> Callable[..., Found]:
    """Return what compares the figures of a section as each revision measures it itself."""

    def compare(trees: Trees, *, quick: bool) -> Found:
        found: Found = {}
        call = f"{module}.bench_{module}(quick={quick}).figures"
        program = f"import json, {module}\nprint(json.dumps({call}))"
        for side, tree in trees.in_turn(1):
            for name, value in (_ran(tree, "-c", program) or {}).items():
                _take(found, side, Measure(name, "", is_rate=False), value)
        return found

    return compare


COMPARED: dict[str, Callable[..., Found]] = {
    "kernel": _kernel,
    "job": _job,
    "many": _many,
    "stores": _stores,
    "decisions": _own("decisions"),
    "search": _own("search"),
    "upkeep": _own("upkeep"),
}
