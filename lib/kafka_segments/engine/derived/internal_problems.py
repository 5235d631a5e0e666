"""Of which partitions of coordinators' topics it is not known what is current, and why."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.contradictions import Contradicted, contradicted, unsettled
from kafka_segments.engine.derived.file_sums import with_file_facts
from kafka_segments.engine.derived.internal_current import KEYED_TOPICS
from kafka_segments.engine.derived.internal_files import known_files
from kafka_segments.engine.derived.known_replicas import known_replicas, without_left_over
from kafka_segments.engine.derived.lost_records import (
    PLACE,
    lost_by_files,
    lost_by_records,
    lost_records,
    with_lost,
    with_lost_of,
)
from kafka_segments.engine.derived.replicas import PARTITION, answering_logs, cut_short
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, LOGS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.long_arithmetic import MOST, plus
from kafka_segments.kafka.broker_rules.gaps import COMPACTED_BY_KAFKA

_OF_SEGMENTS = (
    *SEGMENT_KEYS,
    *("path", "size_bytes", "valid_bytes", "next_offset", "record_count", "is_active", "damage"),
)
_DAMAGE = "STRUCT<kind: STRING, position: BIGINT, message: STRING>"
_NO_LOG = (
    "no log of it was read; add the disk of a broker that has it as --source of"
    " `kafka-segments build --internals`"
)


class _Read(NamedTuple):
    """What the tables have of some topics: rows of tables, and where each log begins and ends.

    Attributes:
        records: rows of ``internal_records`` with what is known of their files.
        files: rows of ``internal_files``.
        segments: rows of ``segments``, of a log that was not built by its files.
        logs: rows of ``logs``.
        ends: the key of a log, _first (its first base offset), log_end_offset.
    """

    records: DataFrame
    files: DataFrame
    segments: DataFrame
    logs: DataFrame
    ends: DataFrame


class Problems(NamedTuple):
    """What is not known of ``KEYED_TOPICS``.

    Attributes:
        logs: rows of ``internal_problems`` by its rules, but for the keys.
        keys: rows of ``contradicted_keys``; None: there are none.
        unsettled: rows of ``internal_problems`` for these keys; None: there are none.
    """

    logs: DataFrame
    keys: DataFrame | None
    unsettled: DataFrame | None


def internal_problems(tables: Warehouse) -> DataFrame:
    """Return the partitions of ``KEYED_TOPICS`` of which it is not known what is current.

    1. The log that answers for a partition may be in doubt (``choose_replica``), or lack its end.
    2. It may have lost records (``lost_records``), or not have been read as it was built, or
       another copy may contradict it (``contradicted``). Where that is about some keys alone,
       these have no later record.
    3. Compacted topics begin at offset 0: what is in front of a later start is missing.
    4. Of a partition that the metadata names there may be no log.

    Gives: cluster, broker_id, log_dir (null: case 4), topic, partition, until_offset (the records
        from here on are known to be current, if they are the last ones of their key; null: none
        is), problem (why the others are not).
    """
    problems = problems_of(tables)
    if problems.unsettled is None:
        return problems.logs
    place = F.struct(F.coalesce("until_offset", F.lit(MOST)).alias("until"), "problem")
    last = F.max(place).alias("_last")
    until = F.col("_last.until")
    both = problems.logs.unionByName(problems.unsettled).groupBy(*LOG_KEYS).agg(last)
    return both.select(
        *LOG_KEYS, F.when(until < MOST, until).alias("until_offset"), F.col("_last.problem")
    )


def problems_of(tables: Warehouse) -> Problems:
    """Return what is not known of ``KEYED_TOPICS``, see ``internal_problems``."""
    read, known = _read(tables, KEYED_TOPICS), known_replicas(tables)
    answering = read.records.transform(answering_logs(known)).select(*LOG_KEYS, "doubt")
    no_records = read.ends.join(answering, list(PARTITION), how="left_anti").select(*LOG_KEYS)
    no_records = no_records.transform(without_left_over(tables))
    chosen = answering.unionByName(no_records.withColumn("doubt", F.lit(None).cast("string")))
    found = contradicted(tables, KEYED_TOPICS)
    logs = chosen.transform(_with_problems(read, found))
    if known.named is not None:
        named = known.named.where(F.col("topic").isin(*KEYED_TOPICS))
        missing = named.join(chosen, list(PARTITION), how="left_anti")
        rows = missing.select(*PARTITION, F.lit(_NO_LOG).alias("problem"))
        logs = logs.unionByName(rows, allowMissingColumns=True)
    if found is None:
        return Problems(logs, None, None)
    left = read.records.transform(unsettled(found.keys))
    left = left.join(chosen.select(*LOG_KEYS), list(LOG_KEYS), "left_semi")
    until = plus("offset", 1).alias("until_offset")
    rows = left.select(*LOG_KEYS, until, F.col("contradicted").alias("problem"))
    return Problems(logs, found.keys, rows)


def lost_of_replicas(tables: Warehouse, topic: str, found: Contradicted | None) -> DataFrame:
    """Return up to where it is not known what is current in each replica of a topic.

    Each is judged by itself, by rules 1 to 3 of ``internal_problems``. ``found``: what copies
    contradict.

    Gives: the key of a log, lost (as of ``lost_records``); no row of a log that was read whole.
    """
    read = _read(tables, (topic,))
    logs = read.ends.select(*LOG_KEYS, F.lit(None).cast("string").alias("doubt"))
    problems = logs.transform(_with_problems(read, found))
    until = F.coalesce("until_offset", F.lit(MOST)).alias("until")
    lost = F.struct(until, F.col("problem").alias("why")).cast(PLACE)
    return problems.select(*LOG_KEYS, lost.alias("lost"))


def _read(tables: Warehouse, topics: Sequence[str]) -> _Read:
    of_topics = F.col("topic").isin(*topics)
    files = known_files(tables).where(of_topics)
    records = tables.read(INTERNAL_RECORDS).where(of_topics).transform(with_file_facts(files))
    segments, logs = _as_segments(files), local_rows(tables.spark, [], LOGS.schema)
    if tables.version(SEGMENTS) is not None and tables.version(LOGS) is not None:
        built = tables.read(SEGMENTS, (*_OF_SEGMENTS, "vanished_at"))
        built = built.where(of_topics & F.col("vanished_at").isNull()).drop("vanished_at")
        others = segments.join(built, list(LOG_KEYS), how="left_anti")
        segments, logs = built.unionByName(others), tables.read(LOGS)
    ends = segments.groupBy(*LOG_KEYS).agg(
        F.min("base_offset").alias("_first"),
        F.max(F.coalesce("next_offset", "base_offset")).alias("log_end_offset"),
    )
    return _Read(records, files, segments, logs, ends)


def _with_problems(read: _Read, found: Contradicted | None) -> Transform:
    """Keep the logs that do not tell what is current in them, by rules 1 to 3.

    Needs: the key of a log, doubt; ``found``: what copies contradict.
    Gives: the key of a log, until_offset, problem.
    """
    unread = [lost_by_records(read.records), read.segments.transform(lost_by_files(read.files))]
    unread += [] if found is None else [found.logs]
    is_late = F.col("topic").isin(*COMPACTED_BY_KAFKA) & (F.col("_first") > 0)
    late = F.format_string("it begins at offset %d, its first segments are missing", "_first")
    why = F.coalesce("doubt", "lost.why", F.when(is_late, late))
    until = F.when(F.col("doubt").isNull(), F.coalesce("lost.until", "_first"))

    def transform(chosen: DataFrame) -> DataFrame:
        told = (
            chosen.join(read.ends, list(LOG_KEYS), how="left")
            .join(read.logs.select(*LOG_KEYS, "high_watermark"), list(LOG_KEYS), how="left")
            .transform(with_lost(read.segments.transform(lost_records(read.logs))))
            .transform(with_lost_of(*unread))
            .withColumn("doubt", F.coalesce("doubt", cut_short(F.col("high_watermark"))))
        )
        problems = told.select(
            *LOG_KEYS,
            F.when(until < MOST, until).alias("until_offset"),
            F.regexp_replace(why, "^not known: ", "").alias("problem"),
        )
        return problems.where(F.col("problem").isNotNull())

    return transform


def _as_segments(files: DataFrame) -> DataFrame:
    """Return files as rows of ``segments``, by the records that were read of them."""
    return files.where(~F.col("is_snapshot")).select(
        *SEGMENT_KEYS,
        F.col("file").alias("path"),
        *("size_bytes", F.lit(None).cast("bigint").alias("valid_bytes")),
        F.coalesce(plus("to_offset", 1), "base_offset").alias("next_offset"),
        F.col("records").alias("record_count"),
        *("is_active", F.lit(None).cast(_DAMAGE).alias("damage")),
    )
