"""Where the time to the first result of a small build goes."""

import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sections import ROOT, Section

from kafka_segments.class_archive import make_class_archive
from kafka_segments.spark.archive import class_archive
from kafka_segments.spark.jars import jars_of

_ROUNDS = 3
_STEPS = re.compile(r"in [0-9.]+ s \(.*\)")
_SEGMENTS_PROGRAM = [sys.executable, "-m", "kafka_segments"]
_SESSION = """
from pathlib import Path
from kafka_segments.spark.session import spark_session
with spark_session("bench", root=Path({root!r})) as spark:
    {work}
"""
_ONE_ROW = "spark.range(1).write.format('delta').save({target!r})"


def bench_first_result(*, quick: bool) -> Section:
    """Build the sample segments in new processes, beside Spark doing next to nothing."""
    section = Section("Time to the first result")
    section.lines += [
        "`kafka-segments build` of the repository's sample, 24 segments, from the shell's prompt"
        f" back to it, compiled code cached; the quickest of {_ROUNDS}. The lines above it are what"
        " such a build cannot do without, each in a new process too.",
        "*Archive*: with the classes that commands keep for later ones' JVMs.",
        "",
    ]
    archive = class_archive(ROOT, jars_of(ROOT))
    make_class_archive(ROOT)
    section.table("process", "s", "s with archive")
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        with tarfile.open(ROOT / "tests" / "golden" / "broker.tar.xz") as sample:
            sample.extractall(folder)
        rounds = range(1 if quick else _ROUNDS)
        for name, program in _programs(folder).items():
            with _without(archive):
                plain, told = min(_timed(program, folder) for _ in rounds)
            archived, _ = min(_timed(program, folder) for _ in rounds)
            has_archive = archive.exists()
            section.row(name, f"{plain:.1f}", f"{archived:.1f}" if has_archive else "-")
            section.figures[name] = plain
    steps = _STEPS.search(told)
    if steps is not None:
        section.lines.append("")
        section.say(
            f"The build's own work, without the archive, was done {steps[0]}; the rest is the"
            " start of Python and of Spark, and the session's end."
        )
    return section


@contextmanager
def _without(archive: Path) -> Iterator[None]:
    """Hide the archive for a while."""
    hidden = archive.with_suffix(".hidden")
    if archive.exists():
        archive.rename(hidden)
    try:
        yield
    finally:
        if hidden.exists():
            hidden.rename(archive)


def _programs(folder: Path) -> dict[str, list[str]]:
    def session(work: str) -> list[str]:
        return [sys.executable, "-c", _SESSION.format(root=str(ROOT), work=work)]

    command = [*_SEGMENTS_PROGRAM, "build", "--source", str(folder / "broker" / "logs")]
    targets = ["--index-dir", "{target}/indexes", "--warehouse", "{target}/warehouse"]
    return {
        "`kafka-segments --help`": [*_SEGMENTS_PROGRAM, "--help"],
        "a Spark session, started and stopped": session("spark.range(1).count()"),
        "the same, and one Delta table of one row": session(_ONE_ROW.format(target="{target}")),
        "`kafka-segments build`": [*command, *targets],
    }


def _timed(program: list[str], folder: Path) -> tuple[float, str]:
    """Give the seconds that a program takes, and what it says on stderr."""
    target = tempfile.mkdtemp(dir=folder) + "/made"
    arguments = [argument.replace("{target}", target) for argument in program]
    started = time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    spent = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-3000:])
    return spent, done.stderr
