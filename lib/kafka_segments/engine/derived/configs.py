"""The configuration of each topic, as columns added to the rows of the topic."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.settings import TopicConfig

_TYPES: dict[type, T.DataType] = {int: T.LongType(), str: T.StringType(), bool: T.BooleanType()}
_CLUSTER, _NAME = "_cluster_number", "_settings_of"
Levels = Mapping[Any, Mapping[str, Any]]
KEYS = {key: _TYPES[type(value)] for key, value in TopicConfig().model_dump().items()}


def with_topic_configs(
    spark: SparkSession, configs: TopicConfigs, keys: Sequence[str] = tuple(KEYS)
) -> Transform:
    """Add one column for each of ``keys``, by the row's ``cluster``, ``topic`` and ``broker_id``.

    Rows are joined only with settings that some topic or broker has of its own: each column of a
    join costs time. A log that ``is_left_over``, if the rows tell, is of another topic than has its
    name now: the settings of this one are not its own.
    """
    clusters = (configs.others, *configs.clusters.values())
    of_topics = [cluster.of_topics() for cluster in clusters]
    of_brokers = [cluster.of_brokers() for cluster in clusters]
    by_topic, by_broker = _keys_of(of_topics, keys), _keys_of(of_brokers, keys)
    below = [cluster.below_brokers() for cluster in clusters]
    given = configs.others.given

    def value(key: str) -> Column:
        levels = (
            F.col(f"_topic_{key}") if key in by_topic else None,
            F.lit(given[key]).cast(KEYS[key]) if key in given else None,
            F.col(f"_broker_id_{key}") if key in by_broker else None,
            _by_cluster([values[key] for values in below]),
        )
        return F.coalesce(*(level for level in levels if level is not None)).cast(KEYS[key])

    def transform(rows: DataFrame) -> DataFrame:
        joined = rows.withColumn(_CLUSTER, _number(configs.clusters)) if configs.clusters else rows
        of_cluster = [_CLUSTER] if configs.clusters else []
        if by_topic:
            topics = _table(spark, "topic", T.StringType(), by_topic, of_topics)
            topics = topics.withColumnRenamed("topic", _NAME)
            joined = joined.withColumn(_NAME, _name_of(rows))
            joined = joined.join(F.broadcast(topics), [*of_cluster, _NAME], "left")
        if by_broker:
            brokers = _table(spark, "broker_id", T.IntegerType(), by_broker, of_brokers)
            joined = joined.join(F.broadcast(brokers), [*of_cluster, "broker_id"], "left")
        levels = (f"_topic_{key}" for key in by_topic), (f"_broker_id_{key}" for key in by_broker)
        found = (value(key).alias(key) for key in keys)
        return joined.drop(*keys).select("*", *found).drop(*chain(*levels), _CLUSTER, _NAME)

    return transform


def _name_of(rows: DataFrame) -> Column:
    """Return the topic whose settings a row has; null: it is left over from another topic."""
    name = F.col("topic")
    return F.when(~F.col("is_left_over"), name) if "is_left_over" in rows.columns else name


def _number(clusters: Iterable[str]) -> Column:
    """Number the clusters from 1 on; 0: another one."""
    number: Column = F.lit(0)
    for place, cluster in enumerate(clusters, 1):
        number = F.when(F.col("cluster") == cluster, place).otherwise(number)
    return number


def _by_cluster(values: Sequence[Any]) -> Column:
    """Return the value of the row's cluster; ``values`` are by its number."""
    found: Column = F.lit(values[0])
    for place, value in enumerate(values):
        if value != values[0]:
            found = F.when(F.col(_CLUSTER) == place, value).otherwise(found)
    return found


def _keys_of(clusters: Iterable[Levels], keys: Iterable[str]) -> list[str]:
    """Return those of the settings that some topic or broker has of its own."""
    found = {key for levels in clusters for values in levels.values() for key in values}
    return [key for key in keys if key in found]


def _table(
    spark: SparkSession,
    name: str,
    kind: T.DataType,
    keys: Sequence[str],
    clusters: Sequence[Levels],
) -> DataFrame:
    """Make a row for each topic or broker; with several clusters each has its number."""
    fields = [T.StructField(_CLUSTER, T.IntegerType()), T.StructField(name, kind)]
    fields += [T.StructField(f"_{name}_{key}", KEYS[key]) for key in keys]
    rows = [
        (number, whose, *(values.get(key) for key in keys))
        for number, levels in enumerate(clusters)
        for whose, values in levels.items()
    ]
    left_out = 0 if len(clusters) > 1 else 1
    return local_rows(spark, [row[left_out:] for row in rows], T.StructType(fields[left_out:]))
