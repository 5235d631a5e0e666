"""The configuration of each topic, as columns added to the rows of the topic."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from kafka_segments.settings import TopicConfig
from kafka_segments.spark.local_rows import local_rows
from kafka_segments.tables import columns as F
from kafka_segments.topic_configs import TopicConfigs

_TYPES: dict[type, T.DataType] = {int: T.LongType(), str: T.StringType(), bool: T.BooleanType()}
KEYS = {key: _TYPES[type(value)] for key, value in TopicConfig().model_dump().items()}


def with_topic_configs(
    spark: SparkSession, configs: TopicConfigs
) -> Callable[[DataFrame], DataFrame]:
    """Add one column for each setting, with its value for the row's ``topic`` and ``broker_id``."""
    topics = _table(spark, "topic", T.StringType(), configs.of_topics())
    brokers = _table(spark, "broker_id", T.IntegerType(), configs.brokers)
    below = TopicConfig().model_dump() | configs.static | configs.cluster

    def value(key: str) -> Column:
        given = F.lit(configs.given.get(key)).cast(KEYS[key])
        return F.coalesce(
            F.col(f"_topic_{key}"), given, F.col(f"_broker_id_{key}"), F.lit(below[key])
        ).cast(KEYS[key])

    def transform(rows: DataFrame) -> DataFrame:
        joined = rows.join(F.broadcast(topics), "topic", how="left").join(
            F.broadcast(brokers), "broker_id", how="left"
        )
        given = (f"_{level}_{key}" for level in ("topic", "broker_id") for key in KEYS)
        return joined.withColumns({key: value(key) for key in KEYS}).drop(*given)

    return transform


def _table(
    spark: SparkSession, key: str, kind: T.DataType, levels: Mapping[Any, Mapping[str, Any]]
) -> DataFrame:
    fields = [T.StructField(key, kind)]
    fields += [T.StructField(f"_{key}_{name}", column) for name, column in KEYS.items()]
    rows = [(name, *(values.get(column) for column in KEYS)) for name, values in levels.items()]
    return local_rows(spark, rows, T.StructType(fields))
