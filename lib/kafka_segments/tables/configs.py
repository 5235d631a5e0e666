"""The configuration of each topic, as columns added to the rows of the topic."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
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
    """Add one column for each setting, with its value for the row's ``topic`` and ``broker_id``.

    Rows are joined only with settings that some topic or broker has of its own: each column of a
    join costs time.
    """
    of_topics, of_brokers = configs.of_topics(), configs.brokers
    by_topic, by_broker = _keys_of(of_topics), _keys_of(of_brokers)
    below = TopicConfig().model_dump() | configs.static | configs.cluster

    def value(key: str) -> Column:
        levels = (
            F.col(f"_topic_{key}") if key in by_topic else None,
            F.lit(configs.given[key]).cast(KEYS[key]) if key in configs.given else None,
            F.col(f"_broker_id_{key}") if key in by_broker else None,
            F.lit(below[key]),
        )
        return F.coalesce(*(level for level in levels if level is not None)).cast(KEYS[key])

    def transform(rows: DataFrame) -> DataFrame:
        joined = rows
        if by_topic:
            topics = _table(spark, "topic", T.StringType(), by_topic, of_topics)
            joined = joined.join(F.broadcast(topics), "topic", how="left")
        if by_broker:
            brokers = _table(spark, "broker_id", T.IntegerType(), by_broker, of_brokers)
            joined = joined.join(F.broadcast(brokers), "broker_id", how="left")
        levels = (f"_topic_{key}" for key in by_topic), (f"_broker_id_{key}" for key in by_broker)
        given = (value(key).alias(key) for key in KEYS)
        return joined.drop(*KEYS).select("*", *given).drop(*chain(*levels))

    return transform


def _keys_of(levels: Mapping[Any, Mapping[str, Any]]) -> list[str]:
    """Return the settings that some topic or broker has of its own."""
    return [key for key in KEYS if any(key in values for values in levels.values())]


def _table(
    spark: SparkSession,
    name: str,
    kind: T.DataType,
    keys: Sequence[str],
    levels: Mapping[Any, Mapping[str, Any]],
) -> DataFrame:
    fields = [T.StructField(name, kind)]
    fields += [T.StructField(f"_{name}_{key}", KEYS[key]) for key in keys]
    rows = [(whose, *(values.get(key) for key in keys)) for whose, values in levels.items()]
    return local_rows(spark, rows, T.StructType(fields))
