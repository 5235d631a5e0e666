"""Decide the answers: Kafka's and the true one side by side, and why they differ."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.text.moments import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from kafka_segments.verbs.find.search.decide.locate import KAFKA, TRUE

UNKNOWN = -1
ANSWER = (
    *LOG_KEYS,
    "question",
    "target_ms",
    "kafka_timestamp_ms",
    "kafka_offset",
    "kafka_leader_epoch",
    "true_timestamp_ms",
    "true_offset",
    "difference",
    "log_start_offset",
    "log_end_offset",
    "path",
    "position",
    "bytes_read",
    "problem",
)
_ASKED = ("question", "log_start_offset", "log_end_offset", "last_visible_offset")


class Since(NamedTuple):
    """A name that ListOffsets knows, and the first release that knows it."""

    name: str
    version: Version


_SINCE = {
    LATEST: Since("LATEST", (0,)),
    EARLIEST: Since("EARLIEST", (0,)),
    MAX_TIMESTAMP: Since("MAX_TIMESTAMP", (3, 0)),
    EARLIEST_LOCAL: Since("EARLIEST_LOCAL", (3, 6)),
    LATEST_TIERED: Since("LATEST_TIERED", (3, 9)),
    EARLIEST_PENDING_UPLOAD: Since("EARLIEST_PENDING_UPLOAD", (4, 2)),
}
_EXACT_MAX_TIMESTAMP = (3, 8)


def _long(value: int | None = None) -> Column:
    return F.lit(value).cast("long")


def answer_named(*, kafka_version: Version) -> Transform:
    """Answer EARLIEST, LATEST and the names for tiered logs. All logs count as not tiered.

    Needs: the key of a log, question, target_ms, log_start_offset, local_start_offset,
        log_end_offset, last_visible_offset (exclusive: high watermark or last stable offset),
        leader_epochs.
    Gives: ``ANSWER``.
    Source: UnifiedLog.fetchOffsetByTimestamp, Partition.fetchOffsetForTimestamp.
    """
    target = F.col("target_ms")
    is_start, is_end = target == EARLIEST, target == LATEST
    is_local_start = target == EARLIEST_LOCAL
    offset = (
        F.when(is_start, F.col("log_start_offset"))
        .when(is_local_start, F.col("local_start_offset"))
        .when(is_end, F.col("last_visible_offset"))
    )
    first, last = (F.try_element_at("leader_epochs", F.lit(place)) for place in (1, -1))
    begun = F.filter("leader_epochs", lambda entry: entry["start_offset"] <= offset)
    epoch = (
        F.when(is_start & (first["start_offset"] <= offset), first["epoch"])
        .when(is_local_start, F.try_element_at(begun, F.lit(-1))["epoch"])
        .when(is_end, last["epoch"])
    )
    too_old = _too_old(kafka_version)

    def transform(questions: DataFrame) -> DataFrame:
        known = F.coalesce(offset, _long(UNKNOWN))
        return questions.select(
            *LOG_KEYS,
            "question",
            "target_ms",
            F.when(too_old.isNull(), _long(UNKNOWN)).alias("kafka_timestamp_ms"),
            F.when(too_old.isNull(), known).alias("kafka_offset"),
            F.when(too_old.isNull(), F.coalesce(epoch, F.lit(UNKNOWN))).alias("kafka_leader_epoch"),
            _long().alias("true_timestamp_ms"),
            offset.alias("true_offset"),
            too_old.alias("difference"),
            "log_start_offset",
            "log_end_offset",
            F.lit(None).cast("string").alias("path"),
            _long().alias("position"),
            _long(0).alias("bytes_read"),
            F.lit(None).cast("string").alias("problem"),
        )

    return transform


def not_known_answers(why: Column) -> Transform:
    """Answer each question by that it is not known, and why.

    Needs: the key of a log, question, target_ms, and what ``why`` is made of.
    Gives: ``ANSWER``.
    """
    texts = ("difference", "path")
    asked = (*LOG_KEYS, "question", "target_ms")
    empty = {name: "string" if name in texts else "long" for name in ANSWER if name not in asked}
    told = {name: F.lit(None).cast(kind) for name, kind in empty.items()}
    told |= {"kafka_leader_epoch": F.lit(None).cast("int"), "bytes_read": _long(0), "problem": why}

    def transform(questions: DataFrame) -> DataFrame:
        return questions.withColumns(told).select(*ANSWER)

    return transform


def _too_old(kafka_version: Version) -> Column:
    text = F.lit(None).cast("string")
    for target, (name, version) in _SINCE.items():
        if kafka_version < version:
            release = ".".join(map(str, version))
            text = F.when(
                F.col("target_ms") == target,
                f"ListOffsets knows {name} from {release} on: no answer",
            ).otherwise(text)
    return text


def compare_answers(*, kafka_version: Version) -> Transform:
    """Put Kafka's answer and the true one of each question side by side.

    1. Kafka's answer is the record found in the one segment that it chose, if that record lies
       below the last visible offset. Otherwise the answer is -1, unknown: Kafka does not try later
       segments.
    2. The true answer is the least offset found among all segments chosen.
    3. Before 3.8 the answer for MAX_TIMESTAMP is the last offset of the batch, not the record's.

    Needs: rows of ``find_first_records`` with question, target_ms, log_start_offset,
        log_end_offset, last_visible_offset, role, base_offset, max_timestamp_ms,
        offset_of_max_timestamp.
    Gives: ``ANSWER``.
    Source: UnifiedLog.fetchOffsetByTimestamp, Partition.fetchOffsetForTimestamp.
    """
    record = F.struct(
        F.col("found_offset").alias("offset"),
        F.col("found_timestamp_ms").alias("timestamp_ms"),
        F.col("found_leader_epoch").alias("leader_epoch"),
        "path",
        F.col("found_position").alias("position"),
    )
    is_found = F.col("found_offset").isNotNull()
    chosen = F.struct(
        record.alias("record"), "base_offset", "max_timestamp_ms", "offset_of_max_timestamp"
    )

    answers = _answer_columns(kafka_version)
    named = {name: column.alias(name) for name, column in answers.items()}

    def transform(found: DataFrame) -> DataFrame:
        return (
            found.groupBy("target_ms", *reversed(LOG_KEYS), *_ASKED)
            .agg(
                F.max(F.when(F.col("role") != TRUE, chosen)).alias("_kafka"),
                F.min(F.when((F.col("role") != KAFKA) & is_found, record)).alias("_true"),
                F.sum("bytes_read").alias("bytes_read"),
                F.max("problem").alias("problem"),
            )
            .withColumns(_kafkas_record(kafka_version))
            .select(*(named.get(name, name) for name in ANSWER))
        )

    return transform


def _kafkas_record(kafka_version: Version) -> dict[str, Column]:
    """Return the record that Kafka's log finds, whether or not a consumer can read it."""
    record = F.col("_kafka.record")
    is_shallow = (F.col("target_ms") == MAX_TIMESTAMP) & F.lit(kafka_version < _EXACT_MAX_TIMESTAMP)
    return {
        "_offset": F.when(is_shallow, F.col("_kafka.offset_of_max_timestamp")).otherwise(
            record["offset"]
        ),
        "_timestamp": F.when(is_shallow, F.col("_kafka.max_timestamp_ms")).otherwise(
            record["timestamp_ms"]
        ),
    }


