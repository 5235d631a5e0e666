"""Rows that several steps read: how they are joined."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.engines import joined_by_shuffle

LARGE = 3_000_000  # alike rows: persisted they are a few MB, each a row of its own in a broadcast


def plan_of(left: DataFrame, right: DataFrame) -> str:
    return left.join(right, "id", "left_semi")._jdf.queryExecution().executedPlan().toString()


@pytest.mark.slow
def test_many_persisted_rows_are_not_broadcast_however_few_bytes_they_take(
    spark: SparkSession,
) -> None:
    rows = spark.range(LARGE).withColumn("topic", F.lit("orders")).persist()
    try:
        assert rows.count() == LARGE
        asked = spark.range(LARGE, LARGE * 2)

        assert "BroadcastHashJoin" in plan_of(asked, rows)  # so Spark would have it
        assert "Broadcast" not in plan_of(asked, joined_by_shuffle(rows).select("id"))
        assert "Broadcast" not in plan_of(asked, joined_by_shuffle(rows).where("id > 5"))
    finally:
        rows.unpersist()


def test_few_rows_are_joined_as_spark_chooses(spark: SparkSession) -> None:
    with few_rows(spark):
        assert "BroadcastHashJoin" in plan_of(spark.range(5), joined_by_shuffle(spark.range(9)))
