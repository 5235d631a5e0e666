"""The tables of the logs that a question is about, shared by all verbs that ask about times."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

from kafka_segments.console.not_known import tell_metadata_problems, tell_not_known
from kafka_segments.engine.derived.contradictions import Contradicted, contradicted
from kafka_segments.engine.derived.described_logs import describe_logs
from kafka_segments.engine.derived.first_look_only import refuse_first_looks
from kafka_segments.engine.derived.known_replicas import named_partitions
from kafka_segments.engine.derived.lost_records import (
    first_gaps,
    lost_by_files,
    lost_records,
    with_lost,
    with_lost_of,
)
from kafka_segments.engine.derived.metadata_in_tables import NoMetadataError
from kafka_segments.engine.derived.record_limits import read_record_limits
from kafka_segments.engine.derived.replicas import (
    PARTITION,
    choose_replica,
    ends_below_start,
    left_over,
    lost_logs,
    out_of_metadata,
)
from kafka_segments.engine.derived.tier_fronts import (
    in_front_as_gaps,
    in_front_as_lost,
    tier_fronts,
    with_is_tiered,
    with_start_in_tier,
)
from kafka_segments.engine.derived.tiered_at_hand import copies_at_hand, tiered_settings
from kafka_segments.engine.frames.driver_rows import (
    is_surely_empty,
    is_surely_null,
    surely_go_on,
    with_values,
)
from kafka_segments.engine.frames.engines import computed_once, persisted_if_many
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import LOGS, OFFSET_INDEX, SEGMENTS, TIME_INDEX, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.kafka.broker_rules.record_lookups import (
    MOST_RECORD_BYTES,
    RecordLookup,
    record_lookup,
)
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.verbs.find.search.decide.locate import (
    choose_by_max_timestamp,
    choose_by_offset,
    choose_by_timestamp,
    locate,
)
from kafka_segments.verbs.find.search.decide.logs import (
    first_unstable_offsets,
    with_visible_end,
)
from kafka_segments.verbs.find.search.decide.unread import (
    ANSWERS,
    say_cut_short,
    say_doubts,
    say_gaps,
    say_in_tier,
    say_unread,
)
from kafka_segments.verbs.find.search.tasks import find_first_records

_COLUMNS = {
    SEGMENTS.name: (
        *SEGMENT_KEYS,
        *("path", "valid_bytes", "next_offset", "record_count", "batch_count"),
        *("first_batch_timestamp_ms", "max_timestamp_ms", "offset_of_max_timestamp"),
        *("largest_timestamp_ms", "magics", "leader_epochs", "truncated_bytes", "is_active"),
        *("damage", "vanished_at"),
    ),
    LOGS.name: (
        *LOG_KEYS,
        *("log_start_offset", "high_watermark", "cleaner_offset", "leader_epochs", "topic_id"),
    ),
}
"""What is asked of these tables in any case; of others all columns are."""
READING = ("size_bytes",)
"""What is asked of segments that are read whole."""
_ASKED = StructType().add("question", StringType()).add("target_ms", LongType())


@dataclass(frozen=True)
class LogChoice:
    """Which logs of a warehouse are asked about. An empty tuple or None stands for all."""

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    cluster: str | None = None
    broker_id: int | None = None

    def allowed(self) -> dict[str, tuple[str | int, ...]]:
        """Return the values that the columns of a log's key may have, where not any."""
        allowed: dict[str, tuple[str | int, ...]] = {
            "topic": self.topics,
            "partition": self.partitions,
            "cluster": () if self.cluster is None else (self.cluster,),
            "broker_id": () if self.broker_id is None else (self.broker_id,),
        }
        return {name: values for name, values in allowed.items() if values}

    def partition_condition(self) -> Column:
        """Return the condition on topic and partition alone."""
        chosen = F.lit(True)
        if self.topics:
            chosen &= F.col("topic").isin(*self.topics)
        if self.partitions:
            chosen &= F.col("partition").isin(*self.partitions)
        return chosen


