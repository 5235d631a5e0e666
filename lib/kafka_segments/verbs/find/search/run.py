"""Search: choose a segment for each question from the tables, then read a little of its log."""

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import PARTITION
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.text.moments import MAX_TIMESTAMP
from kafka_segments.verbs.find.search.decide.answers import (
    answer_named,
    compare_answers,
    not_known_answers,
)
from kafka_segments.verbs.find.search.decide.unread import say_doubts
from kafka_segments.verbs.find.search.log_tables import LogChoice, LogTables


@dataclass(frozen=True)
class SearchOptions:
    """What a search is asked for. URIs are absolute.

    Attributes:
        choice: the logs that are asked.
        kafka_version: the release whose ListOffsets answers.
        moments: pairs of the text that was given and ms since 1970, or the negative number of a
            name such as EARLIEST; asked of every log.
        questions: URI of a CSV file of questions, in place of ``moments``.
        has_checkpointed_end: see ``LogTables``.
        is_read_committed: see ``LogTables``.
        most_record_bytes: the topics' max.decompressed.message.bytes; None: by the metadata.
        is_of_partitions: one replica answers for each partition; otherwise each log for itself.
    """

    choice: LogChoice
    kafka_version: Version
    moments: tuple[tuple[str, int], ...] = ()
    questions: str | None = None
    has_checkpointed_end: bool = False
    is_read_committed: bool = False
    is_of_partitions: bool = False
    most_record_bytes: int | None = None


def run_search(warehouse: Warehouse, options: SearchOptions, caches: ExitStack) -> DataFrame:
    """Answer the questions; return a row for each log and question, columns ``answers.ANSWER``.

    1. The segment that holds the answer is chosen from table ``segments``, the byte where the
       read begins from the tables of index entries.
    2. The executors read the log from there to the first record that fits.
    3. Kafka's answer and the true one are put side by side.
    """
    tables = LogTables(
        warehouse,
        options.choice,
        caches,
        has_checkpointed_end=options.has_checkpointed_end,
        is_read_committed=options.is_read_committed,
    )
    lost = tables.lost()
    if not options.is_of_partitions:
        answers = tables.take_back_left_over(_answers(tables, tables.logs, options))
        return answers.unionByName(_of_lost_logs(tables, lost, options))
    replicas = tables.keep(tables.replicas().withColumn("doubt", _doubt_of_line()))
    doubts = replicas.where(F.col("doubt").isNotNull())
    answers = _answers(tables, replicas.drop("doubt"), options).transform(say_doubts(doubts))
    of_no_replica = lost.join(replicas.select(*PARTITION), list(PARTITION), how="left_anti")
    return answers.unionByName(_of_lost_logs(tables, of_no_replica, options))


def _of_lost_logs(tables: LogTables, lost: DataFrame, options: SearchOptions) -> DataFrame:
    """Return answers that say of each of these logs why nothing is known of it."""
    if options.questions is not None:
        asked = tables.ask_from_file(lost, options.questions)
    else:
        asked = tables.ask_all(lost, options.moments)
    return asked.transform(not_known_answers(F.col("lost")))


def _doubt_of_line() -> Column:
    """Return why a line topic,partition,offset cannot be told: it does not name the cluster."""
    in_clusters = F.count("*").over(Window.partitionBy("topic", "partition"))
    several = F.lit("several clusters have it: choose one with --cluster")
    return F.coalesce("doubt", F.when(in_clusters > 1, several))


def _answers(tables: LogTables, logs: DataFrame, options: SearchOptions) -> DataFrame:
    version, most = options.kafka_version, options.most_record_bytes
    if options.questions is not None:
        asked = tables.ask_from_file(logs, options.questions)
        return search_times(tables, asked, kafka_version=version, most_record_bytes=most)
    times = [moment for moment in options.moments if moment[1] >= 0]
    names = [moment for moment in options.moments if moment[1] < 0]
    answers = [
        find(
            tables,
            tables.ask_all(logs, asked),
            kafka_version=version,
            most_record_bytes=most,
        )
        for find, asked in ((search_times, times), (search_names, names))
        if asked
    ]
    return answers[0] if len(answers) == 1 else answers[0].unionByName(answers[1])


def search_times(
    tables: LogTables,
    questions: DataFrame,
    *,
    kafka_version: Version,
    most_record_bytes: int | None = None,
) -> DataFrame:
    """Answer questions about timestamps.

    Needs: rows of ``LogTables.logs`` with question (string, unique in a log) and target_ms (long,
        not negative).
    Gives: ``answers.ANSWER``.
    """
    asked = questions.drop("leader_epochs", "high_watermark").withColumns(
        {"least_timestamp_ms": F.col("target_ms"), "least_offset": F.col("log_start_offset")}
    )
    compare = compare_answers(kafka_version=kafka_version)
    lookup = tables.lookup(kafka_version, most_record_bytes)
    found = tables.find_by_timestamp(asked, lookup).transform(compare)
    return tables.take_back_unread(found)


def search_names(
    tables: LogTables,
    questions: DataFrame,
    *,
    kafka_version: Version,
    most_record_bytes: int | None = None,
) -> DataFrame:
    """Answer questions about names that Kafka knows, such as LATEST; target_ms is negative.

    Needs: as ``search_times``, with the negative numbers of ``wire.moments`` as target_ms.
    Gives: ``answers.ANSWER``.
    """
    is_max = F.col("target_ms") == MAX_TIMESTAMP
    asked = questions.where(is_max).drop("leader_epochs", "high_watermark")
    compare = compare_answers(kafka_version=kafka_version)
    lookup = tables.lookup(kafka_version, most_record_bytes)
    found = tables.find_by_max_timestamp(asked, lookup).transform(compare)
    named = questions.where(~is_max).transform(answer_named(kafka_version=kafka_version))
    return tables.take_back_unread(found.unionByName(named))
