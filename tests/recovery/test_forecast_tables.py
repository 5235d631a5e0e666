"""`recovery forecast` from the tables of a build."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.recovery.decide.tables import decide_logs
from kafka_segments.recovery.run_forecast import Forecast, ForecastOptions, forecast_sources
from kafka_segments.recovery.run_tables import forecast_tables
from ready_builds import ReadyBuild

_KEYS = "cluster string, broker_id int, log_dir string"
_LOG = f"{_KEYS}, topic string, partition int"
_DAMAGE = "damage struct<kind string, position long, message string>"


def _told(forecast: Forecast) -> dict[str, tuple]:
    """Return what a forecast says of each log that tables can tell: no index files among it."""
    return {
        log.folder: (
            log.first_recovered_offset,
            log.recovery_point,
            log.folder_state,
            log.work._replace(twice_segments=0, twice_bytes=0, twice_batches=0),
            log.kit_work,
        )
        for _, log in forecast.logs
    }


def test_tables_tell_what_the_disks_tell(spark: SparkSession, broker_build: ReadyBuild) -> None:
    options = ForecastOptions(threads=(1,))
    disks = ForecastOptions(threads=(1,), sources=(str(broker_build.logs),), is_full=True)

    by_tables = forecast_tables(spark, str(broker_build.warehouse), options)
    by_disks = forecast_sources(disks)

    assert _told(by_tables) == _told(by_disks)
    assert len(_told(by_tables)) > 5


@pytest.fixture(scope="module")
def decided(spark: SparkSession) -> dict[str, tuple]:
    """Logs with segments at 0, 10 and 20 of 100, 110 and 120 bytes; what a start does with each."""
    points = {
        **{"none": None, "middle": 15, "end": 29, "clean": 0, "__cluster_metadata": 29},
        **{"torn": 15, "cut": 5, "below": 15, "moving": 29, "tiered": 29, "empty": 29},
    }
    damaged = {("torn", 20): "partial_batch", ("cut", 10): "corrupt_batch"}
    damaged[("below", 0)] = "corrupt_batch"
    dirs = {topic: "/clean" if topic == "clean" else "/hard" for topic in points}
    segments = spark.createDataFrame(
        [
            (
                *("c", 1, dirs[topic], topic, 0, base, 100 + base, base // 10 + 1),
                0 if (topic, base) == ("empty", 20) else 100 + base,
                7,
                (damaged[topic, base], 1, "why") if (topic, base) in damaged else None,
            )
            for topic in points
            for base in ((10, 20) if topic == "tiered" else (0, 10, 20))
        ],
        f"{_LOG}, base_offset long, size_bytes long, batch_count long, valid_bytes long,"
        f" truncated_bytes long, {_DAMAGE}",
    )
    logs = spark.createDataFrame(
        [
            (
                *("c", 1, dirs[topic], topic, 0, f"{dirs[topic]}/{topic}-0"),
                "future" if topic == "moving" else "live",
                point,
                5 if topic == "tiered" else None,
            )
            for topic, point in points.items()
        ],
        f"{_LOG}, path string, folder_state string, recovery_point long, log_start_offset long",
    )
    log_dirs = spark.createDataFrame(
        [("c", 1, "/clean", True, None), ("c", 1, "/hard", False, "no meta.properties")],
        f"{_KEYS}, was_clean_shutdown boolean, problem string",
    )
    rows = segments.transform(decide_logs(logs, log_dirs)).collect()
    return {
        row.topic: (
            *(row.first_recovered_offset, row.recovered_segments),
            *(row.recovered_bytes, row.recovered_batches, row.is_left_alone, row.ends_empty),
        )
        for row in rows
    }


def test_a_log_is_recovered_from_the_segment_with_its_recovery_point_to_its_first_cut(
    decided: dict[str, tuple],
) -> None:
    assert decided == {
        "none": (0, 3, 330, 6, False, False),
        "middle": (10, 2, 230, 5, False, False),
        "end": (20, 1, 120, 3, False, False),
        "clean": (None, 0, 0, 0, False, False),
        "__cluster_metadata": (0, 3, 330, 6, True, False),
        "torn": (10, 2, 230, 5, False, False),
        "cut": (0, 2, 210, 3, True, False),
        "below": (10, 2, 230, 5, False, False),
        "moving": (20, 1, 120, 3, True, False),
        "tiered": (20, 1, 120, 3, True, False),
        "empty": (20, 1, 120, 3, False, True),
    }


def test_the_verb_takes_either_sources_or_a_warehouse(
    broker_build: ReadyBuild, spark: SparkSession, tmp_path: Path
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(cli, ["recovery", "forecast", *words, "--output", "json"])
        return done.exit_code, done.stdout, done.stderr

    status, rows, _ = run("--warehouse", str(broker_build.warehouse), "--broker-threads", "2")
    neither, both = run(), run("--source", str(tmp_path), "--warehouse", str(tmp_path))

    assert status == 0
    assert [json.loads(row)["with_kit"] for row in rows.splitlines()] == [False, True]
    reads = run("--warehouse", str(tmp_path), "--check", "full")
    assert (neither[0], both[0], reads[0]) == (2, 2, 2)
    assert "read segments: give --source" in reads[2]
    assert "give either --source, or --warehouse" in neither[2]
