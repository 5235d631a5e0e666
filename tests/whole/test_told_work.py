"""Verbs tell how much they read before they read it: the bar needs it for bytes and time left."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.console.bar import ReadProgress
from kafka_segments.engine.choose import expect_many_rows
from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.limits import Load
from kafka_segments.engine.rows.datasource import load_of
from kafka_segments.engine.rows.table_reads import read_segments
from kafka_segments.engine.sources.segment_files import with_digests, with_segment_files
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast
from kafka_segments.verbs.find.internals.tasks import read_records
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from support.spark.rows_of import frame


class Told:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.loads: list[tuple[Load, int]] = []
        self.read: list[int] = []

    def reads(self, load: Load, tasks: int) -> None:
        self.loads.append((load, tasks))

    def has_read(self, amount: int) -> None:
        self.read.append(amount)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def disk(broker: Path, tmp_path: Path) -> Path:
    """A log directory with two logs and their index files, of a killed broker."""
    for name in ("ct-none-0", "txn-0"):
        for part in ("logs", "rebuilt"):
            shutil.copytree(broker / part / name, tmp_path / "disk" / name, dirs_exist_ok=True)
    return tmp_path / "disk"


def _logs(disk: Path) -> list[Path]:
    return sorted(disk.rglob("*.log"))


def _bytes(disk: Path) -> int:
    return sum(log.stat().st_size for log in _logs(disk))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("is_first_look", [True, False])
def test_a_build_reads_bytes_and_first_looks_count_segments(
    spark: SparkSession, disk: Path, tmp_path: Path, told: Told, *, is_first_look: bool
) -> None:
    options = BuildOptions(
        (str(disk),),
        recovery=RecoveryOptions(),
        now_ms=1_800_000_000_000,
        is_first_look=is_first_look,
    )

    warehouse = Warehouse(spark, str(tmp_path / "warehouse"))
    run_build(warehouse, options, told.reads, tell_read=told.has_read)

    count, size_bytes = len(_logs(disk)), _bytes(disk)
    assert told.loads == [(Load(count, 0 if is_first_look else size_bytes), 0)]
    assert sum(told.read) == (count if is_first_look else size_bytes)
    assert is_first_look or len(told.read) == count


@pytest.mark.parametrize(("is_full", "counted"), [(True, ""), (False, "logs")])
def test_a_forecast_reads_bytes_or_looks_at_logs(
    disk: Path, *, is_full: bool, counted: str
) -> None:
    work = ReadProgress()

    run_forecast(ForecastOptions((1,), (str(disk),), is_full=is_full), work=work)

    assert work.counted == counted
    assert (work.amount, work.done) == ((_bytes(disk) if is_full else 2),) * 2


def test_the_data_source_tells_how_much_it_reads_and_in_how_many_tasks(disk: Path) -> None:
    load, tasks = load_of({"path": str(disk), "check": "headers", "tasks": "2"})

    assert (load, tasks) == (Load(len(_logs(disk)), _bytes(disk)), 2)


def _rows(spark: SparkSession, disk: Path) -> DataFrame:
    """Give the segments of the log directory, with a log's key."""
    columns = "path string, base_offset long, size_bytes long, valid_bytes long,"
    columns += " first_batch_timestamp_ms long"
    rows = [
        {
            "topic": log.parent.name,
            "path": str(log),
            "base_offset": int(log.stem),
            "size_bytes": log.stat().st_size,
        }
        for log in _logs(disk)
    ]
    return frame(spark, columns, *rows)


def test_segments_of_the_tables_are_shared_out_by_bytes(
    spark: SparkSession, disk: Path, told: Told
) -> None:
    read = read_segments(rows="batches", columns=("path",), check="headers", tell=told.reads)
    batches = read(_rows(spark, disk))

    ((load, tasks),) = told.loads
    assert load == Load(len(_logs(disk)), _bytes(disk))
    assert batches.rdd.getNumPartitions() == tasks


def test_files_of_internal_topics_are_shared_out_by_bytes(
    spark: SparkSession, disk: Path, told: Told
) -> None:
    of_files = ("'x' AS file", "false AS is_snapshot", "true AS is_active", "0L AS mtime_ns")
    files = _rows(spark, disk).selectExpr("*", *of_files)

    records = read_records(files, tell=told.reads)

    ((load, tasks),) = told.loads
    assert load == Load(len(_logs(disk)), _bytes(disk))
    assert records.rdd.getNumPartitions() == tasks
    assert records.columns == INTERNAL_RECORDS.schema.names


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_digests_are_told_by_the_driver_or_by_tasks(
    spark: SparkSession, disk: Path, told: Told
) -> None:
    listed = collected_if_few(with_segment_files(_rows(spark, disk)))
    here = with_digests(listed, tell=told.reads, tell_read=told.has_read).collect()
    expect_many_rows(spark)
    there = with_digests(listed, tell=told.reads, tell_read=told.has_read).collect()

    load = Load(len(_logs(disk)), _bytes(disk))
    assert [of for of, _ in told.loads] == [load, load]
    assert told.loads[0][1] == 0
    assert told.loads[1][1] > 0
    assert sum(told.read) == _bytes(disk)
    assert sorted(here) == sorted(there)
