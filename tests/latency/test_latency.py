"""Latency from batch headers, on logs written by hand."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.limits import Load
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.latency.run import run_latency
from kafka_segments.verbs.find.search.log_tables import LogChoice
from support.logs.strategies import CONTROL, LOG_APPEND_TIME, stamped_wrapper, v2_batch
from support.spark.stored_builds import build_few

HOUR_MS = 3_600_000


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> str:
    """A topic with CreateTime; one with append times 25, 0 and -40 ms after the create time."""
    batches = [(1_000, 1_025, 0), (HOUR_MS, HOUR_MS, 0), (HOUR_MS + 60, HOUR_MS + 20, 0)]
    batches.append((HOUR_MS, HOUR_MS + 999, CONTROL))
    logs = {
        "lat-0": [
            v2_batch(
                offset,
                [(created, bytes.fromhex("00000001"), bytes(6))],
                max_timestamp=appended,
                flags=LOG_APPEND_TIME | flags,
            )
            for offset, (created, appended, flags) in enumerate(batches)
        ],
        "ct-0": [v2_batch(0, [(1_000, None, b"")])],
        "wrapped-0": [stamped_wrapper([1_000, 1_010], appended=1_030)],
    }
    for name, written in logs.items():
        folder = tmp_path / "logs" / name
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(b"".join(written))
    build_few(spark, str(tmp_path / "logs"), str(tmp_path / "wh"), now_ms=HOUR_MS)
    return str(tmp_path / "wh")


@pytest.mark.usefixtures("few_and_many")
def test_latency_is_that_of_batches_that_keep_both_times(
    spark: SparkSession, caches: ExitStack, warehouse: str
) -> None:
    told: list[tuple[Load, int]] = []
    measured = run_latency(
        Warehouse(spark, warehouse), LogChoice(), caches, lambda *of: told.append(of)
    )
    rows = measured.orderBy("hour_ms", "topic").collect()

    assert [
        (row["topic"], row["hour_ms"], row["batches"], row["p50_ms"], row["max_ms"]) for row in rows
    ] == [("lat", 0, 1, 25, 25), ("wrapped", 0, 1, 30, 30), ("lat", HOUR_MS, 0, None, None)]
    assert [(row["equal_batches"], row["most_negative_ms"]) for row in rows] == [
        (0, None),
        (0, None),
        (1, -40),
    ]
    first = {bar["below_ms"]: bar["batches"] for bar in rows[0]["histogram"]}
    assert [load.segments for load, _ in told] == ([] if has_few_rows(spark) else [3])
    assert first == {10: 0, 100: 1, 1_000: 0, 10_000: 0, 60_000: 0, None: 0}


@pytest.mark.slow
def test_segments_that_are_not_read_to_their_end_are_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [
        v2_batch(offset, [(1_000, None, b"")], max_timestamp=1_030, flags=LOG_APPEND_TIME)
        for offset in range(4)
    ]
    folder = tmp_path / "logs" / "lat-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(batches[0] + b"\x01" * 100 + batches[1])
    (folder / f"{2:020d}.log").write_bytes(batches[2] + batches[3][:-5])  # as a broker writes it
    build_few(spark, str(tmp_path / "logs"), str(tmp_path / "wh"), now_ms=HOUR_MS)

    done = CliRunner().invoke(
        cli, ["latency", "--warehouse", str(tmp_path / "wh"), "--output", "json"]
    )

    assert done.exit_code == 1, done.output
    assert [json.loads(line)["batches"] for line in done.stdout.splitlines()] == [2]
    assert "1 segments not read to their end, their rest is not measured" in done.stderr
