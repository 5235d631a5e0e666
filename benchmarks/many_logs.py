"""Many tiny logs in two copies: each verb's cost a log, beside `diff -rq` and `find -size`."""

import os
import random
import shutil
import struct
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sections import SCRATCH, Section

from support.logs.strategies import v2_batch

_PARTITIONS = 10  # of a topic
_TEMPLATES = 64
_MOST_RECORDS = 30
_FIRST_MS = 1_700_000_000_000
_NOW_MS = _FIRST_MS + 86_400_000
_CLUSTER = "manylogsmanylogsmanylo"
_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
_MEMORY = Path("/dev/shm")


class Timed(NamedTuple):
    """How long a command took, from prompt to prompt, and the CPU of its process, in seconds."""

    seconds: float
    cpu: float


def bench_many_logs(*, quick: bool) -> Section:
    """Run each verb on 100, 4,000 and 20,000 tiny logs."""
    counts = (20, 100) if quick else (100, 4_000, 20_000)
    few, many = counts[0], counts[-1]
    section = Section("Many tiny logs")
    section.lines += [
        f"Partitions of one segment of 200 B to {_MOST_RECORDS * 110 / 1000:.0f} KB in one batch,"
        " each folder with .log, .index, .timeindex, leader-epoch-checkpoint and"
        " partition.metadata as a broker keeps them, in two copies. Each run is a new process, from"
        " prompt to prompt, the start of its session included; CPU is that of the process, without"
        " Spark's JVM and its workers."
        f" *A log*: what each log beyond the first {few:,} costs; of two copies, each log of both"
        " together. The files lie in memory where there is room. *Of `diff`*, *of `find`*: times"
        " the seconds of `diff -rq` of both copies, of `find -size` in one.",
        "",
    ]
    columns = [f"{count:,} logs s" for count in counts]
    section.table("run", *columns, "CPU s", "ms a log", "CPU ms a log", "of `diff`", "of `find`")
    taken: dict[str, list[Timed]] = {}
    folder = (_MEMORY if _MEMORY.is_dir() else SCRATCH) / "kafka-segments-many-logs"
    for count in counts:
        try:
            write_copies(folder, count)
            for name, command in commands(folder).items():
                taken.setdefault(name, []).append(_timed(command))
                print(f"{count:,} {name}: {taken[name][-1].seconds:.2f} s", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    diff, find = (runs[-1].seconds for runs in list(taken.values())[:2])
    for name, runs in taken.items():
        first, last = runs[0], runs[-1]
        each = [
            (getattr(last, name) - getattr(first, name)) / (many - few) * 1000
            for name in Timed._fields
        ]
        section.figures |= {f"ms a log {name}": each[0], f"CPU ms a log {name}": each[1]}
        section.row(
            name,
            *(f"{run.seconds:.2f}" for run in runs),
            f"{runs[-1].cpu:.1f}",
            *(f"{ms:.3f}" for ms in each),
            *(f"{runs[-1].seconds / of:.0f}x" for of in (diff, find)),
        )
    return section


def commands(folder: Path) -> dict[str, Sequence[str]]:
    """Return the commands in their order; the build comes before what asks its tables."""
    a, b = (str(folder / copy) for copy in "ab")
    tables = ("--warehouse", str(folder / "warehouse"))
    asked = ("--time", str(_FIRST_MS + 5_000))
    verbs = {
        "divergence": ("divergence", "--copy", f"a={a}", "--copy", f"b={b}"),
        "backup verify": ("backup", "verify", "--backup", a, "--against", f"b={b}"),
        "build": ("build", "--source", a, *tables, "--index-dir", str(folder / "indexes")),
        "build, nothing changed": (
            *("build", "--source", a, *tables, "--index-dir", str(folder / "indexes")),
        ),
        "audit": ("audit", "--source", a),
        "triage": ("triage", a),
        "recovery forecast": ("recovery", "forecast", "--source", a),
        "recovery kit": ("recovery", "kit", "--source", a, "--out", str(folder / "kit")),
        "disk": ("disk", a),
        "retention": ("retention", *tables),
        "search": ("search", *tables, *asked),
        "report": ("report", *tables, "--out", str(folder / "report.html")),
    }
    peers = {
        "`diff -rq`": ("diff", "-rq", a, b),
        "`find -size`": ("find", a, "-type", "f", "-size", "+100c"),
    }
    program = (sys.executable, "-m", "kafka_segments")
    ours = {name: (*program, *verb, *_now(verb)) for name, verb in verbs.items()}
    return {**peers, **ours}


def _now(verb: Sequence[str]) -> Sequence[str]:
    return () if verb[:2] == ("recovery", "forecast") else ("--now-ms", str(_NOW_MS))


def _timed(command: Sequence[str]) -> Timed:
    """Run a command whose answers go nowhere.

    Raises:
        RuntimeError: it has failed.
    """
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(said.decode()[-3000:])
    return Timed(time.perf_counter() - started, used.ru_utime + used.ru_stime)


def write_copies(folder: Path, logs: int, *, seed: int = 1) -> None:
    """Write log directories ``a`` and ``b`` of two brokers that hold the same logs."""
    chance = random.Random(seed)
    segments = [_segment(chance) for _ in range(_TEMPLATES)]
    for node, copy in enumerate("ab", start=1):
        root = folder / copy
        root.mkdir(parents=True)
        directory = _topic_id(1000 + node)
        (root / "meta.properties").write_text(
            f"version=1\ncluster.id={_CLUSTER}\nnode.id={node}\ndirectory.id={directory}\n"
        )
        names = [(f"orders{i // _PARTITIONS}", i % _PARTITIONS) for i in range(logs)]
        for checkpoint in _CHECKPOINTS:
            lines = [f"{topic} {partition} 0\n" for topic, partition in names]
            (root / checkpoint).write_text(f"0\n{logs}\n{''.join(lines)}")
        for number, (topic, partition) in enumerate(names):
            _write_log(
                root / f"{topic}-{partition}",
                _topic_id(number // _PARTITIONS),
                *segments[number % _TEMPLATES],
            )


def _write_log(log: Path, topic_id: str, segment: bytes, time_index: bytes) -> None:
    """Write a partition's folder."""
    log.mkdir()
    name = f"{0:020d}"
    (log / f"{name}.log").write_bytes(segment)
    (log / f"{name}.index").touch()
    (log / f"{name}.timeindex").write_bytes(time_index)
    (log / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (log / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def _segment(chance: random.Random) -> tuple[bytes, bytes]:
    """Return a segment of one batch, and its time index."""
    count = chance.randint(1, _MOST_RECORDS)
    records = [(_FIRST_MS + 1000 * i, b"k", chance.randbytes(100)) for i in range(count)]
    entry = struct.pack(">qi", _FIRST_MS + 1000 * (count - 1), count - 1)
    return v2_batch(0, records, leader_epoch=0), entry


def _topic_id(number: int) -> str:
    """Return an id in Kafka's form."""
    return urlsafe_b64encode(uuid.UUID(int=number + 2**100).bytes).decode().rstrip("=")