def _answer_columns(kafka_version: Version) -> dict[str, Column]:
    too_old = _too_old(kafka_version)
    is_asked = too_old.isNull() & F.col("problem").isNull()
    is_visible = F.coalesce(F.col("_offset") < F.col("last_visible_offset"), F.lit(False))

    def if_visible(value: Column) -> Column:
        return F.when(is_asked, F.when(is_visible, value).otherwise(F.lit(UNKNOWN)))

    return {
        "kafka_offset": if_visible(F.col("_offset")),
        "kafka_timestamp_ms": if_visible(F.col("_timestamp")),
        "kafka_leader_epoch": if_visible(F.col("_kafka.record.leader_epoch")).cast("int"),
        "true_offset": F.col("_true.offset"),
        "true_timestamp_ms": F.col("_true.timestamp_ms"),
        "path": F.col("_true.path"),
        "position": F.col("_true.position"),
        "difference": F.when(F.col("problem").isNull(), F.coalesce(too_old, _difference())),
    }


def _difference() -> Column:
    """Return why Kafka's answer is not the true one; null where they are the same."""
    offset, true = F.col("_offset"), F.col("_true.offset")
    is_same = offset.eqNullSafe(true)
    segment = F.concat(F.lit("Kafka searches segment "), F.col("_kafka.base_offset").cast("string"))
    is_hidden = offset >= F.col("last_visible_offset")
    return (
        F.when(
            is_hidden,
            F.concat(
                F.lit("at or above "),
                F.col("last_visible_offset").cast("string"),
                F.lit(", where consumers cannot read: unknown to them"),
            ),
        )
        .when(is_same, None)
        .when(
            (F.col("target_ms") == MAX_TIMESTAMP) & true.isNull(),
            F.lit("no record has a timestamp: Kafka answers the first record"),
        )
        .when(
            (F.col("target_ms") == MAX_TIMESTAMP) & offset.isNotNull() & true.isNotNull(),
            F.lit("before 3.8 Kafka answers the last offset of the batch, not the record's"),
        )
        .when(
            offset.isNull() & (F.col("_kafka.max_timestamp_ms") < F.col("target_ms")),
            F.concat(
                segment, F.lit(" alone, which it chose by its mtime: no timestamp in it reaches T")
            ),
        )
        .when(
            offset.isNull() & (F.col("_kafka.base_offset") < F.col("log_start_offset")),
            F.concat(
                segment, F.lit(" alone, where all at or after T lies below the log start offset")
            ),
        )
        .otherwise(F.concat(segment, F.lit(" alone; no record in it fits its batch's timestamp")))
    )
