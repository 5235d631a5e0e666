"""Which logs are compared, what is known of each copy, and which ranges differ, as columns."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import file_path
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import plus
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.names import FolderState
from kafka_segments.verbs.copies.divergence.decide.copies import BY_HEADERS, DifferenceKind, Match

_OF_TIER = r"/[0-9]{20}-[^/]+\.log$"
_LOG = ("topic", "partition")
_PART = (
    *("copy", "path", "segment_base", "next_base", "range", "digest", "batches", "bytes"),
    *("base_offset", "last_offset", "first_epoch", "last_epoch", "position", "end_position"),
)


def with_copy(copies: Mapping[str, str]) -> Transform:
    """Add ``copy``, the name of the copy that a source belongs to.

    Needs: rows of a listing. ``copies``: the names by source.
    """
    pairs = [F.lit(text) for pair in copies.items() for text in pair]
    return lambda listed: listed.withColumn("copy", F.create_map(*pairs)[F.col("source")])


def listed_logs(listed: DataFrame) -> DataFrame:
    """Return for each copy of a log what the files beside its segments say.

    Logs on their way to another log directory (-future) are left out.

    Needs: rows of ``with_copy``.
    Gives: copy, topic, partition, log_dir, topic_id, leader_epochs, log_start_offset,
        high_watermark, cleaner_offset, has_cleaner_checkpoint (the checkpoint is there, whether it
        names the log or not), cluster and node_id (of meta.properties; null: it says nothing),
        copy_count (copies that hold the log), has_many_ids (topics of this name).
    """
    notes = listed.where(F.col("kind") == kinds.LOG_DIR).select(
        "log_dir", F.explode("offsets").alias("_noted")
    )
    noted = notes.select(
        "log_dir",
        *(
            F.col(f"_noted.{name}").alias(name)
            for name in (*_LOG, "log_start_offset", "high_watermark", "cleaner_offset")
        ),
    )
    of_log_dirs = (
        listed.where(F.col("kind") == kinds.LOG_DIR)
        .groupBy("log_dir")
        .agg(
            F.bool_or("meta.has_cleaner_offsets").alias("_is_noted"),
            F.max("meta.cluster_id").alias("cluster"),
            F.max("meta.node_id").alias("node_id"),
        )
    )
    is_live = F.col("folder_state") == FolderState.LIVE
    logs = listed.where((F.col("kind") == kinds.LOG) & is_live)
    every = Window.partitionBy(*_LOG)
    return (
        logs.select("copy", *_LOG, "log_dir", "topic_id", "leader_epochs")
        .join(noted, ["log_dir", *_LOG], how="left")
        .join(of_log_dirs, "log_dir", how="left")
        .withColumn("has_cleaner_checkpoint", F.coalesce("_is_noted", F.lit(False)))
        .drop("_is_noted")
        .withColumn("copy_count", F.size(F.collect_set("copy").over(every)))
        .withColumn("has_many_ids", F.size(F.collect_set("topic_id").over(every)) > 1)
    )


def compared_logs(anchor: str | None, match: Match) -> Transform:
    """Keep the logs that are compared; with ``anchor`` only those that this copy holds.

    Needs: rows of ``listed_logs``.
    Gives: the same columns.
    """

    def transform(logs: DataFrame) -> DataFrame:
        is_one = ~F.col("has_many_ids") | F.lit(match == Match.NAME)
        compared = logs.where((F.col("copy_count") > 1) & is_one)
        if anchor is None:
            return compared
        held = compared.where(F.col("copy") == anchor).select(*_LOG)
        return compared.join(held, list(_LOG), how="left_semi")

    return transform


def chosen_segments(logs: DataFrame) -> Transform:
    """Keep the segments of some logs.

    Needs: rows of ``with_copy``; ``logs``: copy, topic, partition and log_dir of these logs.
    Gives: copy, topic, partition, path, relative_path, base_offset, segment_base, next_base (null:
        the last one), size_bytes, mtime_ns.
    """
    own = ("copy", *_LOG, "log_dir")
    chosen = logs.select(*own)
    is_live = F.col("folder_state") == FolderState.LIVE

    def transform(listed: DataFrame) -> DataFrame:
        segments = listed.where((F.col("kind") == kinds.SEGMENT) & is_live)
        return segments.join(chosen, list(own), how="left_semi").select(
            "copy",
            *_LOG,
            file_path().alias("path"),
            "relative_path",
            "base_offset",
            F.col("base_offset").alias("segment_base"),
            F.col("next_base_offset").alias("next_base"),
            "size_bytes",
            "mtime_ns",
        )

    return transform


def segments_of_copies(segments: DataFrame) -> DataFrame:
    """List the segments of each copy of a log, as ``log_files.WholeSegment`` has them.

    Needs: rows of ``chosen_segments``.
    Gives: copy, topic, partition, segments (array of path, base_offset, next_base, end_position).
    """
    whole = F.struct("path", "base_offset", "next_base", F.col("size_bytes").alias("end_position"))
    return segments.groupBy("copy", *_LOG).agg(F.collect_list(whole).alias("segments"))


def described(logs: DataFrame) -> Transform:
    """Describe each copy of the logs that are compared.

    Needs: rows of ``tasks.read_segments``; ``logs``: rows of ``compared_logs`` with is_compact.
    Gives: copy, topic, partition, start, end, high_watermark, leader_epochs, cleaner_offset,
        gaps, is_tiered, damages, held_epochs, is_start_noted, has_cleaner_checkpoint, is_compact
        (see ``decide.copies.Copy``).
    """
    least = F.coalesce(F.col("first_base"), F.lit(0))

    def transform(read: DataFrame) -> DataFrame:
        behind = F.array_max(F.transform("ranges", lambda one: plus(one["last_offset"], 1)))
        totals = read.groupBy("copy", *_LOG).agg(
            F.min("segment_base").alias("first_base"),
            F.max(F.greatest("segment_base", behind)).alias("_behind"),
            F.sum("gaps").alias("gaps"),
            F.bool_or(F.col("path").rlike(_OF_TIER)).alias("is_tiered"),
            F.flatten(F.collect_list("damages")).alias("damages"),
        )
        start = F.greatest(least, F.col("log_start_offset"))
        has_checkpoints = F.col("high_watermark").isNotNull()
        known = logs.join(totals, ["copy", *_LOG], how="left")
        return known.join(_held_epochs(read), ["copy", *_LOG], how="left").select(
            "copy",
            *_LOG,
            start.alias("start"),
            F.greatest(start, F.col("_behind")).alias("end"),
            "high_watermark",
            "leader_epochs",
            "cleaner_offset",
            F.coalesce("gaps", F.lit(0)).alias("gaps"),
            F.coalesce("is_tiered", F.lit(False)).alias("is_tiered"),
            F.coalesce("damages", F.array()).alias("damages"),
            "held_epochs",
            (F.col("log_start_offset").isNotNull() | ~has_checkpoints).alias("is_start_noted"),
            "has_cleaner_checkpoint",
            "is_compact",
        )

    return transform


def with_segments(segments: DataFrame, logs: DataFrame) -> Transform:
    """Add what a whole log is made of: the segments of each copy, and its topic id.

    Needs: rows of ``described``; ``segments``: rows of ``chosen_segments``; ``logs``: rows of
        ``listed_logs``, those of the logs that are kept.
    Gives: the same, topic_id, segments (array of path, base_offset, next_base, end_position).
    """
    own = ["copy", *_LOG]
    by_copy = segments_of_copies(segments)
    nothing = F.array().cast(by_copy.schema["segments"].dataType)

    def transform(copies: DataFrame) -> DataFrame:
        return (
            copies.join(logs.select(*own, "topic_id"), own, how="inner")
            .join(by_copy, own, how="left")
            .withColumn("segments", F.coalesce("segments", nothing))
        )

    return transform


def _held_epochs(read: DataFrame) -> DataFrame:
    """Return for each copy the leader epochs of its batches, as ranges tell of their ends."""
    ends = F.flatten(
        F.transform(
            "ranges",
            lambda one: F.array(
                F.struct(one["first_epoch"].alias("epoch"), one["base_offset"].alias("offset")),
                F.struct(one["last_epoch"].alias("epoch"), one["last_offset"].alias("offset")),
            ),
        )
    )
    by_epoch = (
        read.select("copy", *_LOG, F.inline(ends))
        .where(F.col("epoch") >= 0)
        .groupBy("copy", *_LOG, "epoch")
        .agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
    )
    one = F.struct("epoch", "first", "last")
    return by_epoch.groupBy("copy", *_LOG).agg(
        F.array_sort(F.collect_list(one)).alias("held_epochs")
    )


def unequal_parts(copies: DataFrame) -> Transform:
    """Keep the parts of those ranges in which the copies of a log differ.

    Needs: rows of ``tasks.read_segments``; ``copies``: rows of ``described``.
    Gives: topic, partition and the fields of ``decide.parts.Part``.
    """
    counts = copies.groupBy(*_LOG).agg(F.count("*").alias("_copies"))

    def transform(read: DataFrame) -> DataFrame:
        parts = read.select("*", F.inline("ranges")).select(*_LOG, *_PART)
        by_copy = parts.groupBy(*_LOG, "range", "copy").agg(
            F.bit_xor("digest").alias("digest"),
            F.sum("batches").alias("batches"),
            F.sum("bytes").alias("bytes"),
        )
        held = ("digest", "batches", "bytes")
        by_range = by_copy.groupBy(*_LOG, "range").agg(
            F.count("*").alias("_holders"),
            *(F.min(name).alias(f"_least_{name}") for name in held),
            *(F.max(name).alias(f"_most_{name}") for name in held),
        )
        is_unequal = F.col("_holders") < F.col("_copies")
        for name in held:
            is_unequal = is_unequal | (F.col(f"_least_{name}") < F.col(f"_most_{name}"))
        unequal = by_range.join(counts, list(_LOG), how="inner").where(is_unequal)
        return parts.join(unequal.select(*_LOG, "range"), [*_LOG, "range"], how="left_semi")

    return transform


def equal_by_headers(rows: DataFrame) -> DataFrame:
    """Say of ranges that are equal that only the headers of their batches were read.

    Needs and gives: kind, detail.
    """
    is_equal = F.col("kind") == DifferenceKind.EQUAL
    return rows.withColumn("detail", F.when(is_equal, BY_HEADERS).otherwise(F.col("detail")))


def other_topics(logs: DataFrame) -> DataFrame:
    """Return a row for each log whose copies are of different topics of one name.

    Needs: rows of ``listed_logs``.
    Gives: the columns of ``tasks_logs.COMPARED`` but for the offsets, which are null.
    """
    named = F.concat_ws(" ", "copy", "topic_id")
    return (
        logs.where("has_many_ids")
        .groupBy(*_LOG)
        .agg(
            F.array_sort(F.collect_set("copy")).alias("copies"),
            F.concat_ws(", ", F.array_sort(F.collect_set(named))).alias("detail"),
        )
        .select(
            *_LOG,
            F.lit(0).alias("row"),
            F.lit(DifferenceKind.TOPIC_ID.value).alias("kind"),
            F.lit(True).alias("is_finding"),
            F.lit(None).cast("long").alias("from_offset"),
            F.lit(None).cast("long").alias("until_offset"),
            "copies",
            F.array().cast("array<string>").alias("right_copies"),
            F.lit(None).cast("int").alias("epoch"),
            "detail",
            F.col("copies").alias("held_by"),
            F.lit(0).cast("long").alias("bytes_read"),
        )
    )
