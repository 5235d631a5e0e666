"""Lag of share groups: hold the share coordinator's states against the logs that they are of."""

from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.file_sums import with_file_facts
from kafka_segments.engine.derived.group_offsets import offsets_read, unread_partitions
from kafka_segments.engine.derived.internal_files import known_files
from kafka_segments.engine.derived.known_replicas import known_replicas, without_left_over
from kafka_segments.engine.derived.lost_records import (
    all_lost,
    as_read,
    lost_by_records,
    with_lost_of,
)
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, LOGS, METADATA_TOPICS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.engine.tables.missing import require_names, require_values
from kafka_segments.errors import UsageError
from kafka_segments.kafka.messages.records import SHARES_TOPIC
from kafka_segments.verbs.find.lag.decide.share import (
    decide_share_lag,
    decide_share_states,
    with_log_ends,
    with_topic_names,
)
from kafka_segments.verbs.find.lag.run import LagOptions, log_ends
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables
from kafka_segments.verbs.find.search.named_logs import refuse_absent


def run_share_lag(warehouse: Warehouse, options: LagOptions, caches: ExitStack) -> DataFrame:
    """Measure the lag of share groups; return the columns of ``decide_share_lag``.

    With ``at_ms`` the states written by that moment are held against each log up to its first
    record after it.

    Raises:
        UsageError: the tables have no records of ``__share_group_state``, or none of what is asked
            for.
    """
    choice = options.choice
    files = known_files(warehouse)
    records = warehouse.read(INTERNAL_RECORDS).transform(with_file_facts(files))
    of_shares = records.where(F.col("topic") == SHARES_TOPIC)
    if of_shares.isEmpty():
        raise UsageError(
            f"{warehouse.root} has no records of {SHARES_TOPIC}: run `kafka-segments internals"
            " --source` on the log directories of the brokers that have it"
        )
    if choice.cluster is not None:
        what = f"records of {SHARES_TOPIC} of cluster"
        require_values(warehouse.root, what, (choice.cluster,), of_shares.select("cluster"))
        records = records.where(F.col("cluster") == choice.cluster)
    records = records.transform(without_left_over(warehouse))
    logs = LogTables(warehouse, choice, caches)
    replicas = logs.replicas()
    ends = (
        log_ends(logs, replicas, options)
        .join(replicas.select(*LOG_KEYS, "log_start_offset", "doubt"), list(LOG_KEYS))
        .join(_ids(warehouse), list(LOG_KEYS), how="left")
    )
    own = LogChoice(topics=(SHARES_TOPIC,), cluster=choice.cluster)
    of_states = LogTables(warehouse, own, caches, also=READING)
    state_logs = computed_once(of_states.coordinators(files), caches)
    lost = state_logs.transform(all_lost)
    unread, others = lost.where("lost IS NOT NULL"), None
    if not unread.isEmpty():
        copies = of_states.other_copies(unread)
        others = of_shares.join(F.broadcast(copies), list(LOG_KEYS), "left_semi")
    found = of_states.contradicted
    decide = decide_share_states(
        at_ms=options.written_until_ms,
        known=known_replicas(warehouse),
        lost=lost,
        others=others,
        keys=None if found is None else found.keys,
    )
    named = records.transform(decide).transform(with_topic_names(_names(warehouse)))
    states = computed_once(named, caches)
    read = _logs_read(records, state_logs)
    _check_names(warehouse, options, read, states)
    if not options.groups:
        tell_not_known(unread_partitions(warehouse, read, SHARES_TOPIC, cluster=choice.cluster))
    if options.groups:
        states = states.where(F.col("group_id").isin(*options.groups))
    return (
        states.where(choice.partition_condition())
        .transform(with_log_ends(ends))
        .transform(decide_share_lag)
    )


def _check_names(
    warehouse: Warehouse, options: LagOptions, logs: DataFrame, states: DataFrame
) -> None:
    """Say of which groups the states may not have been read; ``logs``: of ``_logs_read``.

    Raises:
        UsageError: there is no such group, or neither segments nor states of such a log.
    """
    named = states.select("group_id", "topic").distinct().collect()
    refuse_absent(warehouse.root, options.choice, also={row["topic"] for row in named})
    known = {row["group_id"] for row in named}
    absent = [group for group in options.groups if group not in known]
    if not absent:
        return
    if all(read.is_whole for read in offsets_read(warehouse, logs, SHARES_TOPIC)):
        require_names(warehouse.root, "share group", absent, known)
    why = f"not known: not all of {SHARES_TOPIC} was read"
    tell_not_known(f"group {group}: {why}" for group in absent)


def _logs_read(records: DataFrame, replicas: DataFrame) -> DataFrame:
    """Return the logs of ``__share_group_state`` whose records were read, built or not."""
    of_topic = records.where(F.col("topic") == SHARES_TOPIC)
    read = of_topic.select("cluster", "partition").distinct()
    told = replicas.transform(with_lost_of(lost_by_records(of_topic))).transform(as_read)
    return read.join(told, ["cluster", "partition"], how="left")


def _ids(tables: Warehouse) -> DataFrame:
    return tables.read(LOGS).select(*LOG_KEYS, F.col("topic_id").alias("log_topic_id"))


def _names(tables: Warehouse) -> DataFrame:
    """Return cluster, topic_id and topic of all that the tables name."""
    names = tables.read(LOGS).select("cluster", "topic_id", "topic")
    if tables.version(METADATA_TOPICS) is not None:
        known = tables.read(METADATA_TOPICS).select("cluster", "topic_id", "topic")
        names = names.unionByName(known)
    return names
