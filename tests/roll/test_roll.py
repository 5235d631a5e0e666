"""``roll`` over a broker's segments, on a real Spark."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.catalog import ROLL_DECISIONS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.schemas import schema
from support.model.plain_decoder import positions
from support.spark.ready_builds import ReadyBuild

pytestmark = pytest.mark.spark

NOW_MS = 1_800_000_000_000


def _run(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(cli, [*map(str, arguments), "--output", "json"])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def logs(broker: Path) -> Path:
    return broker / "logs"


@pytest.fixture(scope="module")
def warehouse(broker_build: ReadyBuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(broker_build.warehouse, tmp_path_factory.mktemp("roll") / "w")


@pytest.mark.slow
def test_active_segments_are_decided_and_kept_as_a_table(
    spark: SparkSession, warehouse: Path, logs: Path
) -> None:
    status, rows = _run("roll", "--warehouse", warehouse, "--now-ms", NOW_MS)

    folders = [folder for folder in logs.iterdir() if any(folder.glob("*.log"))]
    assert status == 0
    assert len(rows) == len(folders)
    assert {row["rule"] for row in rows} <= {"segment_ms", None}
    with few_rows(spark):
        table = Warehouse(spark, str(warehouse)).read(ROLL_DECISIONS)
    assert table.count() == len(rows)
    assertSchemaEqual(table.schema, schema("roll_decisions.v2"), ignoreNullable=True)
    result = CliRunner().invoke(cli, ["roll", "--warehouse", str(warehouse), "--dry-run"])
    assert "older than segment.ms" in result.output
    assert result.stderr.count("settings of ") == 1
    assert "settings of ct-codecs, ct-none, ct-out-of-order, ct-two-partitions, lat-none and 2" in (
        result.stderr
    )
    assert "\n  segment.ms = 604800000 (7 d 0 h)   [Kafka's default]\n" in result.stderr


def test_what_if_holds_against_the_batches_themselves(
    spark: SparkSession, warehouse: Path, logs: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "topics.toml"
    conf.write_text("[topics.lat-none]\nsegment_ms = 1\n")
    grid = "segment.bytes=20000,200000,1073741824"
    _, rows = _run("roll", "--warehouse", warehouse, "--conf", conf, "--what-if", grid)

    assert len(rows) == 3 * len({(row["topic"], row["partition"]) for row in rows})
    for row in rows:
        limit = int(row["setting"].split()[0].partition("=")[2])
        limit_ms = int(row["setting"].split()[1].partition("=")[2])
        assert limit_ms == (1 if row["topic"] == "lat-none" else 604_800_000)
        cuts, size, first = 1, 0, -1
        for batch_size, max_timestamp_ms in _batches(logs / f"{row['topic']}-{row['partition']}"):
            is_late = first >= 0 and max_timestamp_ms - first > limit_ms
            if size and (size > limit - batch_size or is_late):
                cuts, size = cuts + 1, 0
            first = first if size else max_timestamp_ms
            size += batch_size
        assert row["segments_least"] <= cuts <= row["segments_most"], (row, cuts)


def _batches(folder: Path) -> list[tuple[int, int]]:
    """Give size and largest timestamp of each batch, all of which are v2."""
    found = []
    for log in sorted(folder.glob("*.log")):
        data = log.read_bytes()
        for begin, end in positions(data):
            (max_timestamp_ms,) = struct.unpack_from(">q", data, begin + 35)
            found.append((end - begin, max_timestamp_ms))
    return found


@pytest.mark.slow
def test_a_log_that_lacks_its_end_tells_no_active_segment(broker: Path, tmp_path: Path) -> None:
    logs, source = broker / "logs", tmp_path / "logs"
    shutil.copytree(logs / "lat-none-0", source / "lat-none-0")
    shutil.copytree(logs / "ct-none-0", source / "ct-none-0")
    (source / "lat-none-0" / f"{3091:020d}.log").unlink()
    checkpoint = "0\n2\nlat-none 0 3092\nct-none 0 1\n"
    (source / "replication-offset-checkpoint").write_text(checkpoint)
    warehouse = ("--warehouse", str(tmp_path / "wh"))
    _run("build", "--source", source, *warehouse, "--now-ms", NOW_MS)
    later = ("--now-ms", str(NOW_MS + 90_000_000))

    result = CliRunner().invoke(cli, ["roll", *warehouse, *later, "--output", "json"])
    rows = {row["topic"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert result.exit_code == 1
    assert {topic: row["decision"] for topic, row in rows.items()} == {
        "ct-none": "roll",
        "lat-none": "unknown",
    }
    why = "not known: the log ends at offset 3091, below the high watermark 3092"
    assert rows["lat-none"]["reason"].startswith(why)
    assert (rows["lat-none"]["rule"], rows["lat-none"]["rolls_from_ms"]) == (None, None)
    explain = ["retention", "explain"]
    for verb in (["roll"], ["retention"], [*explain, "lat-none-0"]):
        result = CliRunner().invoke(cli, [*verb, *warehouse, *later])
        assert result.exit_code == 1, verb
        assert f"1 log lacks its end. lat-none-0 in {source}: {why}" in result.stderr
        age = "the tables are of the build of 2027-01-15 08:00:00 UTC, 1 d 1 h before: what"
        assert age in result.stderr
    result = CliRunner().invoke(cli, [*explain, "ct-none-0", *warehouse, *later])
    assert (result.exit_code, "lacks its end" in result.stderr) == (0, False)


@pytest.mark.slow
def test_full_indexes_are_those_of_the_broker_whatever_interval_a_build_had(
    broker: Path, tmp_path: Path
) -> None:
    """KRaft's own log lies beside them, and is not decided."""
    name, base = "lat-none-0", f"{3091:020d}"
    for folder in (name, "__cluster_metadata-0"):
        shutil.copytree(broker / "logs" / name, tmp_path / "logs" / folder)
    index = (broker / "rebuilt" / name / f"{base}.index").read_bytes()
    times = (broker / "rebuilt" / name / f"{base}.timeindex").read_bytes()
    beside = tmp_path / "logs" / name / f"{base}.index"
    beside.write_bytes(index + bytes(8000))
    beside.with_suffix(".timeindex").write_bytes(times + bytes(12_000))
    warehouse = ("--warehouse", tmp_path / "wh", "--now-ms", NOW_MS)
    sparse = ("--index-interval-bytes", 1_000_000)
    _run("build", "--source", tmp_path / "logs", *warehouse, *sparse)
    limits = ("--set", f"segment.index.bytes={len(index)}", "--set", f"segment.ms={10**12}")

    def decide(*settings: object) -> dict[str, Any]:
        _, rows = _run("roll", *warehouse, "--dry-run", *limits, *settings)
        (metadata,) = [row for row in rows if row["topic"] == "__cluster_metadata"]
        assert (metadata["decision"], metadata["index_source"]) == ("unknown", None)
        assert metadata["reason"].startswith("KRaft's own log: it rolls by metadata.log.segment.")
        return next(row for row in rows if row["topic"] == "lat-none")

    found = decide()
    assert (found["rule"], found["index_source"]) == ("offset_index_full", "beside")
    assert found["index_entries_left"] == 0
    assert found["reason"] == "its offset index is full, by the index files beside it"
    beside.unlink()
    found = decide()
    assert (found["rule"], found["index_source"]) == ("offset_index_full", "recounted")
    assert found["index_entries_left"] == 0
    found = decide("--set", "index.interval.bytes=1000000")
    assert (found["rule"], found["index_source"]) == (None, "built")

    grid = ("--what-if", "segment.bytes=100000")
    _, cuts = _run("roll", *warehouse, *grid)
    assert {
        (row["topic"], row["not_decided"] is None, row["segments"] is None) for row in cuts
    } == {
        ("lat-none", True, False),
        ("__cluster_metadata", False, True),
    }
    printed = CliRunner().invoke(cli, ["roll", *map(str, (*warehouse, *grid))])
    assert "KRaft's own log: it rolls" in printed.output


def test_what_if_takes_only_what_segments_are_cut_by(warehouse: Path) -> None:
    result = CliRunner().invoke(
        cli, ["roll", "--warehouse", str(warehouse), "--what-if", "retention.ms=1"]
    )

    assert result.exit_code == 2
    assert "unknown setting retention_ms" in result.output
