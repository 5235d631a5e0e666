"""Lag: hold the commits of ``__consumer_offsets`` against the logs that they are of."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.group_offsets import (
    groups_not_known,
    may_hold,
    offsets_read,
    unread_partitions,
)
from kafka_segments.engine.derived.lost_records import as_read, with_unread_until
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.tables.catalog import METADATA_TOPICS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import MOST
from kafka_segments.kafka.broker_rules.versions import DEFAULT_VERSION, Version
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.lag.decide.commits import (
    ask_for_end,
    ask_for_unread,
    decide_commits,
    decide_lag,
    ends_found,
    first_unread,
    is_unread,
    made_later,
    of_groups,
    unread_may_be_lost,
    with_contradicted_commits,
    with_keys_of,
)
from kafka_segments.verbs.find.lag.offsets_topic import no_offsets
from kafka_segments.verbs.find.lag.tasks import read_commits
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables
from kafka_segments.verbs.find.search.named_logs import refuse_absent
from kafka_segments.verbs.find.search.run import search_times


@dataclass(frozen=True)
class LagOptions:
    """What the lag is measured of. URIs are absolute.

    Attributes:
        choice: the logs whose lag is measured.
        now_ms: the run's clock.
        at_ms: a past moment to measure the lag at; None: now.
        groups: only these consumer groups; empty: all.
        kafka_version: the release whose brokers look ``at_ms`` up in the logs.
        most_record_bytes: the topics' max.decompressed.message.bytes; None: by the metadata.
    """

    choice: LogChoice
    now_ms: int
    at_ms: int | None = None
    groups: tuple[str, ...] = ()
    kafka_version: Version = DEFAULT_VERSION
    most_record_bytes: int | None = None

    @property
    def written_until_ms(self) -> int:
        """Up to which timestamp records count: all, where no past moment is asked about.

        Clocks of brokers may be ahead.
        """
        return MOST if self.at_ms is None else self.at_ms


def run_lag(warehouse: Warehouse, options: LagOptions, caches: ExitStack) -> DataFrame:
    """Measure the lag of consumer groups; return the columns of ``decide_lag``.

    With ``at_ms`` the commits made by that moment are held against each log up to its first record
    after it.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``.
    """
    choice = options.choice
    moment = options.now_ms if options.at_ms is None else options.at_ms
    tables = LogTables(warehouse, choice, caches)
    logs = tables.consumed()
    if options.at_ms is not None:
        logs = logs.transform(_made_by(warehouse, options.at_ms))
    all_commits = committed_offsets(
        warehouse,
        caches,
        cluster=choice.cluster,
        at_ms=options.written_until_ms,
        groups=options.groups,
    )
    if options.groups or choice.topics or choice.partitions:
        all_commits = computed_once(all_commits, caches)
        _check_names(warehouse, options, all_commits, caches)
    may_be_theirs = may_hold(warehouse, options.groups, "offsets_partition")
    commits = (
        all_commits.where(choice.partition_condition() | is_unread())
        .transform(of_groups(options.groups, may_be_theirs))
        .join(logs, ["cluster", "topic", "partition"], how="left")
    )
    found = tables.find_by_offset(commits.transform(ask_for_unread))
    return (
        commits.join(first_unread(found), [*LOG_KEYS, "committed_offset"], how="left")
        .join(log_ends(tables, logs, options), list(LOG_KEYS), how="left")
        .withColumn("problem", F.coalesce("problem", "unread_problem", "end_problem"))
        .withColumn("problem", F.coalesce("problem", unread_may_be_lost()))
        .transform(decide_lag(at_ms=moment))
    )


def _check_names(
    warehouse: Warehouse, options: LagOptions, commits: DataFrame, caches: ExitStack
) -> None:
    """Say of which groups the commits were not read.

    Raises:
        UsageError: there is no such group, or neither segments nor commits of such a log.
    """
    read = commits.select("group_id", "topic").distinct().collect()
    refuse_absent(warehouse.root, options.choice, also={row["topic"] for row in read})
    known = {row["group_id"] for row in read}
    tell_unread_groups(warehouse, options.groups, known, caches)


def tell_unread_groups(
    warehouse: Warehouse,
    groups: Sequence[str],
    known: Iterable[str],
    caches: ExitStack,
) -> None:
    """Say of which groups the commits were not read; ``known``: the groups of those that were.

    Raises:
        UsageError: there is no such group.
    """
    there = set(known)
    if there.issuperset(groups):
        return
    choice = LogChoice(topics=(OFFSETS_TOPIC,))
    logs = LogTables(warehouse, choice, caches, also=READING).coordinators()
    read = offsets_read(warehouse, logs.transform(as_read))
    tell_not_known(groups_not_known(warehouse.root, groups, there, read))


def _made_by(tables: Warehouse, at_ms: int) -> Transform:
    if tables.version(METADATA_TOPICS) is None:
        return lambda logs: logs
    return made_later(tables.read(METADATA_TOPICS), at_ms=at_ms)


def committed_offsets(
    warehouse: Warehouse,
    caches: ExitStack,
    *,
    cluster: str | None,
    at_ms: int = MOST,
    groups: Sequence[str] = (),
) -> DataFrame:
    """Read the offsets that counted at ``at_ms``; return the columns of ``decide_commits``.

    ``at_ms`` MOST: those that count now, whatever their timestamps are.
    Says which partitions were not read, ``groups``: of those of these groups alone.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``.
    """
    choice = LogChoice(topics=(OFFSETS_TOPIC,), cluster=cluster)
    tables = LogTables(warehouse, choice, caches, also=READING)
    replicas = computed_once(tables.coordinators(), caches)
    logs = replicas.select(*LOG_KEYS, F.col("doubt").alias("commits_doubt"), "lost")
    segments = tables.segments_as_built().join(logs, list(LOG_KEYS), how="inner")
    if segments.isEmpty():
        raise no_offsets(warehouse.root)
    of_logs = segments.transform(with_unread_until).select(
        *("path", "cluster", "commits_doubt", "lost", "unread_until")
    )
    commits = segments.transform(read_commits).join(of_logs, "path", how="inner")
    unread = logs.where("commits_doubt IS NOT NULL OR lost IS NOT NULL")
    if not unread.isEmpty():
        others = tables.segments_as_built().join(tables.other_copies(unread), list(LOG_KEYS))
        own = others.select("path", "cluster")
        read = others.transform(read_commits).join(own, "path", how="inner")
        commits = commits.transform(with_keys_of(read, unread))
    if tables.contradicted is not None:
        commits = commits.transform(with_contradicted_commits(tables.contradicted.keys, logs))
    tell_not_known(
        unread_partitions(
            warehouse,
            replicas.transform(as_read),
            cluster=cluster,
            groups=groups,
            seen=lambda: commits,
        )
    )
    return commits.transform(decide_commits(at_ms=at_ms))


def log_ends(tables: LogTables, logs: DataFrame, options: LagOptions) -> DataFrame:
    """Return the end of each log: now, or at a moment its first record with a later timestamp."""
    if options.at_ms is None:
        nothing = F.lit(None).cast("string").alias("end_problem")
        return logs.select(*LOG_KEYS, F.col("log_end_offset").alias("end_offset"), nothing)
    asked = logs.transform(ask_for_end(at_ms=options.at_ms))
    answers = search_times(
        tables,
        asked,
        kafka_version=options.kafka_version,
        most_record_bytes=options.most_record_bytes,
    )
    return answers.transform(ends_found)
