"""Where the time to the first result of a small build goes."""

import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from sections import ROOT, Section

_ROUNDS = 3
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
        "",
    ]
    section.table("process", "s")
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        with tarfile.open(ROOT / "tests" / "golden" / "broker.tar.xz") as archive:
            archive.extractall(folder)
        for name, program in _programs(folder).items():
            rounds = [_timed(program, folder, number) for number in range(1 if quick else _ROUNDS)]
            section.row(name, f"{min(rounds):.1f}")
            section.figures[name] = min(rounds)
    return section


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


def _timed(program: list[str], folder: Path, number: int) -> float:
    target = str(folder / f"target-{number}")
    arguments = [argument.replace("{target}", target) for argument in program]
    started = time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    spent = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-3000:])
    return spent