class LogTables:
    """The tables of the chosen logs, and searches in them."""

    def __init__(
        self,
        warehouse: Warehouse,
        choice: LogChoice,
        caches: ExitStack,
        *,
        also: Sequence[str] = (),
        has_checkpointed_end: bool = False,
        is_read_committed: bool = False,
    ) -> None:
        """Describe the chosen logs; ``logs`` has a row for each.

        Args:
            warehouse: has the tables.
            choice: the logs to ask about.
            caches: what is kept in memory is released when it closes. Results of searches can be
                read until then, and no longer.
            also: columns that are asked of table ``segments`` besides what a search asks.
            has_checkpointed_end: consumers read up to the checkpointed high watermark where there
                is one; otherwise up to the log's end.
            is_read_committed: consumers read up to the last stable offset, where the oldest open
                transaction begins. The tables know it only of a log whose replicas all reach its
                end.

        Raises:
            UsageError: ``is_read_committed``, and segments are known by a first look alone.
        """
        tell_metadata_problems(warehouse.root, cluster=choice.cluster)
        self._tables = warehouse
        self._choice = choice
        self._is_committed = is_read_committed
        self._found: dict[str, DataFrame] = {}
        self._also = (*also, *(("transaction_steps",) if is_read_committed else ()))
        self.caches = caches
        segments = self.segments_as_built()
        unstable = None
        if is_read_committed:
            refuse_first_looks(segments, "which transactions are open")
            unstable = segments.transform(first_unstable_offsets())
        described = segments.transform(describe_logs(self._read(LOGS)))
        self.fronts = self._fronts(described)
        if self.fronts is not None:
            described = described.transform(with_start_in_tier(self.fronts))
        self._described = persisted_if_many(
            described.drop("noted_start").transform(
                with_visible_end(unstable, has_checkpointed_end=has_checkpointed_end)
            ),
            caches,
        )
        self.logs = self._described.drop("topic_id", "last_epoch")

    def _fronts(self, described: DataFrame) -> DataFrame | None:
        """Return ``tier_fronts`` of the chosen logs; None: none of them is tiered."""
        settings = tiered_settings(self._tables)
        is_none_told = settings is None or is_surely_empty(settings)
        if is_none_told and is_surely_null(self._read(LOGS), "log_start_offset"):
            return None
        named = named_partitions(self._tables)
        logs = described.transform(with_is_tiered(settings, named))
        fronts = self.keep(logs.transform(tier_fronts(copies_at_hand(self._tables))))
        return None if is_surely_empty(fronts) else fronts

    def keep(self, rows: DataFrame) -> DataFrame:
        """Keep rows that several steps read, until ``caches`` closes."""
        return computed_once(rows, self.caches)

    def _read(self, table: Table) -> DataFrame:
        """Return the rows of a table that are of the chosen logs; it is read once."""
        if table.name not in self._found:
            also = self._also if table is SEGMENTS else ()
            rows = self._tables.read(table, (*_COLUMNS.get(table.name, ()), *also))
            self._found[table.name] = with_values(rows, self._choice.allowed())
        return self._found[table.name]

    def take_back_unread(self, answers: DataFrame) -> DataFrame:
        """Take back the answers that records missing from the tables could change.

        Where it is known that none is damaged, segments may be missing, of logs' ends too.
        """
        answers = answers.transform(say_cut_short(self._described))
        if not is_surely_null(self._read(LOGS), "log_start_offset"):
            doubts = self._described.withColumn("doubt", ends_below_start())
            answers = answers.transform(say_doubts(doubts))
        if self.fronts is not None:
            answers = answers.transform(say_in_tier(self.fronts))
        if self.gaps is not None:
            answers = answers.transform(say_gaps(self.gaps, is_read_committed=self._is_committed))
        if is_surely_null(self._read(SEGMENTS), "damage"):
            return answers
        return answers.transform(say_unread(self.segments_as_built()))

    @cached_property
    def gaps(self) -> DataFrame | None:
        """``first_gaps`` of the chosen logs; None: none of them has one."""
        segments, ends = self._read(SEGMENTS), {"begin": "base_offset", "end": "next_offset"}
        if surely_go_on(segments, LOG_KEYS, **ends, gone="vanished_at"):
            return None
        return self.keep(self.segments_as_built().transform(first_gaps(self._read(LOGS))))

    def gaps_from(self, from_ms: int) -> DataFrame | None:
        """Return ``gaps``, and what in tiered storage alone may be of a time or later.

        ``from_ms``: the time, in ms since 1970.
        """
        if self.fronts is None:
            return self.gaps
        in_front = self.fronts.transform(in_front_as_gaps(from_ms=from_ms))
        if self.gaps is None:
            return in_front
        both = self.gaps.unionByName(in_front).groupBy(*LOG_KEYS)
        return both.agg(F.min("gap").alias("gap"))

    def take_back_left_over(self, answers: DataFrame, taken: Sequence[str] = ANSWERS) -> DataFrame:
        """Take back the answers of logs that are left over from a topic that was deleted.

        So are those of logs that the metadata does not name. ``taken``: the columns of an answer.
        """
        named = named_partitions(self._tables)
        if named is None:
            return answers
        return answers.transform(
            say_doubts(self._described.transform(out_of_metadata(named)), taken)
        )

    def segments_as_built(self) -> DataFrame:
        """Return the segments whose file had not vanished at the last build.

        Gives: of table ``segments`` the columns that are asked of it.
        """
        return self._read(SEGMENTS).where(F.col("vanished_at").isNull())

    def _segments(self) -> DataFrame:
        """Return the same with column ``log_start_offset`` of their log."""
        starts = self.logs.select(*LOG_KEYS, "log_start_offset")
        return self.segments_as_built().join(starts, list(LOG_KEYS), how="inner")

    def lost(self) -> DataFrame:
        """Return the keys of the chosen logs of which no segment was ever found, see ``lost_logs``.

        Gives: the key of a log, lost (why it is not known).
        """
        return self._read(LOGS).transform(lost_logs(self._read(SEGMENTS)))

    def ask_all(self, logs: DataFrame, moments: Sequence[tuple[str, int]]) -> DataFrame:
        """Return a question for each of the logs and every moment, a pair (text, target_ms)."""
        asked = local_rows(self._tables.spark, dict.fromkeys(moments), _ASKED)
        return logs.crossJoin(asked.hint("broadcast"))

    def ask_from_file(self, logs: DataFrame, path: str) -> DataFrame:
        """Return the questions of a CSV file with the header topic,partition,timestamp_ms."""
        asked = (
            self._tables.spark.read.option("mode", "FAILFAST")
            .csv(path, header=True, schema="topic string, partition int, target_ms long")
            .where("target_ms >= 0")
            .distinct()
            .withColumn("question", F.col("target_ms").cast("string"))
        )
        return asked.join(logs, ["topic", "partition"], how="inner")

    def replicas(self) -> DataFrame:
        """Return the replica that answers for each partition: rows of ``logs``, with doubt."""
        return self._chosen().drop("lost")

    def coordinators(self, files: DataFrame | None = None) -> DataFrame:
        """Return the replica that answers for each partition of coordinators' topics.

        Needs: ``files``: rows of ``internal_files``, where these tell what was read; None: they do
            not matter.
        Gives: as ``replicas``, and lost (``lost_records``, what ``contradicted`` says of whole
            logs, and what was not read of ``files``; null: the log has lost nothing).
        """
        replicas = self._chosen()
        others = [] if self.contradicted is None else [self.contradicted.logs]
        if files is not None:
            others.append(self.segments_as_built().transform(lost_by_files(files)))
        return replicas.transform(with_lost_of(*others)) if others else replicas

    @cached_property
    def contradicted(self) -> Contradicted | None:
        """What copies contradict of coordinators' topics that are chosen by their names."""
        return contradicted(self._tables, self._choice.topics, self.caches)

    def consumed(self) -> DataFrame:
        """Return the replica that answers for each partition that a group consumes.

        Gives: as ``coordinators``; what lies in tiered storage alone is lost, too: it is not read.
        """
        replicas = self.coordinators()
        if self.fronts is None:
            return replicas
        return replicas.transform(with_lost_of(in_front_as_lost(self.fronts)))

    def other_copies(self, replicas: DataFrame) -> DataFrame:
        """Return the keys of the other logs of the partitions that some replicas are of.

        A log that is left over from a topic that was deleted is none of them.
        """
        others = self._described.join(replicas.select(*PARTITION), list(PARTITION), "left_semi")
        others = others.join(replicas.select(*LOG_KEYS), list(LOG_KEYS), "left_anti")
        named = named_partitions(self._tables)
        if named is not None:
            gone = others.transform(left_over(named)).select(*LOG_KEYS)
            others = others.join(gone, list(LOG_KEYS), "left_anti")
        return others.select(*LOG_KEYS)

    def _chosen(self) -> DataFrame:
        """Return ``replicas`` with lost (``lost_records``)."""
        lost = self.segments_as_built().transform(lost_records(self._read(LOGS)))
        logs = self._described.transform(with_lost(lost))
        chosen = logs.transform(choose_replica(named_partitions(self._tables)))
        return chosen.withColumn("doubt", F.coalesce("doubt", ends_below_start()))

    def lookup(self, version: Version, most_record_bytes: int | None) -> RecordLookup:
        """Return how brokers of a release read batches.

        ``most_record_bytes``: all topics' limit; None: what the metadata in the tables says.
        """
        lookup = record_lookup(version, most_record_bytes=most_record_bytes)
        if not lookup.streams or most_record_bytes is not None:
            return lookup
        try:
            return lookup._replace(limits=read_record_limits(self._tables.root))
        except NoMetadataError as error:
            tell_not_known((f"{MOST_RECORD_BYTES} of topics is not known: {error}",))
            return lookup

    def find_by_timestamp(self, asked: DataFrame, lookup: RecordLookup | None = None) -> DataFrame:
        """Return the first records that ``choose_by_timestamp`` and ``locate`` lead to."""
        return self._find(asked.transform(choose_by_timestamp(self._segments())), lookup)

    def find_by_max_timestamp(
        self, asked: DataFrame, lookup: RecordLookup | None = None
    ) -> DataFrame:
        """Return the first records that ``choose_by_max_timestamp`` and ``locate`` lead to."""
        return self._find(asked.transform(choose_by_max_timestamp(self._segments())), lookup)

    def find_by_offset(self, asked: DataFrame) -> DataFrame:
        """Return the first records that ``choose_by_offset`` and ``locate`` lead to."""
        return self._find(asked.transform(choose_by_offset(self._segments())))

    def _find(self, chosen: DataFrame, lookup: RecordLookup | None = None) -> DataFrame:
        chosen = self.keep(chosen)
        located = chosen.transform(locate(self._read(TIME_INDEX), self._read(OFFSET_INDEX)))
        return find_first_records(located, lookup)
