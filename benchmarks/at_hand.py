"""How long a person waits for each verb: in a new process, in a warm session, over Connect."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from many import write_many
from pyspark.sql import SparkSession
from sections import ROOT, Section

from kafka_segments.engine.spark.archive import class_archive
from kafka_segments.engine.spark.jars import VARIABLE, jars_of
from kafka_segments.engine.spark.session import spark_session
from support.spark.connect_client import Done, run_verb
from support.spark.connect_server import ConnectServer

_ROUNDS = 3
_FIRST = "build, the first"
_PROGRAM = [sys.executable, "-m", "kafka_segments"]
_NOW = ["--now-ms", "1795000000000"]
_BARE = """
from pathlib import Path
from kafka_segments.engine.spark.session import spark_session
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
    # By a process of its own: the JVM that it ends would be this one's.
    subprocess.run([sys.executable, "-m", "kafka_segments.class_archive"], check=True)
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        with tarfile.open(ROOT / "tests" / "golden" / "broker.tar.xz") as sample:
            sample.extractall(folder, filter="data")
        _say_own_session(section, folder, range(count))
        section.lines += [
            "",
            "Over Spark Connect, with SPARK_REMOTE at a server on the same machine that has run the"
            " verb before. *New client*: in a process of its own. *Warm*: in a client's session"
            " that has run the verb before, with the calls that had the server plan or run"
            " something.",
            "",
        ]
        _say_connect(section, folder, range(count))
        section.lines += ["", "Answers that need no Spark, each in a process of its own.", ""]
        _say_without_spark(section, folder, range(count))
    return section


def _say_own_session(section: Section, folder: Path, rounds: Sequence[int]) -> None:
    verbs = _verbs(folder)
    cold = {name: min(_cold(name, verbs[name], folder) for _ in rounds) for name in verbs}
    bare_program = _BARE.format(root=str(ROOT), table=str(folder / "warehouse" / "segments"))
    bare_command = [sys.executable, "-c", bare_program]
    bare = min(_seconds(bare_command) for _ in rounds)
    with _without_archive():
        unaided = min(_seconds(bare_command) for _ in rounds)
    section.table("verb", "cold s", "of bare", "warm s", "jobs", "SQL executions")
    for name, spent in (("a bare session", bare), ("the same without the archive", unaided)):
        section.row(name, f"{spent:.1f}", f"{spent / bare:.1f}x", "-", "-", "-")
    with spark_session("bench", root=ROOT, is_long=True) as spark:
        warm = {name: _warm(spark, name, verbs[name], folder, len(rounds)) for name in verbs}
    for name, (seconds, jobs, queries, _) in warm.items():
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


def _say_connect(section: Section, folder: Path, rounds: Sequence[int]) -> None:
    verbs, server_folder = _verbs(folder), folder / "server"
    server_folder.mkdir()
    section.table("verb", "new client s", "warm s", "calls")
    with closing(ConnectServer(server_folder)) as server:
        for name, arguments in verbs.items():
            if name == _FIRST:
                _prepare(name, folder)  # then all verbs find the tables that it makes
                server.run_all([arguments])
                continue
            warm = min(
                _sound(server.run_all([arguments] * (1 + len(rounds))))[1:],
                key=lambda done: done.seconds,
            )
            new = min(_seconds([*_PROGRAM, *arguments], SPARK_REMOTE=server.url) for _ in rounds)
            section.row(name, f"{new:.1f}", f"{warm.seconds:.1f}", str(warm.calls))
            section.figures |= {f"new client {name}": new, f"connect {name}": warm.seconds}


