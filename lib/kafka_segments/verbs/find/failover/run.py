"""Failover and restore: where a group goes on in another cluster, and where logs are cut."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.rows.table_reads import read_segments
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.kafka.broker_rules.versions import DEFAULT_VERSION, Version
from kafka_segments.verbs.find.failover.decide import (
    PARTITION,
    RESTORED,
    aim_failover,
    ask_other_cluster,
    ask_restore,
    in_doubt,
    plan_failover,
    plan_restore,
    segments_around,
    sum_up_records,
)
from kafka_segments.verbs.find.lag.decide.commits import COMMIT_KEY
from kafka_segments.verbs.find.lag.run import committed_offsets, tell_unread_groups
from kafka_segments.verbs.find.search.decide.unread import say_doubts
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables
from kafka_segments.verbs.find.search.run import search_times

_COLUMNS = ("path", "offset", "timestamp_ms", "is_control", "error")


@dataclass(frozen=True)
class FailoverOptions:
    """What a failover is planned for. URIs are absolute.

    Attributes:
        choice: the logs that are asked of the cluster that the group leaves.
        to_warehouse: URI of the tables of the cluster that the group goes to.
        to_choice: the logs of that cluster.
        group: the consumer group.
        max_latency_ms: the greatest latency between the clusters.
        now_ms: the run's clock.
        kafka_version: the release whose brokers the other cluster has.
        most_record_bytes: its topics' max.decompressed.message.bytes; None: by the metadata.
    """

    choice: LogChoice
    to_warehouse: str
    to_choice: LogChoice
    group: str
    max_latency_ms: int
    now_ms: int
    kafka_version: Version = DEFAULT_VERSION
    most_record_bytes: int | None = None


@dataclass(frozen=True)
class RestoreOptions:
    """What a restore is planned for: the chosen logs of a warehouse, at ``at_ms``.

    ``kafka_version`` and ``most_record_bytes``: as in ``FailoverOptions``.
    """

    choice: LogChoice
    at_ms: int
    kafka_version: Version = DEFAULT_VERSION
    most_record_bytes: int | None = None


def run_failover(warehouse: Warehouse, options: FailoverOptions, caches: ExitStack) -> DataFrame:
    """Plan where a group of one cluster goes on in another; return ``plan_failover``'s columns.

    1. The timestamp to search for comes from the messages around the group's committed offset.
    2. The tables of the other cluster are searched for it.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``.
    """
    here = LogTables(warehouse, options.choice, caches, also=READING)
    other = Warehouse(warehouse.spark, options.to_warehouse)
    there = LogTables(other, options.to_choice, caches)
    cluster, max_latency_ms = options.choice.cluster, options.max_latency_ms
    all_commits = computed_once(
        committed_offsets(
            warehouse,
            caches,
            cluster=cluster,
            groups=(options.group,),
        ),
        caches,
    )
    known = {row["group_id"] for row in all_commits.select("group_id").distinct().collect()}
    tell_unread_groups(warehouse, (options.group,), known, caches)
    commits = (
        all_commits.where(F.col("group_id") == options.group)
        .where("committed_offset IS NOT NULL OR commits_doubt IS NOT NULL OR problem IS NOT NULL")
        .where(options.choice.partition_condition())
        .select(*COMMIT_KEY, "committed_offset", "commits_doubt", "problem")
        .join(here.consumed(), ["cluster", *PARTITION], how="left")
        .transform(in_doubt)
    )
    aim = aim_failover(max_latency_ms=max_latency_ms)
    aimed = here.keep(_read_around(here, commits).transform(aim))
    replicas = there.keep(there.replicas())
    questions = aimed.transform(ask_other_cluster(max_latency_ms=max_latency_ms)).join(
        replicas.drop("doubt"), list(PARTITION), how="inner"
    )
    answers = search_times(
        there,
        questions,
        kafka_version=options.kafka_version,
        most_record_bytes=options.most_record_bytes,
    )
    return aimed.transform(plan_failover(answers.transform(say_doubts(replicas))))


def run_restore(warehouse: Warehouse, options: RestoreOptions, caches: ExitStack) -> DataFrame:
    """Plan where each log is cut for a restore to a moment; return ``plan_restore``'s columns.

    Of a log that is left over from a topic that was deleted it is not known.
    """
    tables = LogTables(warehouse, options.choice, caches)
    lookup = tables.lookup(options.kafka_version, options.most_record_bytes)
    asked = tables.logs.transform(ask_restore(at_ms=options.at_ms))
    gaps = tables.gaps_from(options.at_ms + 1)
    found = tables.find_by_timestamp(asked, lookup)
    planned = found.transform(plan_restore(tables.segments_as_built(), tables.logs, gaps))
    return tables.take_back_left_over(planned, RESTORED)


def _read_around(here: LogTables, commits: DataFrame) -> DataFrame:
    """Read the timestamps of the last message consumed and of the oldest unread one."""
    around = here.segments_as_built().transform(segments_around(commits))
    records = around.transform(read_segments(rows="records", columns=_COLUMNS, check="full")).join(
        around.select(*LOG_KEYS, "path", "is_active", "damage", "committed_offset"),
        "path",
        how="inner",
    )
    by_log = records.transform(sum_up_records)
    is_in_front = F.col("committed_offset") < F.col("lost.until")
    why = F.concat(F.lit("not known: unread messages may be in what is missing: "), "lost.why")
    lost = F.when(is_in_front, why)
    return commits.join(by_log, list(LOG_KEYS), how="left").select(
        *PARTITION,
        "committed_offset",
        "last_timestamp_ms",
        "least_unread_timestamp_ms",
        F.coalesce("doubt", "unread_problem", lost).alias("unread_problem"),
    )
