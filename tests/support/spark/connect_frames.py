"""Few rows in a client of SPARK_REMOTE: what becomes of them, told as one line of JSON."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import expect_many_rows, few_rows, has_few_rows
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import frame_of_rows, local_rows, rows_in_driver
from kafka_segments.engine.spark.session import spark_session
from support.spark.connect_client import CountedCalls

COLUMNS = "name string, n int, big long, at timestamp, list array<string>, s struct<a: int>"
MOMENT = dt.datetime(2026, 1, 31, 14, 0, 0, 123456, dt.UTC)
ROWS = [("é", 1, 2**63 - 1, MOMENT, ["x", None], {"a": 1}), (None,) * 6]
MANY = 40_000
SETTINGS = (
    *("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"),
    *("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"),
)


def _settings(spark: SparkSession) -> list[str | None]:
    return [spark.conf.get(key, None) for key in SETTINGS]


def _of_settings(spark: SparkSession) -> dict[str, Any]:
    before = _settings(spark)
    with few_rows(spark):
        few, within = has_few_rows(spark), _settings(spark)
        expect_many_rows(spark)
        many = [not has_few_rows(spark), _settings(spark) == before]
    with few_rows(spark):
        pass
    return {"few": few, "within": within, "many": many, "after": _settings(spark) == before}


def _of_rows(spark: SparkSession) -> dict[str, Any]:
    columns = StructType.fromDDL(COLUMNS)
    local, none = local_rows(spark, ROWS, columns), local_rows(spark, [], columns)
    texts = pa.table({"text": pa.array([f"{number:060}" for number in range(MANY)])})
    long = frame_of_rows(spark, texts, StructType.fromDDL("text string"))
    return {
        "are as given": local.collect() == spark.createDataFrame(ROWS, columns).collect(),
        "have their types": [frame.schema == columns for frame in (local, none)],
        "none": none.collect(),
        "many": [long.distinct().count(), long.agg(F.max("text")).first()[0]],
    }


def _of_held(spark: SparkSession, counted: CountedCalls) -> dict[str, Any]:
    with few_rows(spark):
        before = counted.calls
        found = computed_once(spark.range(3).selectExpr("id", "CAST(id AS string) AS text"))
        kept = rows_in_driver(found)
        return {
            "calls": counted.calls - before,
            "rows": None if kept is None else kept.to_pylist(),
            "same": [row.asDict() for row in found.collect()],
        }


def _of_collected(spark: SparkSession) -> dict[str, Any]:
    numbers = spark.range(5).orderBy(F.desc("id")).limit(3)
    frames = {
        "numbers": numbers,
        "nested": numbers.selectExpr("struct(id, array(id)) AS of", "NULL AS nothing"),
        "none": numbers.where("id < 0"),
        "count": numbers.agg(F.count("*").alias("count")),
    }
    found = collect_together(frames)
    return {name: [row.asDict(recursive=True) for row in rows] for name, rows in found.items()}


def main() -> None:
    """Tell what becomes of few rows in a session of the server."""
    with spark_session("client", root=Path(__file__).resolve().parents[3]) as spark:
        client: Any = spark.client
        client._stub = counted = CountedCalls(client._stub)
        told = {
            "settings": _of_settings(spark),
            "rows": _of_rows(spark),
            "held": _of_held(spark, counted),
            "collected": _of_collected(spark),
        }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
