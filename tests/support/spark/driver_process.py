"""Builds in a driver process of its own, which can be killed, and meet another one half-way."""

import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.spark import session
from kafka_segments.engine.spark.jars import DELTA, find_jars
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import Build, run_build
from kafka_segments.verbs.scan.summary import BuildSummary
from support.spark.stored_builds import NOW_MS, files, rows

ROOT = Path(__file__).resolve().parents[3]
_PATIENCE_SECONDS = 300
_SMALL = {
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": session.SHORT_RUN_OPTIONS,
    "spark.executor.extraJavaOptions": session.SHORT_RUN_OPTIONS,
    "spark.executor.memory": "1g",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def small_settings(master: str) -> dict[str, str]:
    """Give what spark-submit and a driver here need, for small data."""
    jars = ",".join(map(str, find_jars(DELTA, ROOT)))
    return {**_SMALL, "spark.master": master, "spark.jars": jars}


def build(
    spark: SparkSession, source: Path, target: Path, *, meet_in: Path | None = None
) -> BuildSummary:
    """Build into ``target``/wh and ``target``/indexes."""
    options = BuildOptions(
        (str(source),),
        recovery=RecoveryOptions(),
        now_ms=NOW_MS,
        index_dir=str(target / "indexes"),
    )
    warehouse = Warehouse(spark, str(target / "wh"))
    if meet_in is None:
        return run_build(warehouse, options)
    return _MeetingBuild(warehouse, options, meet_in).run()


def build_undisturbed(spark: SparkSession, source: Path, target: Path) -> None:
    """Build what others are held against, in the way that takes the least time."""
    with few_rows(spark):
        build(spark, source, target)


class _MeetingBuild(Build):
    """Waits for another one before it writes tables."""

    def __init__(self, warehouse: Warehouse, options: BuildOptions, folder: Path) -> None:
        super().__init__(warehouse, options)
        self._folder = folder

    def _write(self, *arguments: Any) -> None:
        (self._folder / self._run_id).touch()
        end = time.monotonic() + _PATIENCE_SECONDS
        while len(list(self._folder.iterdir())) < 2:
            assert time.monotonic() < end, "the other build never came"
            time.sleep(0.02)
        super()._write(*arguments)


class Driver:
    """One driver process with its session, started when it is first asked."""

    def __init__(self, settings: dict[str, str], python: str) -> None:
        self._pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_start, initargs=(settings, python)
        )

    def build(
        self,
        source: Path,
        target: Path,
        *,
        meet_in: Path | None = None,
        killed: str | None = None,
    ) -> Future[BuildSummary]:
        """Build there; ``killed``: before or after the merge into table ``segments``."""
        return self._pool.submit(_build, source, target, meet_in, killed)

    def close(self) -> None:
        self._pool.shutdown()


def _start(settings: dict[str, str], python: str) -> None:
    os.environ["PYSPARK_PYTHON"] = python
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    SparkSession.builder.config(map={**session._ALWAYS, **settings}).getOrCreate()


def _build(source: Path, target: Path, meet_in: Path | None, killed: str | None) -> BuildSummary:
    with pytest.MonkeyPatch.context() as patch:
        if killed is not None:
            patch.setattr(Warehouse, "merge", _killing(killed))
        return build(SparkSession.active(), source, target, meet_in=meet_in)


def _killing(when: str) -> Any:
    merge = Warehouse.merge

    def merge_and_die(self: Warehouse, table: Table, rows: DataFrame, **options: Any) -> None:
        if when == "after" or table is not tables.SEGMENTS:
            merge(self, table, rows, **options)
        if table is tables.SEGMENTS:
            gateway: Any = self.spark.sparkContext._gateway
            os.kill(gateway.proc.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    return merge_and_die


def leftovers(target: Path) -> list[Path]:
    """Find what a run that could clean up behind itself leaves nowhere."""
    return [*target.glob("wh/_entries/*"), *target.rglob("*.kafka-segments-tmp")]


def same_tables(spark: SparkSession, one: Path, other: Path) -> bool:
    """Tell whether two targets have the same rows, run ids and options aside, and files."""
    return _state(spark, one) == _state(spark, other)


def _state(spark: SparkSession, target: Path) -> dict[str, Any]:
    with few_rows(spark):
        found: dict[str, Any] = {
            table.name: rows(spark, str(target / "wh"), table, without={"run_id", "fingerprint"})
            for table in tables.BUILD_TABLES
            if table is not tables.RUNS
        }
    return found | {"files": files(target / "indexes")}
