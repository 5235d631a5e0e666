"""Verbs that work on few rows: what a session is meanwhile, and where steps run."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from kafka_segments.engine.choose import expect_many_rows, few_rows, has_few_rows
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.limits import MOST_IN_DRIVER
from kafka_segments.engine.workarounds import kept_rows

COLUMNS = StructType([StructField("id", LongType()), StructField("process", LongType())])
WHOLE_STAGE = "spark.sql.codegen.wholeStage"


def _processes(rows: DataFrame, *, most_in_driver: int = MOST_IN_DRIVER) -> set[int]:
    """Return the processes that map rows; what maps them is sent to workers as it is."""

    def with_process(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            processes = pa.array([os.getpid()] * len(batch), pa.int64())
            yield pa.RecordBatch.from_arrays([batch["id"], processes], ["id", "process"])

    found = map_rows(rows, with_process, COLUMNS, most_in_driver=most_in_driver, spread=True)
    assert found.schema == COLUMNS
    values = found.collect()
    assert sorted(row["id"] for row in values) == [0, 1, 2]
    return {row["process"] for row in values}


def test_few_rows_are_mapped_in_the_driver_and_others_by_workers(spark: SparkSession) -> None:
    rows = spark.range(3)

    assert os.getpid() not in _processes(rows)
    with few_rows(spark):
        assert _processes(rows) == {os.getpid()}
        assert os.getpid() not in _processes(rows, most_in_driver=2)


def test_no_rows_are_mapped_to_none(spark: SparkSession) -> None:
    with few_rows(spark):
        assert map_rows(spark.range(0), iter, COLUMNS).collect() == []


def test_the_session_is_as_before_when_a_verb_has_failed(spark: SparkSession) -> None:
    before = spark.conf.get(WHOLE_STAGE)

    with pytest.raises(ZeroDivisionError), few_rows(spark):
        assert has_few_rows(spark)
        assert spark.conf.get(WHOLE_STAGE) == "false"
        raise ZeroDivisionError

    assert not has_few_rows(spark)
    assert spark.conf.get(WHOLE_STAGE) == before


def test_what_is_held_is_what_it_was_then_and_one_task_has_it(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("id", "uuid() AS drawn").repartition(4)

    with few_rows(spark):
        found = computed_once(rows)
        assert found.collect() == found.collect()
        assert found.rdd.getNumPartitions() == 1
        expect_many_rows(spark)
        with ExitStack() as caches:
            cached = computed_once(rows, caches)
            assert cached.collect() == cached.collect()
            assert rows.storageLevel.useMemory
        assert not rows.storageLevel.useMemory


def test_the_plan_of_many_rows_does_not_grow_with_the_steps_in_front_of_them(
    spark: SparkSession,
) -> None:
    with ExitStack() as caches:
        rows = computed_once(spark.range(3), caches)
        for _ in range(3):
            rows = computed_once(rows.join(rows.select("id"), "id", how="inner"), caches)

        assert rows._jdf.queryExecution().analyzed().collectLeaves().size() == 1
        assert sorted(row["id"] for row in rows.collect()) == [0, 1, 2]


def test_a_spark_whose_plans_are_others_keeps_its_plan(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_no_such_method(kept: DataFrame) -> DataFrame:
        return kept._jdf.cachedRows()

    monkeypatch.setattr(kept_rows, "_cut", has_no_such_method)
    with ExitStack() as caches:
        rows = computed_once(spark.range(3), caches)

        assert rows.storageLevel.useMemory
        assert sorted(row["id"] for row in rows.collect()) == [0, 1, 2]