def _say_without_spark(section: Section, folder: Path, rounds: Sequence[int]) -> None:
    section.table("asked", "exit status", "s")
    tables = ["--warehouse", str(folder / "warehouse")]
    nowhere = ["--warehouse", str(folder / "nowhere")]
    source = ["--source", str(folder / "broker" / "logs")]
    asked = {
        "`--help`": (["--help"], 0),
        "a folder that is no warehouse": (["retention", *nowhere], 2),
        "a source that is not there": (["build", "--source", str(folder / "gone"), *nowhere], 2),
        "`lag` of a group that nobody gave": (["lag", *tables], 2),
        "`build --dry-run`": (["build", "--dry-run", *source, *nowhere], 0),
        "`build --dry-run`, nothing changed": (["build", "--dry-run", *source, *tables], 0),
        "`migrate status` without such a plan": (["migrate", "status", *tables, "--plan", "p"], 2),
    }
    for name, (arguments, status) in asked.items():
        program = [*_PROGRAM, *arguments]
        spent = min(_seconds(program, ends=(status, 1)) for _ in rounds)
        section.row(name, str(status), f"{spent:.2f}")
        section.figures[f"without Spark {name}"] = spent


@contextmanager
def _without_archive() -> Iterator[None]:
    """Hide the archive of classes for a while."""
    archive = class_archive(ROOT, jars_of(ROOT))
    hidden = archive.with_suffix(".hidden")
    if archive.exists():
        archive.rename(hidden)
    try:
        yield
    finally:
        if hidden.exists():
            hidden.rename(archive)


def _verbs(
    folder: Path, logs: str = "broker/logs", topic: str = "ct-two-partitions"
) -> dict[str, list[str]]:
    """Return the arguments of each verb, the first build first; ``logs``: below the folder."""
    source = ["--source", str(folder / logs)]
    tables = ["--warehouse", str(folder / "warehouse")]
    build = ["build", *source, *tables, "--index-dir", str(folder / "indexes")]
    query = "SELECT topic, count(*) FROM segments GROUP BY topic"
    of_topic = [*tables, "--topic", topic]
    return {
        _FIRST: build,
        "build, nothing changed": build,
        "build --full, known tables": [*build, "--full"],
        "sql": ["sql", *tables, query],
        "explain": ["retention", "explain", f"{topic}-0", *tables, *_NOW],
        "search": ["search", *of_topic, "--time", "2026-01-31T14:00:00Z"],
        "retention": ["retention", *tables, *_NOW],
        "roll": ["roll", *tables, *_NOW],
        "audit": ["audit", *source, *tables],
        "report": ["report", *tables, *_NOW, "--out", str(folder / "report.html")],
        "migrate inventory": ["migrate", "inventory", *tables, *_NOW],
        "validate": ["validate", *tables, *_NOW],
        "compact": ["compact", *tables],
    }


def _prepare(name: str, folder: Path) -> None:
    """Remove what builds made, before a first one."""
    if name == _FIRST:
        for made in ("warehouse", "indexes"):
            shutil.rmtree(folder / made, ignore_errors=True)


def _cold(name: str, arguments: list[str], folder: Path) -> float:
    _prepare(name, folder)
    return _seconds([*_PROGRAM, *arguments])


def _seconds(program: list[str], ends: Sequence[int] = (0, 1), **variables: str) -> float:
    started = time.perf_counter()
    done = subprocess.run(
        program, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )
    spent = time.perf_counter() - started
    if done.returncode not in ends:
        raise RuntimeError(done.stderr[-3000:])
    return spent


def _sound(runs: Sequence[Done]) -> Sequence[Done]:
    """Return runs of verbs, if all of them came to their ends."""
    for done in runs:
        if done.status not in (0, 1):
            raise RuntimeError(done.err[-3000:])
    return runs


def _warm(
    spark: SparkSession, name: str, arguments: list[str], folder: Path, rounds: int
) -> tuple[float, int, int, int]:
    """Give the seconds and ``_counts`` of the quickest round after the first."""
    runs = []
    for _ in range(1 + rounds):
        _prepare(name, folder)
        before = _counts(spark)
        started = time.perf_counter()
        _sound([run_verb(arguments)])
        spent = time.perf_counter() - started
        jobs, queries, shuffled = map(int.__sub__, _counts(spark), before)
        runs.append((spent, jobs, queries, shuffled))
    return min(runs[1:])


