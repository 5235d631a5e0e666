"""`recovery forecast` from the tables of a build."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import forecast_dirs
from kafka_segments.verbs.change.recovery.forecast.decide.table_logs import dirs_of
from kafka_segments.verbs.change.recovery.forecast.decide.tables import decide_logs
from kafka_segments.verbs.change.recovery.forecast.decide.times import Costs
from kafka_segments.verbs.change.recovery.forecast.run import (
    Forecast,
    ForecastOptions,
    run_forecast,
)
from kafka_segments.verbs.change.recovery.forecast.run_tables import run_forecast_tables
from support.spark.ready_builds import ReadyBuild
from support.spark.stored_builds import build_few
from support.verbs.recovery_kits import flip

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
            [finding._replace(lost_records=None) for finding in log.findings],
        )
        for _, log in forecast.logs
    }


@pytest.mark.slow
def test_tables_tell_what_the_disks_tell(spark: SparkSession, broker_build: ReadyBuild) -> None:
    options = ForecastOptions(threads=(1,))
    disks = ForecastOptions(threads=(1,), sources=(str(broker_build.logs),), is_full=True)

    by_tables = run_forecast_tables(Warehouse(spark, str(broker_build.warehouse)), options)
    by_disks = run_forecast(disks)

    assert _told(by_tables) == _told(by_disks)
    assert len(_told(by_tables)) > 5


@pytest.fixture(scope="module")
def decided(spark: SparkSession) -> DataFrame:
    """Logs with segments at 0, 10 and 20 of 100, 110 and 120 bytes; what a start does with each."""
    points = {
        **{"none": None, "middle": 15, "end": 29, "clean": 0, "__cluster_metadata": 29},
        **{"torn": 15, "cut": 5, "below": 15, "moving": 29, "tiered": 29, "empty": 29},
        **{"unsure": 5, "unread": 29, "split": 15},
    }
    damaged = {("torn", 20): "partial_batch", ("cut", 10): "corrupt_batch"}
    damaged |= {("below", 0): "corrupt_batch", ("unsure", 10): "corrupt_batch"}
    damaged |= {("unread", 20): "changed_while_read", ("split", 10): "offset_overflow"}
    damaged |= {("cut", 20): "removed_after_truncation"}
    truncated = {("torn", 20), ("cut", 10), ("below", 0), ("unsure", 10)}
    dirs = {topic: "/clean" if topic == "clean" else "/hard" for topic in points}
    segments = spark.createDataFrame(
        [
            (
                *("c", 1, dirs[topic], topic, 0, base, 100 + base, base // 10 + 1),
                None if (topic, base) == ("unsure", 20) else base + 4,
                0 if (topic, base) == ("empty", 20) else 100 + base,
                7 if (topic, base) in truncated else 0,
                base + 9,
                (damaged[topic, base], 1, "why") if (topic, base) in damaged else None,
            )
            for topic in points
            for base in ((10, 20) if topic == "tiered" else (0, 10, 20))
        ],
        f"{_LOG}, base_offset long, size_bytes long, batch_count long, record_count long,"
        f" valid_bytes long, truncated_bytes long, next_offset long, {_DAMAGE}",
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
    return segments.transform(decide_logs(logs, log_dirs)).orderBy(*LOG_KEYS).persist()


def test_a_log_is_recovered_from_the_segment_with_its_recovery_point_to_its_first_cut(
    decided: DataFrame,
) -> None:
    assert {
        row.topic: (
            *(row.first_recovered_offset, row.recovered_segments),
            *(row.recovered_bytes, row.recovered_batches, row.is_left_alone, row.ends_empty),
        )
        for row in decided.collect()
    } == {
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
        "unsure": (0, 2, 210, 3, True, False),
        "unread": (20, 1, 120, 3, True, False),
        "split": (10, 2, 230, 5, True, False),
    }


def test_damage_in_the_tables_is_found_and_what_no_table_knows_is_null(decided: DataFrame) -> None:
    dirs = dirs_of(decided.collect())
    hard = forecast_dirs(dirs, Costs(), threads=(1,))[1]

    found = [
        (finding.topic, *finding[3:9])
        for one in dirs
        for log in one.logs
        for finding in log.findings
    ]
    assert found == [
        ("cut", 10, "cut", 1, 7 + 120, None, 1),
        ("split", 10, "split", 1, 0, 0, 0),
        ("torn", 20, "cut", 1, 7, None, 0),
        ("unsure", 10, "cut", 1, 7 + 120, None, 1),
    ]
    assert [row.lost_records for row in decided.collect() if row.topic in ("cut", "unsure")] == [
        *(24, None),
    ]
    assert dirs[1].problems == ("no meta.properties", "unread-0: segment 20: why")
    assert (hard.lost_bytes, hard.lost_records, hard.lost_segments) == (261, None, 2)
    assert hard.split_segments == 1
    unknown = (hard.missing_indexes, hard.logs_without_snapshot, hard.replayed_bytes)
    unknown += (hard.full_indexes, hard.left_over_files, hard.delete_logs, hard.stray_logs)
    assert unknown == (None,) * 7


@pytest.mark.slow
def test_tables_tell_of_a_damaged_disk_what_the_disk_tells(
    spark: SparkSession, broker: Path, tmp_path: Path, few: None
) -> None:
    disk, warehouse = tmp_path / "disk", str(tmp_path / "warehouse")
    for name in ("ct-two-partitions-0", "txn-0"):
        shutil.copytree(broker / "logs" / name, disk / name)
        shutil.copytree(broker / "rebuilt" / name, disk / name, dirs_exist_ok=True)
    flip(min((disk / "ct-two-partitions-0").glob("*.log")), 300)
    with max((disk / "txn-0").glob("*.log")).open("ab") as torn:
        torn.write(b"\1" * 50)
    build_few(spark, str(disk), warehouse)

    words = ("--broker-threads", "2", "--output", "json", "--rows")
    done = [
        CliRunner().invoke(cli, ["recovery", "forecast", *source, *words, "findings"])
        for source in (("--warehouse", warehouse), ("--source", str(disk), "--check", "full"))
    ]

    by_tables, by_disk = (
        sorted(map(_without_records, one.stdout.splitlines()), key=lambda row: str(row["folder"]))
        for one in done
    )
    assert [one.exit_code for one in done] == [1, 1], done[0].output
    assert by_tables == by_disk
    assert [row["consequence"] for row in by_tables] == ["cut", "cut"]
    assert by_tables[0]["lost_segments"] > 0


def _without_records(line: str) -> dict[str, object]:
    return {**json.loads(line), "lost_records": None, "lost_offsets": None}


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
    reads = run("--warehouse", str(broker_build.warehouse), "--check", "full")
    assert (neither[0], both[0], reads[0]) == (2, 2, 2)
    assert "read segments: give --source" in reads[2]
    assert "give either --source, or --warehouse" in neither[2]
