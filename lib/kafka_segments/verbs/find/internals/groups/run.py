"""Groups: whether ``__consumer_offsets`` loads on a release, and what room its groups take."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.contradictions import contradicted, unsettled
from kafka_segments.engine.derived.file_sums import with_file_facts
from kafka_segments.engine.derived.group_offsets import (
    groups_not_known,
    offsets_read,
    unread_partitions,
)
from kafka_segments.engine.derived.internal_files import file_facts, known_files
from kafka_segments.engine.derived.internal_problems import lost_of_replicas
from kafka_segments.engine.derived.known_replicas import without_left_over
from kafka_segments.engine.derived.lost_records import (
    as_read,
    lost_by_records,
    with_lost_of,
)
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, LOGS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.missing import require_values
from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.group_records import GroupRecordRules
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.internals.groups.decide.groups import decide_groups
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables


@dataclass(frozen=True)
class GroupsOptions:
    """Which groups are asked for, and which coordinator reads them.

    ``cluster`` and ``broker_id``: only logs of these; None: all. ``groups``: rows of these groups
    beside the rows of whole partitions; empty: of all groups.
    """

    rules: GroupRecordRules
    cluster: str | None = None
    broker_id: int | None = None
    groups: tuple[str, ...] = ()


def run_groups(warehouse: Warehouse, options: GroupsOptions, caches: ExitStack) -> DataFrame:
    """Return a row for each partition and each group: the columns of ``decide_groups``.

    Raises:
        UsageError: the tables have no records of the group coordinator, or none of what is asked
            for.
    """
    records = warehouse.read(INTERNAL_RECORDS)
    asked = records.where(F.col("topic") == OFFSETS_TOPIC)
    if asked.isEmpty():
        raise UsageError(
            f"{warehouse.root} has no records of {OFFSETS_TOPIC}: run `kafka-segments internals"
            " --source` on the log directories of the brokers that have it"
        )
    for whose, value in (("cluster", options.cluster), ("broker_id", options.broker_id)):
        if value is not None:
            what = f"records of {OFFSETS_TOPIC} of {whose.removesuffix('_id')}"
            require_values(warehouse.root, what, (value,), asked.select(whose))
            asked = asked.where(F.col(whose) == value)
    records = asked.transform(with_file_facts(file_facts(warehouse)))
    records = records.transform(without_left_over(warehouse))
    found = contradicted(warehouse, (OFFSETS_TOPIC,), caches)
    lost = lost_of_replicas(warehouse, OFFSETS_TOPIC, found)
    keys = None if found is None else records.transform(unsettled(found.keys))
    rows = records.transform(decide_groups(options.rules, lost, keys))
    logs = _logs_read(warehouse, records, options.cluster, caches)
    if options.broker_id is None:
        tell_not_known(
            unread_partitions(
                warehouse,
                logs,
                cluster=options.cluster,
                groups=options.groups,
            )
        )
    if not options.groups:
        return rows
    known = {row["group_id"] for row in rows.select("group_id").distinct().collect()} - {None}
    read = offsets_read(warehouse, logs)
    tell_not_known(groups_not_known(warehouse.root, options.groups, known, read))
    return rows.where(F.col("group_id").isNull() | F.col("group_id").isin(*options.groups))


def _logs_read(
    tables: Warehouse, records: DataFrame, cluster: str | None, caches: ExitStack
) -> DataFrame:
    """Return the logs whose records were read, as ``unread_partitions`` needs them.

    What a build has found of the replica that answers counts; without one the records tell alone
    where they begin. ``records``: rows of ``internal_records``.
    """
    nothing = F.lit(None).cast("string")
    read = records.groupBy("cluster", "partition").agg(F.min("base_offset").alias("_first"))
    if tables.version(SEGMENTS) is None or tables.version(LOGS) is None:
        return read.withColumnRenamed("_first", "log_start_offset").withColumns(
            {"doubt": nothing, "lost": nothing}
        )
    choice = LogChoice(topics=(OFFSETS_TOPIC,), cluster=cluster)
    built = LogTables(tables, choice, caches, also=READING).coordinators(known_files(tables))
    told = built.transform(with_lost_of(lost_by_records(records))).transform(as_read)
    joined = read.join(told, ["cluster", "partition"], how="left")
    return joined.withColumn("log_start_offset", F.coalesce("log_start_offset", "_first"))
