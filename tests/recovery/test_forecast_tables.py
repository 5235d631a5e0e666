"""`recovery forecast` from tables, and kept in one."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.recovery.decide.tables import decide_logs
from kafka_segments.recovery.run_forecast import ForecastOptions, forecast_sources, keep_forecast
from kafka_segments.recovery.run_tables import forecast_tables
from kafka_segments.tables.catalog import RECOVERY_FORECASTS
from kafka_segments.tables.delta import Warehouse
from ready_builds import ReadyBuild

NOW_MS = 1_795_000_000_000
_KEYS = "cluster string, broker_id int, log_dir string"
_LOG = f"{_KEYS}, topic string, partition int"


def test_tables_tell_what_the_disks_tell_and_keep_it(
    spark: SparkSession, broker_build: ReadyBuild, tmp_path: Path
) -> None:
    warehouse = str(tmp_path / "warehouse")
    shutil.copytree(broker_build.warehouse, warehouse)
    options = ForecastOptions(threads=(1, 4), now_ms=NOW_MS, warehouse=warehouse)
    disks = ForecastOptions(
        threads=(1, 4), now_ms=NOW_MS, sources=(str(broker_build.logs),), is_full=True
    )

    by_tables, by_disks = forecast_tables(spark, options), forecast_sources(disks)
    run_id = keep_forecast(spark, options, by_tables)

    logs = {log.folder: log for _, log in by_tables.logs}
    for _, log in by_disks.logs:
        told = logs.pop(log.folder)
        assert told.first_recovered_offset == log.first_recovered_offset
        work = log.work._replace(twice_segments=0, twice_bytes=0, twice_batches=0)  # no indexes
        assert told.work == work
        assert told.kit_work == log.kit_work
    assert not logs
    kept = Warehouse(spark, warehouse).read(RECOVERY_FORECASTS).where(f"run_id = '{run_id}'")
    seconds = {(row.threads, row.with_kit): row.seconds for row in kept.collect()}
    assert seconds == {(row.threads, row.with_kit): row.seconds for row in by_tables.rows}
    assert len(seconds) == 4


@pytest.fixture
def decided(spark: SparkSession) -> dict[str, tuple]:
    """Logs with segments at 0, 10 and 20 of 100, 110 and 120 bytes; what a start does with each."""
    points = {"none": None, "middle": 15, "end": 29, "clean": 0, "__cluster_metadata": 29}
    dirs = {topic: "/clean" if topic == "clean" else "/hard" for topic in points}
    segments = spark.createDataFrame(
        [
            ("c", 1, dirs[topic], topic, 0, base, 100 + base, base // 10 + 1)
            for topic in points
            for base in (0, 10, 20)
        ],
        f"{_LOG}, base_offset long, size_bytes long, batch_count long",
    )
    logs = spark.createDataFrame(
        [("c", 1, dirs[topic], topic, 0, "live", point) for topic, point in points.items()],
        f"{_LOG}, folder_state string, recovery_point long",
    )
    log_dirs = spark.createDataFrame(
        [("c", 1, "/clean", True, None), ("c", 1, "/hard", False, "no meta.properties")],
        f"{_KEYS}, was_clean_shutdown boolean, problem string",
    )
    rows = segments.transform(decide_logs(logs, log_dirs)).collect()
    return {
        row.topic: (
            row.first_recovered_offset,
            row.recovered_segments,
            row.recovered_bytes,
            row.recovered_batches,
            row.kit_recovered_bytes,
        )
        for row in rows
    }


def test_a_log_is_recovered_from_the_segment_with_its_recovery_point_on(decided) -> None:
    assert decided == {
        "none": (0, 3, 330, 6, 120),
        "middle": (10, 2, 230, 5, 120),
        "end": (20, 1, 120, 3, 120),
        "clean": (None, 0, 0, 0, 0),
        "__cluster_metadata": (0, 3, 330, 6, 330),
    }
