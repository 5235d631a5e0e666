"""What was not read of tiered storage: records of segments, and the logs of its partitions."""

from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.contradictions import contradicted
from kafka_segments.engine.derived.file_sums import with_file_facts
from kafka_segments.engine.derived.group_offsets import unread_partitions
from kafka_segments.engine.derived.internal_files import known_files
from kafka_segments.engine.derived.known_replicas import named_partitions
from kafka_segments.engine.derived.lost_records import (
    as_read,
    lost_by_records,
    lost_by_unknown,
    with_lost,
    with_lost_of,
)
from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.find.internals.tier.decide.not_copied import tiered_partitions
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables

_MOST_NAMED = 8
_NO_LOG = (
    "not known: no log of it was read, so neither which of its copies a leader still serves nor"
    " what they lack; add the disk of a broker that has it as --source of `kafka-segments build`"
)


def unread_records(
    tables: Warehouse, records: DataFrame, cluster: str, caches: ExitStack
) -> list[str]:
    """Return a line for each partition of ``__remote_log_metadata`` that was not read as a whole.

    A record of a type that is not known may be about any segment, and so may one that another copy
    contradicts. ``records``: of the topic.
    """
    files = known_files(tables)
    records = records.transform(with_file_facts(files))
    lost = lost_by_records(records), records.transform(lost_by_unknown)
    read = records.select("cluster", "partition").distinct().withColumn("_is_read", F.lit(True))
    if tables.version(catalog.SEGMENTS) is None or tables.version(catalog.LOGS) is None:
        logs = records.select(*LOG_KEYS).distinct().transform(with_lost(None))
        found = contradicted(tables, (REMOTE_LOG_TOPIC,), caches)
        if found is not None:
            logs = logs.transform(with_lost_of(found.logs))
        unknown = {"log_start_offset": F.lit(0), "doubt": F.lit(None).cast("string")}
        told = logs.transform(with_lost_of(*lost)).withColumns(unknown).transform(as_read)
    else:
        choice = LogChoice(topics=(REMOTE_LOG_TOPIC,), cluster=cluster or None)
        of_topic = LogTables(tables, choice, caches, also=READING)
        replicas = of_topic.coordinators(files).transform(with_lost_of(*lost))
        is_empty = F.col("log_end_offset") == F.col("log_start_offset")  # it has no record to read
        told = (
            replicas.withColumn("lost", F.col("lost.why"))
            .join(read, ["cluster", "partition"], how="full")
            .where(F.coalesce("_is_read", is_empty))
        )
    return unread_partitions(
        tables,
        told,
        REMOTE_LOG_TOPIC,
        cluster=cluster or None,
        kept="remote segments",
    )


def local_doubts(
    tables: Warehouse,
    claimed: DataFrame,
    tiered: DataFrame | None,
    choice: LogChoice,
    caches: ExitStack,
) -> DataFrame:
    """Say of which tiered partitions the logs in the tables do not tell what a leader has.

    Needs: ``claimed``: rows of ``fold_states``; ``tiered``: see ``not_copied``; ``choice``: the
        logs of one cluster.
    Gives: cluster, topic, partition, doubt.
    """
    replicas = LogTables(tables, choice, caches).replicas()
    there = replicas.select(*PARTITION, "doubt", F.lit(True).alias("_is_there"))
    named = named_partitions(tables)
    if named is not None:
        named = named.where(choice.partition_condition() & (F.col("cluster") == choice.cluster))
    no_log = F.when(F.col("_is_there").isNull(), F.lit(_NO_LOG))
    return (
        claimed.transform(tiered_partitions(named, tiered))
        .join(there, list(PARTITION), how="left")
        .select(*PARTITION, F.coalesce("doubt", no_log).alias("doubt"))
        .where(F.col("doubt").isNotNull())
    )


def lines_of_doubts(doubts: DataFrame) -> list[str]:
    """Return a line for each reason, with the partitions that have it.

    Needs: rows of ``local_doubts``.
    """
    log = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    logs = F.sort_array(F.collect_list(log)).alias("logs")
    rows = doubts.groupBy("doubt").agg(logs).orderBy("doubt").collect()
    return [f"{first_of(names, _MOST_NAMED)}: {doubt}" for doubt, names in rows]
