"""Open transactions: compare what the logs have open with the transaction coordinator's log."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.cluster_names import lines_of_clusters
from kafka_segments.engine.derived.contradictions import contradicted
from kafka_segments.engine.derived.file_sums import with_file_facts
from kafka_segments.engine.derived.first_look_only import refuse_first_looks
from kafka_segments.engine.derived.internal_current import KEYED_TOPICS
from kafka_segments.engine.derived.internal_files import known_files
from kafka_segments.engine.derived.known_replicas import (
    known_replicas,
    named_partitions,
)
from kafka_segments.engine.derived.lost_records import lost_by_records, with_lost_of
from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.derived.replicas_at_hand import without_log
from kafka_segments.engine.frames.driver_rows import with_values
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    METADATA_CONFIGS,
    METADATA_TOPICS,
    SEGMENTS,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.errors import UsageError
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.find.internals.transactions.decide.state_logs import (
    hidden_lines,
    judge_state_logs,
    sum_up_replicas,
    unread_lines,
)
from kafka_segments.verbs.find.internals.transactions.decide.transactions import (
    ask_for_first,
    coordinators_say,
    decide_transactions,
    garbled_ids,
    with_cleanup_policy,
    with_first_times,
    with_log_doubts,
    with_producers,
    with_waiting_bytes,
)
from kafka_segments.verbs.find.search.decide.logs import open_transactions
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables
from kafka_segments.verbs.find.search.tasks import find_first_records

_MOST_NAMED = 8


@dataclass(frozen=True)
class TransactionsOptions:
    """Of which logs open transactions are asked for; ``now_ms`` is the run's clock."""

    choice: LogChoice
    now_ms: int


def run_transactions(
    warehouse: Warehouse, options: TransactionsOptions, caches: ExitStack
) -> DataFrame:
    """Return the transactions that are open: the columns of ``decide_transactions``.

    One replica of each partition is looked at. What of the coordinator's log was not read is told,
    and which partitions that the metadata names have no log in the tables.

    Raises:
        UsageError: the tables have no records of the transaction coordinator.
        FirstLookOnlyError: a segment is known by a first look alone.
    """
    records = warehouse.read(INTERNAL_RECORDS)
    if records.where(F.col("topic") == TRANSACTIONS_TOPIC).isEmpty():
        raise UsageError(
            f"{warehouse.root} has no records of {TRANSACTIONS_TOPIC}: run `kafka-segments"
            " internals --source` on the log directories of the brokers that have it"
        )
    also = ("producers", "transaction_steps", *READING)
    tables = LogTables(warehouse, options.choice, caches, also=also)
    doubt = F.col("doubt").alias("log_doubt")
    found = contradicted(warehouse, options.choice.topics or KEYED_TOPICS, caches)
    all_replicas = tables.coordinators()
    if found is not None:  # a marker may be another record in another copy
        all_replicas = all_replicas.transform(with_lost_of(found.logs))
    replicas = tables.keep(all_replicas.select(*LOG_KEYS, "log_end_offset", doubt, "lost"))
    segments = tables.segments_as_built().join(replicas, list(LOG_KEYS), how="inner")
    refuse_first_looks(segments, "which transactions are open")
    asked = segments.transform(open_transactions()).transform(ask_for_first(segments))
    opened = (
        find_first_records(asked)
        .transform(with_first_times)
        .transform(with_producers(segments))
        .transform(with_waiting_bytes(segments))
        .transform(_with_cleanup_policy(warehouse))
    )
    opened = opened.transform(with_log_doubts(replicas))
    of_states = LogChoice(topics=(TRANSACTIONS_TOPIC,), cluster=options.choice.cluster)
    state_logs = LogTables(warehouse, of_states, caches, also=READING)
    keys = None if state_logs.contradicted is None else state_logs.contradicted.keys
    says = records.transform(coordinators_say(known_replicas(warehouse), keys))
    judged = _judged(warehouse, state_logs, records, keys, caches)
    tell_not_known(unread_lines(row.asDict() for row in judged.collect()))
    tell_not_known(_without_log(warehouse, options.choice, replicas))
    tell_not_known(hidden_lines(row.asDict(recursive=True) for row in _in_doubt(replicas)))
    return opened.transform(decide_transactions(says, judged, now_ms=options.now_ms))


def _in_doubt(replicas: DataFrame) -> list[Row]:
    """Return cluster, topic, partition and why of the logs that do not tell all that is open."""
    why = F.coalesce("log_doubt", "lost.why").alias("why")
    found = replicas.where(F.col("topic") != TRANSACTIONS_TOPIC).select(*PARTITION, why)
    return found.where("why IS NOT NULL").collect()


def _without_log(tables: Warehouse, choice: LogChoice, replicas: DataFrame) -> list[str]:
    """Return a line of each cluster for the partitions of which no log was read."""
    named = named_partitions(tables)
    if named is None or choice.broker_id is not None:  # a broker has not all partitions
        return []
    asked = with_values(named, choice.allowed()).where(F.col("topic") != TRANSACTIONS_TOPIC)
    of_topics = replicas.withColumn("topic_id", F.lit(None).cast("string"))  # of no other topic
    lacking = without_log(asked, of_topics)
    lines = (
        (
            cluster,
            f"not known: {first_of(names, _MOST_NAMED)}: no log was read: transactions that are"
            " open there are missing here; add the disk of a broker that has it as --source of"
            " `kafka-segments build --internals`",
        )
        for cluster, names in lacking.items()
    )
    clusters = {row["cluster"] for row in named.select("cluster").distinct().collect()}
    return lines_of_clusters(lines, clusters if choice.cluster is None else {choice.cluster})


def _judged(
    warehouse: Warehouse,
    state_logs: LogTables,
    records: DataFrame,
    keys: DataFrame | None,
    caches: ExitStack,
) -> DataFrame:
    """Say of each partition of the coordinator's log whether it was read: ``judge_state_logs``."""
    files = known_files(warehouse)
    of_state = records.where(F.col("topic") == TRANSACTIONS_TOPIC)
    # A batch that was being written may say more than all that was read: no end of a file is open.
    closed = of_state.transform(with_file_facts(files)).withColumn("is_active", F.lit(False))
    replicas = state_logs.coordinators(files)
    replicas = replicas.transform(with_lost_of(lost_by_records(closed)))
    columns = (*SEGMENT_KEYS, "last_modified_ms", "vanished_at")
    segments = warehouse.read(SEGMENTS, columns).where("vanished_at IS NULL")
    garbled = of_state.transform(garbled_ids(known_replicas(warehouse), keys))
    read = replicas.transform(sum_up_replicas(segments, garbled))
    named = named_partitions(warehouse)
    if named is None:
        named = replicas.select(*PARTITION).limit(0)
    return computed_once(
        named.where(F.col("topic") == TRANSACTIONS_TOPIC).transform(judge_state_logs(read)), caches
    )


def _with_cleanup_policy(tables: Warehouse) -> Transform:
    if any(tables.version(table) is None for table in (METADATA_TOPICS, METADATA_CONFIGS)):
        return lambda opened: opened.withColumn("cleanup_policy", F.lit(None).cast("string"))
    held = (
        tables.read(table).where("until_offset IS NULL")
        for table in (METADATA_TOPICS, METADATA_CONFIGS)
    )
    return with_cleanup_policy(*held)
