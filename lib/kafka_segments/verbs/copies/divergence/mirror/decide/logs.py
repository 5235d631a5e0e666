"""Which replica of a log is compared with which of its mirror's, as columns."""

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform

SOURCE, MIRROR = "source", "mirror"
LOG = ("topic", "partition")
NOTED = ("cleaner_offset", "has_cleaner_checkpoint", "is_compact")
"""What is noted of a log's compaction, see ``decide.copies.Copy``."""
_KEPT = ("start", "high_watermark", *NOTED)
_SYNCS = r"^mm2-offset-syncs\..*\.internal$"
_INTERNAL = r"^(__.*|heartbeats|.*\.checkpoints\.internal|mm2-.*\.internal)$"


def best_replicas(logs: DataFrame, source: Collection[str]) -> Transform:
    """Keep the segments of the replica of each log that goes on furthest, on each side.

    1. That is the one whose last segment begins at the greatest offset. Where several begin there,
       the larger one counts, and of equal ones that of the copy whose name comes first.
    2. It starts where its first segment does, or at a log start offset behind that.
    3. What is noted of compaction, and the high watermark, is that of all replicas of its side.

    Needs: rows of ``frames.chosen_segments``; ``logs``: rows of ``frames.listed_logs`` with
        is_compact; ``source``: the copies of the source, others are of the mirror.
    Gives: side, topic, partition, path, base_offset, size_bytes, start, high_watermark (null: not
        known), ``NOTED``.
    """
    side = F.when(F.col("copy").isin(*source), SOURCE).otherwise(MIRROR)
    own = ("side", "copy", *LOG)
    furthest = Window.partitionBy("side", *LOG).orderBy(F.desc("_last"), F.desc("_size"), "copy")

    def transform(segments: DataFrame) -> DataFrame:
        of_side = segments.withColumn("side", side)
        ends = of_side.groupBy(*own).agg(
            F.max("base_offset").alias("_last"),
            F.min("base_offset").alias("_first"),
            F.max_by("size_bytes", "base_offset").alias("_size"),
        )
        best = ends.withColumn("_rank", F.row_number().over(furthest)).where("_rank = 1")
        of_sides = logs.withColumn("side", side)
        starts = of_sides.select(*own, "log_start_offset")
        noted = of_sides.groupBy("side", *LOG).agg(
            *(F.max(name).alias(name) for name in ("cleaner_offset", "high_watermark")),
            *(F.bool_or(name).alias(name) for name in NOTED[1:]),
        )
        chosen = best.join(starts, list(own), how="inner").join(noted, ["side", *LOG])
        start = F.greatest("_first", F.coalesce("log_start_offset", F.lit(0)))
        return of_side.join(
            chosen.withColumn("start", start).select(*own, *_KEPT), list(own), how="inner"
        ).select("side", *LOG, "path", "base_offset", "size_bytes", *_KEPT)

    return transform


def of_offset_syncs(segments: DataFrame) -> DataFrame:
    """Keep the segments of MirrorMaker's topics of offset syncs, of either side.

    Needs: rows of ``best_replicas``.
    """
    return segments.where(F.col("topic").rlike(_SYNCS))


def is_to_mirror() -> Column:
    """Tell of a topic whether a mirror ought to have it: Kafka's and MirrorMaker's own are none."""
    return ~F.col("topic").rlike(_INTERNAL)


def logs_to_mirror(prefix: str) -> Transform:
    """Name the logs of the source that a mirror ought to have, and their topics there.

    Needs: rows of ``best_replicas``; ``prefix``: what stands in front of the source's names.
    Gives: topic, partition, mirror_topic.
    """

    def transform(segments: DataFrame) -> DataFrame:
        is_named = F.col("side") == SOURCE
        named = segments.where(is_named & is_to_mirror()).select(*LOG).distinct()
        return named.withColumn("mirror_topic", F.concat(F.lit(prefix), "topic"))

    return transform


def pair_with_mirrors(prefix: str) -> Transform:
    """Keep the segments of the logs that both sides have, those of a mirror under its log's name.

    Needs: rows of ``best_replicas``; ``prefix``: see ``logs_to_mirror``.
    Gives: the same columns, and mirror_topic.
    """

    def transform(segments: DataFrame) -> DataFrame:
        names = segments.transform(logs_to_mirror(prefix))
        source, mirror = (segments.where(F.col("side") == side) for side in (SOURCE, MIRROR))
        mirrored = mirror.withColumnRenamed("topic", "mirror_topic").join(
            names, ["mirror_topic", "partition"], how="inner"
        )
        both = mirrored.select(*LOG, "mirror_topic").distinct()
        return source.join(both, list(LOG), how="inner").unionByName(mirrored)

    return transform
