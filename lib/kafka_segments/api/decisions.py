"""What retention and rolling decide about a warehouse, as DataFrames."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from kafka_segments.api.arguments import (
    FilePath,
    GivenSettings,
    Moment,
    Scalar,
    clock_or,
    grid,
    names,
    optional_ms,
    pairs,
    path,
    paths,
)
from kafka_segments.api.not_known import keeps_told
from kafka_segments.api.tables import OpenTables
from kafka_segments.console.config_options import log_of
from kafka_segments.console.options import clock
from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.versions import DEFAULT, parse_version
from kafka_segments.settings import CutConfig, RetentionConfig
from kafka_segments.verbs.judge.retention.command_options import retention_options
from kafka_segments.verbs.judge.retention.run import RetentionOptions, run_explain, run_retention
from kafka_segments.verbs.judge.retention.run import run_what_if as run_retention_what_if
from kafka_segments.verbs.judge.roll.decide.rules import RollRules
from kafka_segments.verbs.judge.roll.run import RollOptions, run_roll
from kafka_segments.verbs.judge.roll.run import run_what_if as run_roll_what_if


class OpenDecisions(OpenTables):
    """The decisions of brokers, now and by other settings."""

    @keeps_told
    def retention(
        self,
        *,
        now: Moment | None = None,
        settings: Mapping[str, Scalar] | None = None,
        conf: FilePath | None = None,
        topic_configs: FilePath | Sequence[FilePath] = (),
        server_properties: FilePath | None = None,
        remote_offsets: FilePath | None = None,
        kafka_version: str = DEFAULT,
        topics: str | Sequence[str] = (),
        save: bool = False,
    ) -> DataFrame:
        """Decide for every segment what retention does with it now, and why.

        Args:
            now: the moment; by default the clock.
            settings: Kafka's keys, with ``_`` or ``.``, and their values, over ``conf``.
            conf: a TOML file of settings.
            topic_configs: files that `kafka-configs --describe` printed.
            server_properties: the brokers' file, for the topics' defaults.
            remote_offsets: a file that `kafka-get-offsets --time latest-tiered` printed.
            kafka_version: the release whose rules hold, 0.8 and later.
            topics: of these alone; by default of all.
            save: append the rows to table ``retention_decisions``, which has those of all topics.

        Returns:
            the columns of table ``retention_decisions``.

        Raises:
            UsageError: a file cannot be read, a setting or the release is not known, or the
                warehouse has no segments, or none of one of ``topics``; ``topics`` with ``save``.
        """
        if topics and save:
            raise UsageError("save=True keeps the decisions for all topics: leave topics out")
        given = GivenSettings(settings, conf, topic_configs, server_properties)
        options = self._retention_options(now, given, remote_offsets, kafka_version, topics)
        return run_retention(self._warehouse, options, dry_run=not save)

    @keeps_told
    def retention_what_if(
        self,
        what_if: Mapping[str, Sequence[Scalar]],
        *,
        now: Moment | None = None,
        settings: Mapping[str, Scalar] | None = None,
        conf: FilePath | None = None,
        topic_configs: FilePath | Sequence[FilePath] = (),
        server_properties: FilePath | None = None,
        remote_offsets: FilePath | None = None,
        kafka_version: str = DEFAULT,
        topics: str | Sequence[str] = (),
    ) -> DataFrame:
        """Return what other settings keep: a row for each topic and combination of ``what_if``.

        ``what_if`` has the values to try, by key of retention; several keys make a grid. The
        others are those of ``retention``.

        Raises:
            UsageError: as ``retention``; or ``what_if`` is empty, a key is none of retention, a
                value is out of range, or there are too many combinations.
        """
        given = GivenSettings(settings, conf, topic_configs, server_properties)
        options = self._retention_options(now, given, remote_offsets, kafka_version, topics)
        return run_retention_what_if(self._warehouse, options, grid(what_if, RetentionConfig))

    @keeps_told
    def explain(
        self,
        log: str,
        *,
        now: Moment | None = None,
        settings: Mapping[str, Scalar] | None = None,
        conf: FilePath | None = None,
        topic_configs: FilePath | Sequence[FilePath] = (),
        server_properties: FilePath | None = None,
        remote_offsets: FilePath | None = None,
        kafka_version: str = DEFAULT,
    ) -> DataFrame:
        """Return for each segment of one log why it goes or stays, oldest first.

        ``log`` is topic and partition, such as ``orders-0``. The others are those of
        ``retention``.

        Raises:
            UsageError: as ``retention``; or ``log`` is no topic and partition.
        """
        folder = log_of(log)
        given = GivenSettings(settings, conf, topic_configs, server_properties)
        options = self._retention_options(now, given, remote_offsets, kafka_version)
        return run_explain(
            self._warehouse, options, topic=folder.topic, partition=folder.partition
        ).orderBy("cluster", "broker_id", "log_dir", "base_offset")

    @keeps_told
    def roll(
        self,
        *,
        now: Moment | None = None,
        settings: Mapping[str, Scalar] | None = None,
        conf: FilePath | None = None,
        topic_configs: FilePath | Sequence[FilePath] = (),
        server_properties: FilePath | None = None,
        kafka_version: str = DEFAULT,
        rule: str | None = None,
        append_bytes: int = 16_384,
        append_records: int = 1,
        append_timestamp: Moment | None = None,
        opened: Moment | None = None,
        save: bool = False,
    ) -> DataFrame:
        """Decide for every active segment whether the next append rolls it, and when it rolls.

        Args:
            now: the moment; by default the clock.
            settings: as for ``retention``, and so are the files.
            conf: a TOML file of settings.
            topic_configs: files that `kafka-configs --describe` printed.
            server_properties: the brokers' file.
            kafka_version: the release whose rules hold, 0.8 and later.
            rule: another time rule: first-batch, first-message, largest-timestamp, create-time.
            append_bytes: size of the next append.
            append_records: its records.
            append_timestamp: its greatest timestamp; by default ``now``; -1: it has none.
            opened: when the broker started or rolled; by default the segment's mtime.
            save: append the rows to table ``roll_decisions``.

        Returns:
            the columns of table ``roll_decisions``.

        Raises:
            UsageError: as ``retention``; or no such rule.
        """
        given = GivenSettings(settings, conf, topic_configs, server_properties)
        now_ms = clock_or(now)
        stamp = append_timestamp
        options = RollOptions(
            configs=given.configs(warehouse=self.uri, now_ms=now_ms),
            rules=RollRules.of(parse_version(kafka_version), rule),
            now_ms=now_ms,
            append_bytes=append_bytes,
            append_records=append_records,
            append_timestamp_ms=-1 if stamp == -1 else optional_ms(stamp, now_ms),
            opened_ms=optional_ms(opened, now_ms),
        )
        return run_roll(self._warehouse, options, dry_run=not save)

    @keeps_told
    def roll_what_if(
        self,
        what_if: Mapping[str, Sequence[Scalar]],
        *,
        settings: Mapping[str, Scalar] | None = None,
        conf: FilePath | None = None,
        topic_configs: FilePath | Sequence[FilePath] = (),
        server_properties: FilePath | None = None,
    ) -> DataFrame:
        """Cut all logs into segments anew: a row for each log and combination of ``what_if``.

        ``what_if`` has values of segment_bytes, segment_ms or index_interval_bytes; several keys
        make a grid. The others are those of ``roll``.

        Raises:
            UsageError: as ``roll``; or ``what_if`` is empty or has an impossible key or value.
        """
        given = GivenSettings(settings, conf, topic_configs, server_properties)
        now_ms = clock()
        options = RollOptions(
            configs=given.configs(warehouse=self.uri, now_ms=now_ms),
            rules=RollRules(),
            now_ms=now_ms,
        )
        return run_roll_what_if(self._warehouse, options, grid(what_if, CutConfig))

    def _retention_options(
        self,
        now: Moment | None,
        given: GivenSettings,
        remote_offsets: FilePath | None,
        kafka_version: str,
        topics: str | Sequence[str] = (),
    ) -> RetentionOptions:
        return retention_options(
            warehouse=self.uri,
            conf=path(given.conf),
            pairs=pairs(given.settings),
            now_ms=clock_or(now),
            topic_configs=paths(given.topic_configs),
            server_properties=path(given.server_properties),
            remote_offsets=path(remote_offsets),
            kafka_version=kafka_version,
            topics=names(topics),
        )
