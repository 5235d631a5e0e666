"""How long a person waits for each verb: in a process of its own, and in a session that is warm."""

import contextlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from sections import ROOT, Section

from kafka_segments.class_archive import make_class_archive
from kafka_segments.cli import cli
from kafka_segments.spark.session import spark_session

_ROUNDS = 3
_NOW = ["--now-ms", "1795000000000"]
_BARE = """
from pathlib import Path
from kafka_segments.spark.session import spark_session
with spark_session("bench", root=Path({root!r})) as spark:
    spark.read.format("delta").load({table!r}).count()
"""


def bench_at_hand(*, quick: bool) -> Section:
    """Run each verb on the sample segments, cold and warm, beside Spark doing next to nothing."""
    section, count = Section("At hand: each verb on 24 segments"), 1 if quick else _ROUNDS
    section.lines += [
        "The repository's sample of 24 segments. *Cold*: in a process of its own, from the shell's"
        " prompt back to it, with the archive of classes. *Of bare*: as a multiple of a bare"
        " session, which starts, counts one Delta table and stops. *Warm*: in a session that has"
        " run the verb before, with the Spark jobs and SQL executions of that run. The quickest of"
        f" {count} each.",
        "",
    ]
    make_class_archive(ROOT)
    rounds = range(count)
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        with tarfile.open(ROOT / "tests" / "golden" / "broker.tar.xz") as sample:
            sample.extractall(folder, filter="data")
        verbs = _verbs(folder)
        cold = {name: min(_cold(name, verbs[name], folder) for _ in rounds) for name in verbs}
        bare_program = _BARE.format(root=str(ROOT), table=str(folder / "warehouse" / "segments"))
        bare = min(_seconds([sys.executable, "-c", bare_program]) for _ in rounds)
        section.table("verb", "cold s", "of bare", "warm s", "jobs", "SQL executions")
        section.row("a bare session", f"{bare:.1f}", "1", "-", "-", "-")
        with spark_session("bench", root=ROOT, is_long=True) as spark:
            warm = {name: _warm(spark, name, verbs[name], folder, len(rounds)) for name in verbs}
    for name, (seconds, jobs, queries) in warm.items():
        ratio = cold[name] / bare
        section.row(
            name,
            f"{cold[name]:.1f}",
            f"**{ratio:.1f}x**",
            f"{seconds:.1f}",
            str(jobs),
            str(queries),
        )
        section.figures |= {f"cold {name}": ratio, f"warm {name}": seconds}
    return section


def _verbs(folder: Path) -> dict[str, list[str]]:
    """Return the arguments of each verb, the first build first."""
    source = ["--source", str(folder / "broker" / "logs")]
    tables = ["--warehouse", str(folder / "warehouse")]
    build = ["build", *source, *tables, "--index-dir", str(folder / "indexes")]
    query = "SELECT topic, count(*) FROM segments GROUP BY topic"
    of_topic = [*tables, "--topic", "ct-two-partitions"]
    return {
        _FIRST: build,
        "build, nothing changed": build,
        "sql": ["sql", *tables, query],
        "explain": ["retention", "explain", "ct-two-partitions-0", *tables, *_NOW],
        "search": ["search", *of_topic, "--time", "2026-01-31T14:00:00Z"],
        "retention": ["retention", *tables, *_NOW],
        "roll": ["roll", *tables, *_NOW],
        "audit": ["audit", *source, *tables],
        "report": ["report", *tables, *_NOW, "--out", str(folder / "report.html")],
        "migrate inventory": ["migrate", "inventory", *tables, *_NOW],
        "validate": ["validate", *tables, *_NOW],
        "compact": ["compact", *tables],
    }


_FIRST = "build, the first"


def _prepare(name: str, folder: Path) -> None:
    """Remove what builds made, before a first one."""
    if name == _FIRST:
        for made in ("warehouse", "indexes"):
            shutil.rmtree(folder / made, ignore_errors=True)


def _cold(name: str, arguments: list[str], folder: Path) -> float:
    _prepare(name, folder)
    return _seconds([sys.executable, "-m", "kafka_segments", *arguments])


def _seconds(program: list[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    spent = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-3000:])
    return spent


def _warm(
    spark: SparkSession, name: str, arguments: list[str], folder: Path, rounds: int
) -> tuple[float, int, int]:
    """Give the seconds, Spark jobs and SQL executions of the quickest round after the first."""
    runs = []
    for _ in range(1 + rounds):
        _prepare(name, folder)
        jobs, queries = _counts(spark)
        started = time.perf_counter()
        _run(arguments)
        spent = time.perf_counter() - started
        after = _counts(spark)
        runs.append((spent, after[0] - jobs, after[1] - queries))
    return min(runs[1:])


def _run(arguments: list[str]) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            cli(arguments)
        except SystemExit as end:
            if end.code not in (0, 1):
                raise RuntimeError(said.getvalue()[-3000:]) from end


def _counts(spark: SparkSession) -> tuple[int, int]:
    """Return how many jobs and SQL executions the session has had."""
    jobs = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()
    queries = spark._jsparkSession.sharedState().statusStore().executionsCount()
    return int(jobs), int(queries)
