"""Rows of Python handed to Spark: the same rows as by Spark's own way."""

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from kafka_segments.engine.frames.local_rows import (
    arrow_rows,
    frame_of_rows,
    local_rows,
    rows_in_driver,
)

COLUMNS = "name string, n int, big long, at timestamp, list array<string>, s struct<a: int>"
MOMENT = dt.datetime(2026, 1, 31, 14, 0, 0, 123456, dt.UTC)
ROWS = [("é", 1, 2**63 - 1, MOMENT, ["x", None], {"a": 1}), (None,) * 6]


@pytest.mark.parametrize("rows", [ROWS, []])
def test_they_are_those_that_spark_makes(spark: SparkSession, rows: list[tuple[object]]) -> None:
    columns = StructType.fromDDL(COLUMNS)

    found = local_rows(spark, rows, columns)

    assert found.schema == columns
    assert found.collect() == spark.createDataFrame(rows, columns).collect()
    assert "LocalRelation" in found._jdf.queryExecution().analyzed().toString()


def test_null_where_none_may_be_is_refused(spark: SparkSession) -> None:
    columns = StructType([StructField("name", StringType(), nullable=False)])

    with pytest.raises(ValueError, match="non-nullable"):
        local_rows(spark, [(None,)], columns)


def test_rows_that_a_frame_was_made_of_are_found_again_without_a_query(
    spark: SparkSession,
) -> None:
    rows = pa.table({"n": pa.array(range(100), pa.int64())})

    frame = frame_of_rows(spark, rows, StructType.fromDDL("n long"))

    assert rows_in_driver(frame) is rows
    assert rows_in_driver(frame.where("n > 1")) is None
    assert [row["n"] for row in frame.collect()] == list(range(100))
    assert frame.rdd.getNumPartitions() == 1


def test_rows_of_arrow_of_which_a_filter_left_nothing_are_an_empty_frame(
    spark: SparkSession,
) -> None:
    rows = pa.table({"at": pa.array([MOMENT], pa.timestamp("us", "UTC"))}).filter(pa.array([False]))
    assert rows["at"].num_chunks == 0

    assert arrow_rows(spark, rows, StructType.fromDDL("at timestamp")).collect() == []
