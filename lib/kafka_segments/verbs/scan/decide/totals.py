"""What a build found, counted over the segments that it read."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.findings import is_finding
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import INDEX
from kafka_segments.verbs.scan.decide.folding import has_transactions


def count_scanned(scanned: DataFrame) -> DataFrame:
    """Count what was read.

    Needs: the rows of ``scan_segments``.
    Gives: one row with ``damaged`` and ``findings`` (segments), ``forbidden`` (those of the
        findings that this user may not read, which are not damaged) with one's ``forbidden_why``,
        ``bytes`` (that were read),
        ``looked_at`` (segments known by a first look), ``doubted`` (those for which one was not
        enough), ``entry_parts`` (the parts that have index entries, at most one a task) and
        ``has_transactions`` (some segment matters to others).
    """
    kind = F.col("damage.kind")
    is_forbidden = F.coalesce(kind == DamageKind.NOT_PERMITTED, F.lit(False))
    return scanned.agg(
        F.count_if(F.col("damage").isNotNull() & ~is_forbidden).alias("damaged"),
        F.count_if(is_finding()).alias("findings"),
        F.count_if(is_forbidden).alias("forbidden"),
        F.min(F.when(is_forbidden, F.col("damage.message"))).alias("forbidden_why"),
        F.coalesce(F.sum("bytes_read"), F.lit(0)).alias("bytes"),
        F.count_if(F.col("checked") == INDEX).alias("looked_at"),
        F.count("checked_why").alias("doubted"),
        F.collect_set("entry_part").alias("entry_parts"),
        F.coalesce(F.bool_or(has_transactions()), F.lit(False)).alias("has_transactions"),
    )
