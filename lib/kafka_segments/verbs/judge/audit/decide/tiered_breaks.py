"""Find offsets that no segment of a tiered log holds, and those that two hold."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.engine.tables.long_arithmetic import minus, plus
from kafka_segments.kafka.broker_rules.index_files.judgement import IndexKind, IndexVerdict
from kafka_segments.verbs.judge.audit.decide.tiered import GAP, OVERLAP

_FOLDER = ("source", "relative_path")


def decide_breaks(judged: DataFrame) -> DataFrame:
    """Compare the first offset of each segment with the last one of all segments before it.

    Needs: columns of an audit's rows; of each segment one row with ``end_offset``, inclusive.
    Gives: the same columns; a row for each gap, named by the first offset that is missing, and for
        each overlap, named by the segment that begins too early.
    """
    before = (
        Window.partitionBy(*_FOLDER)
        .orderBy("base_offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        judged.where(F.col("end_offset").isNotNull())
        .withColumn("_next", plus(F.max("end_offset").over(before), 1))
        .where(F.col("base_offset") != F.col("_next"))
        .withColumns(_row_of_break())
        .select(*judged.columns)
    )


def _row_of_break() -> dict[str, Column]:
    is_gap = F.col("base_offset") > F.col("_next")
    name = F.regexp_replace("path", r"\.rsm-manifest$", ".log")
    folder = F.regexp_extract("path", "^(.*/)[^/]*$", 1)
    missing_name = F.concat(folder, F.format_string("%020d.log", F.col("_next")))
    return {
        "path": F.when(is_gap, missing_name).otherwise(name),
        "verdict": F.when(is_gap, IndexVerdict.MISSING.value).otherwise(IndexVerdict.VALID.value),
        "kind": F.when(is_gap, IndexKind.GAP.value).otherwise(IndexKind.OVERLAP.value),
        "message": F.when(is_gap, _gap_message()).otherwise(_overlap_message()),
        "effect": F.when(is_gap, GAP.effect.value).otherwise(OVERLAP.effect.value),
        "consequence": F.when(is_gap, GAP.text).otherwise(OVERLAP.text),
        "action": F.when(is_gap, GAP.action).otherwise(OVERLAP.action),
        "suffix": F.lit(".log"),
        "is_finding": is_gap,
        "size_bytes": F.lit(None).cast("long"),
        "base_offset": F.when(is_gap, F.col("_next")).otherwise(F.col("base_offset")),
    }


def _gap_message() -> Column:
    last_missing = minus("base_offset", 1)
    return F.format_string("no whole segment holds offsets %d to %d", F.col("_next"), last_missing)


def _overlap_message() -> Column:
    shared = minus(F.least(plus("end_offset", 1), F.col("_next")), 1)
    text = "it holds offsets %d to %d, which a segment before it holds too"
    return F.format_string(text, F.col("base_offset"), shared)
