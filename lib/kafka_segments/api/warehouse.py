"""All that a warehouse answers in a notebook: tables, decisions, and questions about times."""

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import DataFrame

from kafka_segments.api.arguments import (
    FilePath,
    Moment,
    choice,
    clock_or,
    names,
    one_of,
    optional_ms,
    refuse_below_one,
    text,
)
from kafka_segments.api.decisions import OpenDecisions
from kafka_segments.api.directories import DiskAccount, account_of, disk_options
from kafka_segments.api.internals import OpenInternals
from kafka_segments.api.not_known import keeps_told
from kafka_segments.console.options import clock
from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.versions import DEFAULT, OLDEST_SEARCHED, parse_version
from kafka_segments.kafka.text.moments import parse_moment
from kafka_segments.verbs.find.disk.growth_of_tables import read_growth
from kafka_segments.verbs.find.disk.run import run_disk
from kafka_segments.verbs.find.lag.run import LagOptions, run_lag
from kafka_segments.verbs.find.lag.run_explain import ExplainOptions, run_explain
from kafka_segments.verbs.find.lag.run_share import run_share_lag
from kafka_segments.verbs.find.latency.run import run_latency
from kafka_segments.verbs.find.search.log_tables import LogChoice
from kafka_segments.verbs.find.search.run import SearchOptions, run_search


