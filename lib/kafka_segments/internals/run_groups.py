"""Groups: whether ``__consumer_offsets`` loads on a release, and what room its groups take."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.broker_rules.group_records import GroupRecordRules
from kafka_segments.errors import UsageError
from kafka_segments.internals.decide.groups import decide_groups
from kafka_segments.tables.catalog import INTERNAL_RECORDS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.wire.names import OFFSETS_TOPIC


@dataclass(frozen=True)
class GroupsOptions:
    """Which groups of a warehouse are asked for, and which coordinator reads them.

    ``warehouse`` is an absolute URI.

    ``cluster`` and ``broker_id``: only logs of these; None: all. ``groups``: rows of these groups
    beside the rows of whole partitions; empty: of all groups.
    """

    warehouse: str
    rules: GroupRecordRules
    cluster: str | None = None
    broker_id: int | None = None
    groups: tuple[str, ...] = ()


def run_groups(spark: SparkSession, options: GroupsOptions) -> DataFrame:
    """Return a row for each partition and each group: the columns of ``decide_groups``.

    Raises:
        UsageError: the tables have no records of the group coordinator.
    """
    records = Warehouse(spark, options.warehouse).read(INTERNAL_RECORDS)
    asked = records.where(F.col("topic") == OFFSETS_TOPIC)
    if options.cluster is not None:
        asked = asked.where(F.col("cluster") == options.cluster)
    if options.broker_id is not None:
        asked = asked.where(F.col("broker_id") == options.broker_id)
    if asked.isEmpty():
        raise UsageError(
            f"{options.warehouse} has no records of {OFFSETS_TOPIC} that are asked for: run"
            " `kafka-segments internals --source` on the log directories of the brokers that have"
            " it"
        )
    rows = asked.transform(decide_groups(options.rules))
    if not options.groups:
        return rows
    return rows.where(F.col("group_id").isNull() | F.col("group_id").isin(*options.groups))
