"""Find offsets that no segment of a tiered log holds, and those that two hold."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.audit.decide.judgement import Kind, Verdict
from kafka_segments.audit.decide.tiered import GAP, OVERLAP
from kafka_segments.tables.bounded import minus, plus

_FOLDER = ("source", "relative_path")


def decide_breaks(judged: DataFrame) -> DataFrame:
    """Compare each segment's first offset with the last one of all before it.

    Needs: columns of an audit's rows; of each segment one row with ``end_offset``, inclusive.
    Gives: the same columns, one row a gap (of the first offset that is missing) or an overlap (of
        the segment that begins too early).
    """
    before = (
        Window.partitionBy(*_FOLDER)
        .orderBy("base_offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    is_gap = F.col("base_offset") > F.col("_next")
    last_missing = minus("base_offset", 1)
    shared = minus(F.least(plus("end_offset", 1), F.col("_next")), 1)
    name = F.regexp_replace("path", r"\.rsm-manifest$", ".log")
    folder = F.regexp_extract("path", "^(.*/)[^/]*$", 1)
    missing_name = F.concat(folder, F.format_string("%020d.log", F.col("_next")))
    said = {
        "path": F.when(is_gap, missing_name).otherwise(name),
        "verdict": F.when(is_gap, Verdict.MISSING.value).otherwise(Verdict.VALID.value),
        "kind": F.when(is_gap, Kind.GAP.value).otherwise(Kind.OVERLAP.value),
        "message": F.when(
            is_gap,
            F.format_string(
                "no whole segment holds offsets %d to %d", F.col("_next"), last_missing
            ),
        ).otherwise(
            F.format_string(
                "it holds offsets %d to %d, which a segment before it holds too",
                F.col("base_offset"),
                shared,
            )
        ),
        "effect": F.when(is_gap, GAP.effect.value).otherwise(OVERLAP.effect.value),
        "consequence": F.when(is_gap, GAP.text).otherwise(OVERLAP.text),
        "action": F.when(is_gap, GAP.action).otherwise(OVERLAP.action),
        "suffix": F.lit(".log"),
        "is_finding": F.lit(True),
        "size_bytes": F.lit(None).cast("long"),
        "base_offset": F.when(is_gap, F.col("_next")).otherwise(F.col("base_offset")),
    }
    return (
        judged.where(F.col("end_offset").isNotNull())
        .withColumn("_next", plus(F.max("end_offset").over(before), 1))
        .where(F.col("base_offset") != F.col("_next"))
        .withColumns(said)
        .select(*judged.columns)
    )