class OpenWarehouse(OpenDecisions):
    """The tables of a warehouse and what the verbs say about it, as DataFrames.

    Only ``save=True`` writes. Spark makes the rows when they are asked for. Those of ``search``,
    ``lag`` and ``latency`` can be read until ``close``: call it, or use the object in ``with``.
    """

    @property
    def internals(self) -> OpenInternals:
        """What the cluster wrote about itself: the tables of `internals`, and its verbs."""
        return OpenInternals(self, self._kept)

    @keeps_told
    def search(
        self,
        *times: Moment,
        topics: str | Sequence[str] = (),
        partitions: int | Sequence[int] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
        now: Moment | None = None,
        kafka_version: str = DEFAULT,
        high_watermark: Literal["end", "checkpoint"] = "end",
        isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        max_decompressed_message_bytes: int | None = None,
    ) -> DataFrame:
        """Find the offset for each time in each log: Kafka's answer and the true one.

        Args:
            times: moments, or Kafka's names: EARLIEST, LATEST, MAX_TIMESTAMP and others.
            topics: only these; by default all.
            partitions: only these; by default all.
            cluster: only this cluster's logs.
            broker_id: only this broker's logs.
            now: what ``now`` and ``-2h`` among the times count from; by default the clock.
            kafka_version: whose ListOffsets answers, 0.11 and later.
            high_watermark: up to where consumers read: the log's end, or the last checkpoint.
            isolation_level: whose answer.
            max_decompressed_message_bytes: the topics' setting, by which 4.2.2 and 4.4 refuse
                lookups; by default as the metadata says, else no limit.

        Returns:
            a row for each log and time; ``problem`` says where an answer is not known.

        Raises:
            UsageError: no times, no moment, or a release that is not known.
        """
        if not times:
            raise UsageError("search needs a time, such as 'LATEST' or a datetime")
        one_of("high_watermark", high_watermark, "end", "checkpoint")
        one_of("isolation_level", isolation_level, "read_uncommitted", "read_committed")
        is_checkpointed = high_watermark == "checkpoint"
        is_committed = isolation_level == "read_committed"
        if is_committed and is_checkpointed:
            raise UsageError(
                "isolation_level read_committed takes high_watermark end alone: the tables do not"
                " tell which transactions were open at an earlier offset"
            )
        now_ms = clock_or(now)
        options = SearchOptions(
            choice=choice(topics, partitions, cluster, broker_id),
            kafka_version=parse_version(kafka_version, oldest=OLDEST_SEARCHED),
            moments=tuple((text(time), parse_moment(text(time), now_ms=now_ms)) for time in times),
            has_checkpointed_end=is_checkpointed,
            is_read_committed=is_committed,
            most_record_bytes=max_decompressed_message_bytes,
        )
        return run_search(self._warehouse, options, self._kept)

    @keeps_told
    def lag(
        self,
        *,
        at: Moment | None = None,
        groups: str | Sequence[str] = (),
        topics: str | Sequence[str] = (),
        partitions: int | Sequence[int] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
        kafka_version: str = DEFAULT,
        max_decompressed_message_bytes: int | None = None,
    ) -> DataFrame:
        """Measure how far behind consumer groups are, in offsets and in ms.

        Args:
            at: a past moment; by default now.
            groups: only these; by default all.
            topics: only these; by default all.
            partitions: only these; by default all.
            cluster: only this cluster's logs.
            broker_id: only this broker's logs.
            kafka_version: the release whose brokers look ``at`` up in the logs, 0.11 and later.
            max_decompressed_message_bytes: the topics' setting; by default as the metadata says.

        Raises:
            UsageError: the tables have no segments of ``__consumer_offsets``.
        """
        logs = choice(topics, partitions, cluster, broker_id)
        release = kafka_version, max_decompressed_message_bytes
        options = self._lag_options(at, groups, logs, release)
        return run_lag(self._warehouse, options, self._kept)

    @keeps_told
    def share_lag(
        self,
        *,
        at: Moment | None = None,
        groups: str | Sequence[str] = (),
        topics: str | Sequence[str] = (),
        partitions: int | Sequence[int] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
        kafka_version: str = DEFAULT,
        max_decompressed_message_bytes: int | None = None,
    ) -> DataFrame:
        """Measure how far behind share groups are, in offsets; the arguments are those of ``lag``.

        Raises:
            UsageError: the tables have no records of ``__share_group_state``, or no segments.
        """
        logs = choice(topics, partitions, cluster, broker_id)
        release = kafka_version, max_decompressed_message_bytes
        options = self._lag_options(at, groups, logs, release)
        return run_share_lag(self._warehouse, options, self._kept)

    @keeps_told
    def explain_lag(
        self,
        group: str,
        *,
        topics: str | Sequence[str] = (),
        partitions: int | Sequence[int] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
        offsets_retention_minutes: int | None = None,
        commits: int = 5,
    ) -> DataFrame:
        """Say where the offsets of a group are, or went, and why.

        Args:
            group: the group.
            topics: only these; by default all that the group reads.
            partitions: only these; by default all.
            cluster: only this cluster's.
            broker_id: only this broker's logs.
            offsets_retention_minutes: the brokers' setting, by which offsets expire.
            commits: how many of the last records of each partition are told.

        Raises:
            UsageError: the tables have no segments of ``__consumer_offsets``, or no such group, or
                a number is below 1.
        """
        minutes = offsets_retention_minutes
        refuse_below_one("offsets_retention_minutes", minutes)
        refuse_below_one("commits", commits)
        options = ExplainOptions(
            choice=choice(topics, partitions, cluster, broker_id),
            group=group,
            retention_ms=None if minutes is None else minutes * 60_000,
            most_commits=commits,
        )
        return run_explain(self._warehouse, options, self._kept)

    def _lag_options(
        self,
        at: Moment | None,
        groups: str | Sequence[str],
        logs: LogChoice,
        release: tuple[str, int | None],
    ) -> LagOptions:
        kafka_version, most_record_bytes = release
        now_ms = clock()
        return LagOptions(
            choice=logs,
            now_ms=now_ms,
            at_ms=optional_ms(at, now_ms),
            groups=names(groups),
            kafka_version=parse_version(kafka_version, oldest=OLDEST_SEARCHED),
            most_record_bytes=most_record_bytes,
        )

    @keeps_told
    def latency(
        self,
        *,
        topics: str | Sequence[str] = (),
        partitions: int | Sequence[int] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
    ) -> DataFrame:
        """Measure append time less create time, in ms, by topic and hour.

        Args:
            topics: only these; by default all.
            partitions: only these; by default all.
            cluster: only this cluster's logs.
            broker_id: only this broker's logs.
        """
        logs = choice(topics, partitions, cluster, broker_id)
        return run_latency(self._warehouse, logs, self._kept)

    @keeps_told
    def disk(self, *folders: FilePath, now: Moment | None = None) -> DiskAccount:
        """Account for the bytes of log directories on this machine, with what the tables add.

        Args:
            folders: log directories, or folders of several.
            now: the moment; by default the clock.

        Returns:
            what ``kafka_segments.disk`` does, with ``growth``, ``blocked`` and ``notes``.

        Raises:
            UsageError: no folder, one that is not of this machine, or the warehouse lacks a table.
            SourceError: a folder cannot be listed.
        """
        now_ms = clock_or(now)
        use = run_disk(disk_options(folders, now_ms))
        use.of_tables = read_growth(self._warehouse, use, now_ms=now_ms)
        return account_of(use)
