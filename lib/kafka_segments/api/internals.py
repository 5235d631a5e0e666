"""What a cluster wrote about itself, as DataFrames: tables, states, changes, open transactions."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame

from kafka_segments.api.arguments import Moment, choice, clock_or, names, optional_ms
from kafka_segments.api.not_known import keeps_told
from kafka_segments.api.tables import OpenTables
from kafka_segments.console.options import clock
from kafka_segments.engine.derived.views import CURRENT, PROBLEMS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.kafka.broker_rules.group_records import OLDEST, group_record_rules
from kafka_segments.kafka.broker_rules.versions import DEFAULT, parse_version
from kafka_segments.verbs.find.internals.groups.run import GroupsOptions, run_groups
from kafka_segments.verbs.find.internals.metadata.as_of import AsOf
from kafka_segments.verbs.find.internals.run_changed import (
    ChangesOptions,
    StateOptions,
    run_changed,
    run_state,
)
from kafka_segments.verbs.find.internals.tier.command import CHECKS, GRACE_MS
from kafka_segments.verbs.find.internals.tier.run import TierOptions, offsets_not_copied, run_tier
from kafka_segments.verbs.find.internals.transactions.run import (
    TransactionsOptions,
    run_transactions,
)


class OpenInternals:
    """The tables that `kafka-segments internals` made, and what it says of them."""

    def __init__(self, tables: OpenTables, kept: ExitStack) -> None:
        self._tables = tables
        self._kept = kept
        self._told = tables._told

    def __repr__(self) -> str:
        return f"<kafka_segments: internals of {self._tables.uri}>"

    @property
    def _warehouse(self) -> Warehouse:
        """The tables, each looked for anew."""
        return self._tables._warehouse

    @property
    def records(self) -> DataFrame:
        """A row for each record of an internal topic, and for what cannot be read."""
        return self._tables.table("internal_records")

    @property
    def files(self) -> DataFrame:
        """A row for each file of an internal topic: what was read of it, and how far."""
        return self._tables.table("internal_files")

    @property
    def current(self) -> DataFrame:
        """The last record of each key of the topics that coordinators keep their state in."""
        return self._tables.table(CURRENT)

    @property
    def problems(self) -> DataFrame:
        """A row for each partition of these topics of which it is not known what is current."""
        return self._tables.table(PROBLEMS)

    @property
    def topics(self) -> DataFrame:
        """A row for each topic, from which offset of the metadata log until which."""
        return self._tables.table("metadata_topics")

    @property
    def partitions(self) -> DataFrame:
        """A row for each state of a partition: leader, replicas, ISR and ELR."""
        return self._tables.table("metadata_partitions")

    @property
    def configs(self) -> DataFrame:
        """A row for each value of a config of a topic, broker or other resource."""
        return self._tables.table("metadata_configs")

    @property
    def brokers(self) -> DataFrame:
        """A row for each state of a broker's registration."""
        return self._tables.table("metadata_brokers")

    @property
    def features(self) -> DataFrame:
        """A row for each level of a feature."""
        return self._tables.table("metadata_features")

    @property
    def entries(self) -> DataFrame:
        """A row for each value of an ACL, quota, SCRAM credential, controller or token."""
        return self._tables.table("metadata_entries")

    @property
    def remote_segments(self) -> DataFrame:
        """A row for each segment in tiered storage, as `tier` saved it last."""
        return self._tables.table("remote_segments")

    @keeps_told
    def state(
        self, *, at: Moment | None = None, offset: int | None = None, cluster: str | None = None
    ) -> DataFrame:
        """Return the metadata as of a moment, or once the record at an offset was applied.

        Args:
            at: a moment; by default now.
            offset: an offset of the metadata log, instead of a moment.
            cluster: only this cluster's.

        Returns:
            a row for each feature, broker, config, topic and partition; ``state`` is JSON.

        Raises:
            UsageError: both are given, or the history of a cluster begins later.
        """
        if at is not None and offset is not None:
            raise UsageError("state takes at or offset, not both")
        as_of = AsOf(offset=offset) if offset is not None else AsOf(ms=clock_or(at))
        return run_state(self._warehouse, StateOptions(as_of, cluster))

    @keeps_told
    def changed(self, *, since: Moment | None = None, cluster: str | None = None) -> DataFrame:
        """Return which configs, leaders and replicas changed, when, and at which offset.

        Args:
            since: only from this moment; by default all.
            cluster: only this cluster's.

        Raises:
            UsageError: the tables have no history of metadata.
        """
        options = ChangesOptions(optional_ms(since, clock()), cluster)
        return run_changed(self._warehouse, options)

    @keeps_told
    def transactions(
        self,
        *,
        now: Moment | None = None,
        topics: str | Sequence[str] = (),
        partitions: int | Sequence[int] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
    ) -> DataFrame:
        """Return which transactions are open in the logs, and whether anything will end them.

        Args:
            now: the moment that timeouts count up to; by default the clock.
            topics: only these; by default all.
            partitions: only these; by default all.
            cluster: only this cluster's logs.
            broker_id: only this broker's logs.

        Raises:
            UsageError: the tables have no records of the transaction coordinator, or no segments,
                or some are known by a first look alone.
        """
        logs = choice(topics, partitions, cluster, broker_id)
        options = TransactionsOptions(logs, clock_or(now))
        return run_transactions(self._warehouse, options, self._kept)

    @keeps_told
    def groups(
        self,
        *,
        kafka_version: str = DEFAULT,
        new_coordinator: bool = False,
        groups: str | Sequence[str] = (),
        cluster: str | None = None,
        broker_id: int | None = None,
    ) -> DataFrame:
        """Return whether ``__consumer_offsets`` loads on a release, and what room its groups take.

        Args:
            kafka_version: the release whose group coordinator is to read it, 2.8 and later.
            new_coordinator: let 3.7 to 3.9 run the coordinator of KIP-848.
            groups: only these, beside the rows of partitions; by default all.
            cluster: only this cluster's logs.
            broker_id: only this broker's logs.

        Returns:
            a row for each partition on a broker (``group_id`` is null), and for each group in it.

        Raises:
            UsageError: the release is not known, or the tables have no records of the topic.
        """
        version = parse_version(kafka_version, oldest=OLDEST)
        rules = group_record_rules(version, is_new_coordinator=new_coordinator)
        options = GroupsOptions(rules, cluster, broker_id, names(groups))
        return run_groups(self._warehouse, options, self._kept)

    @keeps_told
    def tier(
        self,
        *,
        sources: str | Sequence[str] = (),
        check: str = CHECKS[1],
        grace_ms: int = GRACE_MS,
        now: Moment | None = None,
        topics: str | Sequence[str] = (),
        cluster: str | None = None,
        follow_links: bool = False,
        save: bool = False,
    ) -> DataFrame:
        """Compare what the cluster announced of remote segments with the objects of the tier.

        Args:
            sources: folders of the tier; without them, no objects are looked at.
            check: how far objects are read: names, manifests or headers.
            grace_ms: a copy or deletion that began later may still be under way.
            now: the moment from which that counts back; by default the clock.
            topics: only these; by default all.
            cluster: only this cluster's; needed where there are several.
            follow_links: symbolic links are followed to what lies below the sources.
            save: write table remote_segments.

        Returns:
            a row for each remote segment; ``findings`` is empty where nothing is wrong.

        Raises:
            UsageError: the tables have no records of remote segments, or of several clusters and
                none is chosen; ``check`` is none of these.
        """
        options = self._tier_options(now, sources, check, topics, cluster, follow_links)
        options = replace(options, grace_ms=grace_ms, is_dry=not save)
        return run_tier(self._warehouse, options, self._kept).segments

    @keeps_told
    def not_copied(
        self,
        *,
        sources: str | Sequence[str] = (),
        check: str = CHECKS[1],
        topics: str | Sequence[str] = (),
        cluster: str | None = None,
        follow_links: bool = False,
    ) -> DataFrame:
        """Return the offsets of local logs that no copy has which a broker would serve.

        Args:
            sources: folders of the tier; without them, copies count as they were announced.
            check: how far objects are read: names, manifests or headers.
            topics: only these; by default all.
            cluster: only this cluster's; needed where there are several.
            follow_links: symbolic links are followed to what lies below the sources.

        Returns:
            a row for each range; ``copies`` is how many copies of the partition count.

        Raises:
            UsageError: as ``tier``, or the tables have no local logs.
        """
        options = self._tier_options(None, sources, check, topics, cluster, follow_links)
        return offsets_not_copied(run_tier(self._warehouse, options, self._kept))

    def _tier_options(
        self,
        now: Moment | None,
        sources: str | Sequence[str],
        check: str,
        topics: str | Sequence[str],
        cluster: str | None,
        follow_links: bool,
    ) -> TierOptions:
        if check not in CHECKS:
            raise UsageError(f"check {check!r}: one of {', '.join(CHECKS)} expected")
        return TierOptions(
            sources=tuple(map(absolute_uri, names(sources))),
            check=check,
            now_ms=clock_or(now),
            grace_ms=GRACE_MS,
            topics=names(topics),
            cluster=cluster,
            follow_links=follow_links,
            is_dry=True,
        )
