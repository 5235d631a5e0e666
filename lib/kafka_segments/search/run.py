"""Search: questions over the tables, then one short read of the log for each."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.broker_rules.versions import Version
from kafka_segments.search.decide import locate
from kafka_segments.search.decide.answers import answer_named, compare_answers
from kafka_segments.search.decide.stable_offsets import first_unstable_offsets
from kafka_segments.search.decide.unread import say_unread
from kafka_segments.search.tasks import find_first_records
from kafka_segments.tables.catalog import LOGS, OFFSET_INDEX, SEGMENTS, TIME_INDEX, Table
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import LOG_KEYS
from kafka_segments.wire.moments import MAX_TIMESTAMP


@dataclass(frozen=True)
class LogChoice:
    """Which logs of a warehouse are meant; what is empty or None leaves nothing out."""

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    cluster: str | None = None
    broker_id: int | None = None

    def condition(self) -> Column:
        """Give the condition on the key of a log."""
        chosen = self.partition_condition()
        if self.cluster is not None:
            chosen &= F.col("cluster") == self.cluster
        if self.broker_id is not None:
            chosen &= F.col("broker_id") == self.broker_id
        return chosen

    def partition_condition(self) -> Column:
        """Give the condition on topic and partition alone."""
        chosen = F.lit(True)
        if self.topics:
            chosen &= F.col("topic").isin(*self.topics)
        if self.partitions:
            chosen &= F.col("partition").isin(*self.partitions)
        return chosen


class LogTables:
    """The tables of the logs that are meant, and searches over them."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: str,
        choice: LogChoice,
        caches: ExitStack,
        *,
        has_checkpointed_end: bool = False,
        is_read_committed: bool = False,
    ) -> None:
        """Name the tables.

        ``caches``: when it closes, what is kept in memory is given up; until then every search
        can be read, and no longer.

        ``has_checkpointed_end``: consumers read up to the checkpointed high watermark, where there
        is one, instead of the log's end. ``is_read_committed``: up to the last stable offset,
        where the oldest open transaction begins; the tables tell it only of a log that is
        replicated to its end.
        """
        self._spark = spark
        self._tables = Warehouse(spark, warehouse)
        self._choice = choice
        self.caches = caches
        logs = self.segments_as_built().transform(locate.describe_logs(self._read(LOGS)))
        visible_end = _visible_end(has_checkpointed_end)
        if is_read_committed:
            unstable = self.segments_as_built().transform(first_unstable_offsets())
            logs = logs.join(unstable, list(LOG_KEYS), how="left")
            visible_end = _stable_end()
        self.logs = self.keep(
            logs.withColumn("last_visible_offset", visible_end).drop("first_unstable_offset")
        )

    def keep(self, rows: DataFrame) -> DataFrame:
        """Keep rows that several steps need."""
        kept = rows.persist()
        self.caches.callback(kept.unpersist)
        return kept

    def _read(self, table: Table) -> DataFrame:
        return self._tables.read(table).where(self._choice.condition())

    def segments_as_built(self) -> DataFrame:
        """Read the rows of ``segments`` that are still there."""
        return self._read(SEGMENTS).where(F.col("vanished_at").isNull())

    def segments(self) -> DataFrame:
        """Read the same with the log start offset of their log."""
        starts = self.logs.select(*LOG_KEYS, "log_start_offset")
        return self.segments_as_built().join(starts, list(LOG_KEYS), how="inner")

    def ask_all(self, moments: Sequence[tuple[str, int]]) -> DataFrame:
        """Give a question for every log and moment, given as (text, target_ms)."""
        asked = self._spark.createDataFrame(
            list(dict.fromkeys(moments)), "question string, target_ms long"
        )
        return self.logs.crossJoin(asked.hint("broadcast"))

    def ask_from_file(self, path: str) -> DataFrame:
        """Give the questions of a CSV file with the header topic,partition,timestamp_ms."""
        asked = (
            self._spark.read.option("mode", "FAILFAST")
            .csv(path, header=True, schema="topic string, partition int, target_ms long")
            .where("target_ms >= 0")
            .distinct()
            .withColumn("question", F.col("target_ms").cast("string"))
        )
        return asked.join(self.logs, ["topic", "partition"], how="inner")

    def find(self, chosen: DataFrame) -> DataFrame:
        """Find the first record of each search in the segment chosen for it."""
        chosen = self.keep(chosen)
        located = chosen.transform(locate.locate(self._read(TIME_INDEX), self._read(OFFSET_INDEX)))
        return find_first_records(located)


def _visible_end(has_checkpointed_end: bool) -> Column:
    end = F.col("log_end_offset")
    if not has_checkpointed_end:
        return end
    return F.least(end, F.coalesce(F.col("high_watermark"), end))


def _stable_end() -> Column:
    start, end = F.col("log_start_offset"), F.col("log_end_offset")
    first_unstable = F.col("first_unstable_offset")
    unstable = F.when(first_unstable.isNotNull(), F.greatest(first_unstable, start))
    return F.least(end, unstable)


def search(tables: LogTables, questions: DataFrame, *, kafka_version: Version) -> DataFrame:
    """Answer questions about timestamps; gives the columns ``decide.search.ANSWER``.

    Needs: rows of ``LogTables.logs`` with question (string, unique in a log) and target_ms, not
        negative.
    """
    asked = questions.drop("leader_epochs", "high_watermark").withColumns(
        {"least_timestamp_ms": F.col("target_ms"), "least_offset": F.col("log_start_offset")}
    )
    chosen = asked.transform(locate.choose_by_timestamp(tables.segments()))
    answers = tables.find(chosen).transform(compare_answers(kafka_version=kafka_version))
    return answers.transform(say_unread(tables.segments_as_built()))


def search_names(tables: LogTables, questions: DataFrame, *, kafka_version: Version) -> DataFrame:
    """Answer questions for Kafka's names, negative in target_ms; the same columns."""
    is_max = F.col("target_ms") == MAX_TIMESTAMP
    asked = questions.where(is_max).drop("leader_epochs", "high_watermark")
    chosen = asked.transform(locate.choose_by_max_timestamp(tables.segments()))
    found = tables.find(chosen).transform(compare_answers(kafka_version=kafka_version))
    named = questions.where(~is_max).transform(answer_named(kafka_version=kafka_version))
    return found.unionByName(named).transform(say_unread(tables.segments_as_built()))


def search_moments(
    tables: LogTables, moments: Sequence[tuple[str, int]], *, kafka_version: Version
) -> DataFrame:
    """Answer moments, given as (text, ms or the negative number of a name), for every log."""
    times = [(text, target) for text, target in moments if target >= 0]
    names = [(text, target) for text, target in moments if target < 0]
    answers = [
        find(tables, tables.ask_all(asked), kafka_version=kafka_version)
        for find, asked in ((search, times), (search_names, names))
        if asked
    ]
    return answers[0] if len(answers) == 1 else answers[0].unionByName(answers[1])
