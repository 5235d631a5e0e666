"""Rows of one log, as tests of decisions write them."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

LOG = "cluster string, broker_id int, log_dir string, topic string, partition int"
_KEY = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0}


def frame(spark: SparkSession, columns: str, *rows: Mapping[str, Any]) -> DataFrame:
    """Give rows with a log's key and ``columns``; what a row does not name is null."""
    names = [column.split()[0] for column in f"{LOG}, {columns}".split(", ")]
    values = [tuple((_KEY | dict(row)).get(name) for name in names) for row in rows]
    return spark.createDataFrame(values, f"{LOG}, {columns}")
