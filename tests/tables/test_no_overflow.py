"""Segments whose offsets, timestamps and counts lie at the ends of a long fail no verb."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.long_arithmetic import minus, plus
from support.logs.strategies import MAX_INT64, crc32c

pytestmark = pytest.mark.spark

NOW_MS = 1_800_000_000_000
MIN_INT64 = -(2**63)
ENDS = sorted(
    {
        end + step
        for end in (MIN_INT64, -(2**31), -1, 0, 2**31, 2**63 - 2**31, 2**63)
        for step in (-2, -1, 0, 1, 2)
        if MIN_INT64 <= end + step <= MAX_INT64
    }
)


def _batch(
    offset: int, *, last: int = 0, first_ms: int = 0, most_ms: int = 0, records: int = 1
) -> bytes:
    """Write a batch whose header says anything, its checksum right, its body of 100 zeros."""
    covered = struct.pack(">hiqqqhii", 0, last, first_ms, most_ms, -1, -1, -1, records) + bytes(100)
    size = 9 + len(covered)
    return struct.pack(">qiibI", offset, size, 0, 2, crc32c(covered)) + covered


def _logs(folder: Path) -> Path:
    """Write a log for every pair of timestamps and every base offset near an end."""
    folder.mkdir()
    times = [value for value in ENDS if value > -5 or value < -(2**62)]
    cases = {
        f"time-{number}": (0, [_batch(0, first_ms=a, most_ms=a), _batch(1, first_ms=b, most_ms=b)])
        for number, (a, b) in enumerate(zip(times, reversed(times), strict=True))
    }
    for number, base in enumerate(value for value in ENDS if value >= 0):
        offsets = [min(base + step, MAX_INT64) for step in (0, 1, 2)]
        batches = [_batch(offset, last=5, most_ms=offset, records=-(2**31)) for offset in offsets]
        cases[f"base-{number}"] = (base, batches)
        cases[f"reach-{number}"] = (base, [_batch(base, last=2**31 - 1), *batches])
    for name, (base, batches) in cases.items():
        (folder / f"{name}-0").mkdir()
        (folder / f"{name}-0" / f"{base:020d}.log").write_bytes(b"".join(batches))
    both = folder / "time-0-0"
    (both / f"{MAX_INT64:020d}.log").write_bytes(_batch(MAX_INT64, most_ms=MAX_INT64))
    (both / f"{MAX_INT64 - 2**31:020d}.log").write_bytes(_batch(MAX_INT64 - 2**31, last=2**31 - 1))
    for name, values in {
        "replication-offset-checkpoint": (MAX_INT64, MIN_INT64, 0),
        "log-start-offset-checkpoint": (0, MAX_INT64, MIN_INT64),
        "recovery-point-offset-checkpoint": (MIN_INT64, 0, MAX_INT64),
    }.items():
        lines = [f"{topic} 0 {values[at % 3]}" for at, topic in enumerate(sorted(cases))]
        (folder / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    return folder


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _logs(tmp_path_factory.mktemp("ends") / "logs")


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("warehouse")
    build = ("build", "--source", logs, "--warehouse", target, "--index-dir", target / "indexes")
    _run(*build, "--index-interval-bytes", 0, "--now-ms", NOW_MS)
    return target


def _run(*arguments: object) -> str:
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    assert done.exit_code in (0, 1), f"{arguments[0]}: {done.output} {done.exception!r}"
    return done.stdout


@pytest.mark.slow
def test_every_segment_is_a_row_with_its_entries(
    spark: SparkSession, warehouse: Path, logs: Path
) -> None:
    found = Warehouse(spark, str(warehouse))
    rows = found.read(tables.SEGMENTS).where("index_entries IS NOT NULL")
    entries = found.read(tables.OFFSET_INDEX)

    assert found.read(tables.SEGMENTS).count() == len(list(logs.rglob("*.log")))
    assert rows.selectExpr("sum(index_entries)").first() == entries.selectExpr("count(*)").first()
    assert entries.where("base_offset > 9223372034707292160").count() > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["retention", "--now-ms", NOW_MS], marks=pytest.mark.long),
        ["retention", "--now-ms", 0, "--what-if", "retention_ms=1,9223372036854775807"],
        pytest.param(["retention", "plan", "--now-ms", NOW_MS], marks=pytest.mark.long),
        pytest.param(["roll", "--now-ms", NOW_MS], marks=pytest.mark.long),
        pytest.param(["latency"], marks=pytest.mark.long),
        pytest.param(["validate", "--now-ms", NOW_MS], marks=pytest.mark.long),
        pytest.param(["compact", "--dry-run"], marks=pytest.mark.long),
        pytest.param(["migrate", "inventory", "--now-ms", NOW_MS], marks=pytest.mark.long),
        pytest.param(["report", "--now-ms", NOW_MS, "--out"], marks=pytest.mark.long),
        ["search", "offsets", "--time", "0", "--time", str(MAX_INT64), "--now-ms", NOW_MS],
        ["sql", "SELECT * FROM segments"],
    ],
    ids=lambda arguments: "-".join(map(str, arguments)),
)
def test_no_verb_fails(warehouse: Path, tmp_path: Path, arguments: list[Any]) -> None:
    target = [tmp_path / "report.html"] if arguments[-1] == "--out" else []
    verb, *rest = arguments
    at = 1 if rest[:1] in (["plan"], ["inventory"], ["offsets"]) else 0
    _run(verb, *rest[:at], "--warehouse", warehouse, *rest[at:], *target)


def test_the_audit_of_these_files_finds_none_wrong(logs: Path) -> None:
    lines = _run("audit", "--source", logs, "--output", "json").splitlines()

    assert all(json.loads(line)["verdict"] for line in lines)


def test_sums_and_differences_end_where_a_long_ends(spark: SparkSession) -> None:
    pairs = [(a, b) for a in ENDS for b in ENDS]
    frame = spark.createDataFrame(pairs, "a long, b long")

    rows = frame.select("a", "b", plus("a", "b").alias("sum"), minus("a", "b").alias("less"))

    assert [tuple(row) for row in rows.collect()] == [
        (a, b, _bounded(a + b), _bounded(a - b)) for a, b in pairs
    ]
    nothing = spark.createDataFrame([(None, 1), (1, None)], "a long, b long")
    assert [tuple(row) for row in nothing.select(plus("a", "b"), minus("a", "b")).collect()] == [
        (None, None)
    ] * 2


def _bounded(value: int) -> int:
    return max(MIN_INT64, min(MAX_INT64, value))


@pytest.mark.slow
def test_a_constraint_of_an_earlier_release_is_renewed(spark: SparkSession, tmp_path: Path) -> None:
    before = (("offset_within_reach", "offset BETWEEN base_offset AND base_offset + 2147483647"),)
    root = Warehouse(spark, str(tmp_path))
    now = tables.OFFSET_INDEX
    root.create(Table(now.name, now.version, now.keys, constraints=before))

    root.create(now)

    name = f"delta.`{root.uri(now)}`"
    found = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    assert (
        found["delta.constraints.offset_within_reach"]
        == dict(now.constraints)["offset_within_reach"]
    )