def _counts(spark: SparkSession) -> tuple[int, int, int]:
    """Return how many jobs and SQL executions the session has had, and the bytes it shuffled."""
    context = spark.sparkContext._jsc.sc()
    jobs = context.dagScheduler().nextJobId()
    queries = spark._jsparkSession.sharedState().statusStore().executionsCount()
    executors = context.statusStore().executorList(False)
    shuffled = sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))
    return int(jobs), int(queries), int(shuffled)


def bench_by_number(*, quick: bool) -> Section:
    """Run each verb on more segments, and first builds where code is not compiled yet."""
    counts = (50, 200) if quick else (2_000, 50_000)
    section = Section("At hand: verbs by number of segments")
    section.lines += [
        "Segments of 4 KB in up to 500 partitions, which share their files by hard links. *Cold*:"
        " in a process of its own, once. *Warm*: the second run in a session, with its Spark jobs."
        " *Shuffled*: what Spark's tasks wrote in that run for others to read.",
        "",
    ]
    columns = (f"{count:,}: {told}" for count in counts for told in ("cold s", "warm s", "jobs"))
    section.table("verb", *columns, f"{counts[-1]:,}: shuffled MiB", "of the tables' MiB")
    cells: dict[str, list[str]] = {}
    for count in counts:
        with tempfile.TemporaryDirectory() as given:
            folder = Path(given)
            write_many(folder / "logs", count)
            verbs = _verbs(folder, "logs", "many")
            for name, arguments in verbs.items():
                cells.setdefault(name, []).append(f"{_cold(name, arguments, folder):.1f}")
            files = [file for file in (folder / "warehouse").rglob("*") if file.is_file()]
            tables = sum(file.stat().st_size for file in files)
            with spark_session("bench", root=ROOT, is_long=count == counts[-1]) as spark:
                for name, arguments in verbs.items():
                    seconds, jobs, _, shuffled = _warm(spark, name, arguments, folder, 1)
                    cells[name] += [f"{seconds:.1f}", str(jobs)]
                    if count == counts[-1]:
                        cells[name] += [f"{size / 2**20:.1f}" for size in (shuffled, tables)]
    for name, of_verb in cells.items():
        section.row(name, *of_verb)
    section.lines += [
        "",
        "A first build of the repository's sample, in a process of its own, by what was compiled"
        " before: from the shell's prompt back to it, and the build after it into other tables.",
        "",
    ]
    _say_first_builds(section)
    return section


def _say_first_builds(section: Section) -> None:
    section.table("compiled code", "first build s", "the next one s")
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        with tarfile.open(ROOT / "tests" / "golden" / "broker.tar.xz") as sample:
            sample.extractall(folder, filter="data")
        sources = folder / "lib"
        compiled = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
        shutil.copytree(ROOT / "lib", sources, ignore=compiled)
        same_jars = {VARIABLE: str(ROOT / "jars")}  # with them goes the archive of classes
        nowhere = {"HOME": "/proc", "XDG_CACHE_HOME": "/proc", "PYTHONDONTWRITEBYTECODE": "1"}
        kept = {"NUMBA_CACHE_DIR": str(folder / "compiled")}
        for told, variables in (
            ("as `make setup` left it", {}),
            ("none, a folder to keep it in", {"PYTHONPATH": str(sources), **same_jars, **kept}),
            (
                "none, and nowhere to write",
                {
                    "PYTHONPATH": str(sources),
                    "NUMBA_CACHE_DIR": "/proc/none",
                    **same_jars,
                    **nowhere,
                },
            ),
        ):
            build = _verbs(folder)[_FIRST]
            spent = []
            for _ in range(2):
                _prepare(_FIRST, folder)
                spent.append(_seconds([*_PROGRAM, *build], **variables))
            section.row(told, *(f"{seconds:.1f}" for seconds in spent))
