"""Rows of one log, as tests of decisions write them."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

LOG = "cluster string, broker_id int, log_dir string, topic string, partition int"
_KEY = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0}


def frame(spark: SparkSession, columns: str, *rows: Mapping[str, Any]) -> DataFrame:
    """Give rows with a log's key and ``columns``; what a row does not name is null."""
    schema = StructType.fromDDL(f"{LOG}, {columns}")
    values = [tuple((_KEY | dict(row)).get(name) for name in schema.fieldNames()) for row in rows]
    return spark.createDataFrame(values, schema)
