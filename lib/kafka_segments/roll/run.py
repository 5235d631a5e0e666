"""Roll: decide over the tables, keep the decisions as a table; cut history anew."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.roll.decide.recut import compare_cuts
from kafka_segments.roll.decide.rolls import decide_rolls
from kafka_segments.roll.decide.rules import RollRules
from kafka_segments.roll.tasks import with_index_entries
from kafka_segments.tables.bounded import plus
from kafka_segments.tables.catalog import OFFSET_INDEX, ROLL_DECISIONS, SEGMENTS, TIME_INDEX
from kafka_segments.tables.configs import with_topic_configs
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.fingerprints import INTERVAL_IN_FINGERPRINT
from kafka_segments.topic_configs import TopicConfigs


@dataclass(frozen=True)
class RollOptions:
    """What a decision depends on besides the tables; ``now_ms`` is the run's clock.

    Attributes:
        append_bytes: Size of the append that the decision is for.
        append_records: Its records.
        append_timestamp_ms: Its greatest timestamp, -1 none; None: now.
        opened_ms: When the broker opened the active segments; None: not after their mtime.
    """

    warehouse: str
    configs: TopicConfigs
    rules: RollRules
    now_ms: int
    append_bytes: int = 16_384
    append_records: int = 1
    append_timestamp_ms: int | None = None
    opened_ms: int | None = None


def run_roll(spark: SparkSession, options: RollOptions, *, dry_run: bool) -> DataFrame:
    """Decide for every active segment of the warehouse; gives rows of ``roll_decisions``.

    Raises:
        UsageError: the warehouse has no segments.
    """
    tables, run_id = Warehouse(spark, options.warehouse), uuid.uuid4().hex
    decided = (
        _present(tables)
        .where("is_active")
        .transform(with_topic_configs(spark, options.configs))
        .withColumn("built_interval_bytes", _built_interval())
        .transform(with_index_entries(tasks=spark.sparkContext.defaultParallelism))
        .transform(_with_append(options))
        .transform(decide_rolls(now_ms=options.now_ms, rules=options.rules))
        .withColumn("run_id", F.lit(run_id))
        .withColumn("decided_at", F.timestamp_millis(F.lit(options.now_ms)))
    )
    if dry_run:
        return decided
    tables.create(ROLL_DECISIONS)
    tables.append(ROLL_DECISIONS, decided)
    return tables.read(ROLL_DECISIONS).where(F.col("run_id") == run_id)  # a broker writes on


def compare_settings(
    spark: SparkSession, options: RollOptions, grid: Sequence[Mapping[str, int]]
) -> DataFrame:
    """Cut every log's history anew under each of ``grid``; one row a log and setting.

    What a grid's row leaves out is as the topic's own configuration says.

    Raises:
        UsageError: the warehouse has no segments.
    """
    tables = Warehouse(spark, options.warehouse)
    compare = compare_cuts(
        offset_index=tables.read(OFFSET_INDEX),
        time_index=tables.read(TIME_INDEX),
        grid=grid,
    )
    configured = with_topic_configs(spark, options.configs)
    return _present(tables).transform(configured).transform(compare)


def _present(tables: Warehouse) -> DataFrame:
    valid = F.coalesce("valid_bytes", "size_bytes")
    there = tables.read(SEGMENTS).where(F.col("vanished_at").isNull())
    return there.withColumn("size_bytes", valid)


def _built_interval() -> Column:
    found = F.regexp_extract("fingerprint", INTERVAL_IN_FINGERPRINT, 1)
    return F.nullif(found, F.lit("")).cast("long")


def _with_append(options: RollOptions) -> Callable[[DataFrame], DataFrame]:
    """Add the append, and since when a broker has the segment open.

    Where the broker stamps the records, their timestamp is now.
    """
    asked = options.now_ms if options.append_timestamp_ms is None else options.append_timestamp_ms
    is_stamped = F.col("message_timestamp_type") == "LogAppendTime"
    opened = F.col("last_modified_ms") if options.opened_ms is None else F.lit(options.opened_ms)
    return lambda rows: rows.withColumns(
        {
            "append_bytes": F.lit(options.append_bytes),
            "append_timestamp_ms": F.when(is_stamped, options.now_ms).otherwise(F.lit(asked)),
            "append_last_offset": plus("next_offset", options.append_records - 1),
            "created_ms": opened.cast("long"),
        }
    )
