"""Verbs say the same whether they take what they read for few rows or for many."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine import limits
from kafka_segments.engine.choose import few_rows, has_few_rows
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.frames import engines
from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.tables.catalog import (
    BUILD_TABLES,
    OFFSET_INDEX,
    RUNS,
    SEGMENTS,
    TIME_INDEX,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.formats.minute_index import MinuteFormat
from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.settings import Settings
from kafka_segments.verbs.change.migrate.inventory.run import InventoryOptions, run_inventory
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.run import RetentionOptions
from kafka_segments.verbs.scan.summary import BuildSummary
from kafka_segments.verbs.scan.write_tables import BuildTables
from kafka_segments.verbs.tell.report.run import ReportData, ReportOptions, run_report
from kafka_segments.verbs.tell.validate.run import ValidateOptions, run_validate
from support.logs.log_folders import append_batch
from support.spark.ready_builds import ReadyBuild
from support.spark.stored_builds import NOW_MS, build, files, rows

_OF_A_RUN = {"run_id", "fingerprint"}  # the index folder is part of the fingerprint


def _both(spark: SparkSession, act: Callable[[str], Any]) -> list[Any]:
    """Return what comes of many rows, and of few."""
    found = []
    for kind, taken in (("many", nullcontext()), ("few", few_rows(spark))):
        with taken:
            found.append(act(kind))
            assert has_few_rows(spark) == (kind == "few")
    return found


@pytest.mark.long
def test_builds_make_the_same_tables_and_index_files(
    spark: SparkSession, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(kind: str, **options: Any) -> tuple[Any, ...]:
        done = _build(spark, log_dir, tmp_path / kind, **options)
        tables = {
            table.name: rows(spark, str(tmp_path / kind / "wh"), table, without=_OF_A_RUN)
            for table in BUILD_TABLES
            if table is not RUNS
        }
        return done.segments_scanned, done.segments_vanished, tables, files(tmp_path / kind / "ix")

    def died(kind: str) -> None:
        with pytest.raises(InterruptedError):
            _build(spark, log_dir, tmp_path / kind)

    first_many, first_few = _both(spark, made)
    segments = sorted(log_dir.glob("*/*.log"))
    gone = segments[0].rename(tmp_path / "gone")
    append_batch(segments[1])
    segments[-1].write_bytes(segments[-1].read_bytes() + b"torn")
    _flip(segments[-2])
    second_many, second_few = _both(spark, made)
    gone.rename(segments[0])
    append_batch(segments[1])
    with monkeypatch.context() as patched:
        patched.setattr(BuildTables, "_write_segments", _die)
        _both(spark, died)
    third_many, third_few = _both(spark, made)
    minutes_many, minutes_few = _both(spark, partial(made, index_format=MinuteFormat()))
    look = {"mode": RecoveryMode.SEGMENT, "index_dir": None, "is_first_look": True, "full": True}
    looked_many, looked_few = _both(spark, partial(made, **look))

    assert first_few == first_many
    assert second_few == second_many
    assert second_few[:2] == (3, 1)
    assert third_few == third_many
    assert third_few[:2] == (2, 0)  # the one that came back is known; behind damage one is read
    assert minutes_few == minutes_many
    assert minutes_few[0] > 0
    assert looked_few == looked_many


def _flip(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)


def _die(*_: object) -> None:
    raise InterruptedError("killed")


def _build(spark: SparkSession, source: Path, folder: Path, **options: Any) -> BuildSummary:
    return build(
        spark,
        str(source),
        str(folder / "wh"),
        **{"index_dir": str(folder / "ix"), "mode": RecoveryMode.LOADER_UNCLEAN, **options},
    )


@pytest.mark.slow
def test_a_small_build_writes_a_file_a_table(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    with few_rows(spark):
        _build(spark, log_dir, tmp_path)

    written = {
        table.name: Warehouse(spark, str(tmp_path / "wh")).file_totals(table)[0]
        for table in BUILD_TABLES
    }
    assert max(written.values()) == 1, written


@pytest.mark.long
def test_few_segments_of_many_bytes_are_read_by_threads_or_tasks_and_entries_by_spark(
    spark: SparkSession, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(kind: str) -> dict[str, Any]:
        with few_rows(spark):
            _build(spark, log_dir, tmp_path / kind)
            found = has_few_rows(spark)
        tables = {
            table.name: rows(spark, str(tmp_path / kind / "wh"), table, without=_OF_A_RUN)
            for table in (SEGMENTS, OFFSET_INDEX, TIME_INDEX)
        }
        return {"few": found, **tables}

    def made_by(kind: str) -> dict[str, Any]:
        with monkeypatch.context() as patched:
            patched.setattr(limits, "_LITTLE_BYTES", 0)
            patched.setitem(limits.MOST, limits.Work.ROWS, limits.Load(0))
            if kind == "tasks":
                patched.setattr(engines, "MOST_IN_DRIVER", 0)
            return made(kind)

    here = made("here")
    assert made_by("tasks") == here
    assert made_by("threads") == here
    append_batch(max(log_dir.glob("*/*.log")))
    again = made("here")

    assert made_by("tasks") == again | {"few": False}
    assert made_by("threads") == again | {"few": False}
    assert again["few"]
    assert not list(tmp_path.glob("*/wh/_entries/*"))


@pytest.mark.long
@pytest.mark.parametrize("verb", ["validate", "report", "inventory"])
def test_a_report_an_inventory_and_a_validation_say_the_same(
    spark: SparkSession, broker_build: ReadyBuild, verb: str
) -> None:
    warehouse = str(broker_build.warehouse)
    configs = TopicConfigs.load(Settings())
    retention = RetentionOptions(configs, RetentionRules.of("4.3"), NOW_MS)

    def report(_: str) -> ReportData:
        return run_report(Warehouse(spark, warehouse), ReportOptions(NOW_MS))

    def inventory(_: str) -> list[list[str]]:
        taken = run_inventory(
            Warehouse(spark, warehouse), InventoryOptions(retention), dry_run=True
        )
        return [_sorted(taken.segments), _sorted(taken.obstacles)]

    def results(_: str) -> list[Any]:
        found = run_validate(Warehouse(spark, warehouse), ValidateOptions(NOW_MS), dry_run=True)
        return [found.quarantined, *found.results]

    acts = {"report": report, "inventory": inventory, "validate": results}
    of_many, of_few = _both(spark, acts[verb])
    assert of_few == of_many


def _sorted(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.drop("run_id").collect())


def test_what_is_held_keeps_its_values_and_types(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT id, timestamp_millis(id) AS at, array(named_struct('a', id)) AS list,"
        " cast(null AS string) AS text, map('k', id) AS map FROM range(5)"
    )
    with few_rows(spark):
        held, none = collected_if_few(frame), collected_if_few(frame.where("id > 5"))

        assert held.schema == frame.schema
        assert held.collect() == frame.collect()
        assert none.schema == frame.schema
        assert none.collect() == []
    assert collected_if_few(frame) is frame
