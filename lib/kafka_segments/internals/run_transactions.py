"""Open transactions: compare what the logs have open with the transaction coordinator's log."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError
from kafka_segments.generated.records import TRANSACTIONS_TOPIC
from kafka_segments.internals.decide.transactions import (
    ask_for_first,
    coordinators_say,
    decide_transactions,
    with_cleanup_policy,
    with_first_times,
    with_held_bytes,
    with_producers,
)
from kafka_segments.search.decide.logs import open_transactions
from kafka_segments.search.log_tables import READING, LogChoice, LogTables
from kafka_segments.search.tasks import find_first_records
from kafka_segments.tables.catalog import INTERNAL_RECORDS, METADATA_CONFIGS, METADATA_TOPICS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS, Transform
from kafka_segments.tables.looked_at import refuse_looked_at


@dataclass(frozen=True)
class TransactionsOptions:
    """Of which logs of a warehouse, an absolute URI, open transactions are asked for.

    ``now_ms`` is the run's clock.
    """

    warehouse: str
    choice: LogChoice
    now_ms: int


def run_transactions(
    spark: SparkSession, options: TransactionsOptions, caches: ExitStack
) -> DataFrame:
    """Return the transactions that are open: the columns of ``decide_transactions``.

    One replica of each partition is looked at.

    Raises:
        UsageError: the tables have no records of the transaction coordinator.
        LookedAtError: a segment is known by a first look alone.
    """
    warehouse = Warehouse(spark, options.warehouse)
    records = warehouse.read(INTERNAL_RECORDS)
    if records.where(F.col("topic") == TRANSACTIONS_TOPIC).isEmpty():
        raise UsageError(
            f"{options.warehouse} has no records of {TRANSACTIONS_TOPIC}: run `kafka-segments"
            " internals --source` on the log directories of the brokers that have it"
        )
    also = ("producers", "transaction_steps", *READING)
    tables = LogTables(spark, options.warehouse, options.choice, caches, also=also)
    replicas = tables.replicas().select(*LOG_KEYS, "log_end_offset")
    segments = tables.segments_as_built().join(replicas, list(LOG_KEYS), how="inner")
    refuse_looked_at(segments, "which transactions are open")
    asked = segments.transform(open_transactions()).transform(ask_for_first(segments))
    opened = (
        find_first_records(asked)
        .transform(with_first_times)
        .transform(with_producers(segments))
        .transform(with_held_bytes(segments))
        .transform(_with_cleanup_policy(warehouse))
    )
    decide = decide_transactions(records.transform(coordinators_say), now_ms=options.now_ms)
    return opened.transform(decide)


def _with_cleanup_policy(tables: Warehouse) -> Transform:
    if any(tables.version(table) is None for table in (METADATA_TOPICS, METADATA_CONFIGS)):
        return lambda opened: opened.withColumn("cleanup_policy", F.lit(None).cast("string"))
    held = (
        tables.read(table).where("until_offset IS NULL")
        for table in (METADATA_TOPICS, METADATA_CONFIGS)
    )
    return with_cleanup_policy(*held)
