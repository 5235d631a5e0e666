"""Tiered storage as a source, through a real Spark."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from kafka_segments.verbs.scan.summary import BuildSummary
from support.spark.stored_builds import rows_few
from support.stores.object_store import ObjectStore
from support.stores.tiered_objects import OTHER_ID, TOPIC_ID, put_log, put_segment

NOW_MS = 1_800_000_000_000
TOPIC = f"events-{TOPIC_ID}"
LOGS = {7: "txn-0", 0: "ct-none-0"}
INDEXES = (".index", ".timeindex", ".txnindex")


@pytest.fixture
def tier(broker: Path, tmp_path: Path) -> Path:
    """Two partitions of a real broker, half of their segments compressed."""
    for partition, log in LOGS.items():
        put_log(tmp_path / "tier", broker, log, partition=partition)
    return tmp_path / "tier"


def _build(
    spark: SparkSession,
    source: str,
    warehouse: Path,
    *,
    in_place: bool = False,
    dry_run: bool = False,
) -> BuildSummary:
    options = BuildOptions(
        (source,),
        recovery=RecoveryOptions(),
        now_ms=NOW_MS,
        index_dir=None if in_place else str(warehouse.with_name("indexes")),
        in_place=in_place,
    )
    return run_build(Warehouse(spark, str(warehouse)), options, dry_run=dry_run)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.suffix in INDEXES
    }


@pytest.mark.slow
@pytest.mark.usefixtures("few_and_many")
def test_a_build_gives_the_brokers_index_files_and_rows(
    spark: SparkSession, object_store: ObjectStore, broker: Path, tier: Path, tmp_path: Path
) -> None:
    copy = put_segment(
        tier, b"", {}, end_offset=9, max_timestamp_ms=1, segment_id=OTHER_ID, event_ms=1
    )
    lone = put_segment(tier, b"", {}, base_offset=5000, end_offset=5009, max_timestamp_ms=1)
    lone.with_suffix(".rsm-manifest").unlink()
    object_store.put_folder(tier, "spark-tiered/pre")
    source, warehouse = "s3://spark-tiered/pre", tmp_path / "wh"

    summary = _build(spark, source, warehouse)
    again = _build(spark, source, warehouse, dry_run=True)

    assert (summary.segments_scanned, summary.segments_damaged) == (9, 0)
    assert again.segments_scanned == 0
    assert _files(tmp_path / "indexes") == {
        f"{TOPIC}/{partition}/{name}": data
        for partition, log in LOGS.items()
        for name, data in _files(broker / "rebuilt" / log).items()
    }
    for row in rows_few(spark, str(warehouse), tables.SEGMENTS):
        log = broker / "logs" / LOGS[row["partition"]] / f"{row['base_offset']:020d}.log"
        assert (row["size_bytes"], row["valid_bytes"]) == (log.stat().st_size,) * 2
        assert (row["topic"], row["log_dir"]) == ("events", f"{source}/{TOPIC}")
        assert not row["is_active"]
    logs = rows_few(spark, str(warehouse), tables.LOGS)
    assert sorted((row["topic"], row["partition"], row["topic_id"]) for row in logs) == [
        ("events", partition, TOPIC_ID) for partition in (0, 7)
    ]
    told = rows_few(spark, str(warehouse), tables.UNRECOGNIZED_FILES)
    assert sorted(row["path"].rpartition("/")[2] for row in told) == sorted(
        [copy.name, lone.name, f"{lone.stem}.indexes"]
    )


def test_index_files_are_not_put_beside_objects(
    spark: SparkSession, tier: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is an object of tiered storage"):
        _build(spark, str(tier), tmp_path / "wh", in_place=True)


def test_an_audit_names_gaps_and_overlaps_between_segments(
    spark: SparkSession, tier: Path, tmp_path: Path
) -> None:
    gone, beside = tier / TOPIC / "7", tier / TOPIC / "0"
    for file in [*gone.glob(f"{10:020d}-*"), *gone.glob(f"{1153:020d}-*")]:
        file.unlink()
    (second,) = beside.glob(f"{1597:020d}-*.log")
    put_segment(
        tier, b"", {}, base_offset=900, end_offset=1700, max_timestamp_ms=1, partition=0,
        segment_id=OTHER_ID,
    )  # fmt: skip
    arguments = ["--source", str(tier), "--warehouse", str(tmp_path / "wh"), "--output", "json"]

    result = CliRunner().invoke(cli, ["audit", *arguments])

    rows = [json.loads(line) for line in result.stdout.splitlines()]
    told = sorted(
        (Path(row["path"]).relative_to(tier / TOPIC).as_posix(), row["kind"], row["message"])
        for row in rows
        if row["kind"] in ("gap", "overlap")
    )
    assert result.exit_code == 1
    assert told == [
        (
            f"0/{900:020d}-{OTHER_ID}.log",
            "overlap",
            "it holds offsets 900 to 1596, which a segment before it holds too",
        ),
        (
            f"0/{second.name}",
            "overlap",
            "it holds offsets 1597 to 1700, which a segment before it holds too",
        ),
        (f"7/{10:020d}.log", "gap", "no whole segment holds offsets 10 to 1164"),
    ]
    assert len(rows_few(spark, str(tmp_path / "wh"), tables.INDEX_AUDITS)) == len(rows)


@pytest.mark.slow
def test_a_migration_refuses_objects(spark: SparkSession, tmp_path: Path) -> None:
    put_segment(tmp_path / "tier", b"", {}, end_offset=0, max_timestamp_ms=1)
    arguments = ["--source", str(tmp_path / "tier"), "--warehouse", str(tmp_path / "wh")]

    with few_rows(spark):
        result = CliRunner().invoke(cli, ["migrate", "plan", *arguments, "--output", "json"])

    (row,) = (json.loads(line) for line in result.stdout.splitlines())
    assert row["action"] == "refuse"
    assert "an object of tiered storage" in row["reason"]
