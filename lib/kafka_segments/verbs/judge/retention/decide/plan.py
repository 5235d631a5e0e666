"""Decide which segments a plan of retention moves, and which of them it refuses."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.first_look_only import is_known_by_first_look
from kafka_segments.engine.tables.decisions import Decision
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform

_PLAN_AGAIN = "run `kafka-segments build`, then plan again"
_BY_A_LOOK = (
    "a first look is all that is known of it: run `kafka-segments build` without --check index,"
    " then plan again"
)


def choose_to_move(segments: DataFrame) -> Transform:
    """Choose the segments that retention deletes, but for those that a broker rolls first.

    Needs: what ``decide_retention`` gives; ``segments``: the same segments with path,
        last_modified_ms, next_offset and batch_count.
    Gives: the same, path, last_modified_ms, is_known_by_first_look.
    """
    looked_at = is_known_by_first_look().alias("is_known_by_first_look")
    known = segments.select(*SEGMENT_KEYS, "path", "last_modified_ms", looked_at)
    goes = (F.col("decision") == Decision.DELETE) & ~F.col("rolls")

    def transform(decided: DataFrame) -> DataFrame:
        return decided.where(goes).join(known, list(SEGMENT_KEYS), how="inner")

    return transform


def with_problem(listed: DataFrame) -> DataFrame:
    """Add ``problem``: why a segment cannot be moved as it is; null: it can.

    Needs: size_bytes, last_modified_ms, is_known_by_first_look, files (array of name, size_bytes,
        mtime_ns; the ``.log`` is the last one), unlisted (why they could not be listed; null: they
        were).
    Gives: the same without is_known_by_first_look, and problem.
    """
    gone = F.when(F.size("files") == 0, f"it is gone: {_PLAN_AGAIN}")
    changed = F.when(~_is_as_read(), f"it has changed since it was read: {_PLAN_AGAIN}")
    looked_at = F.when(F.col("is_known_by_first_look"), _BY_A_LOOK)
    problem = F.coalesce("unlisted", gone, changed, looked_at)
    return listed.withColumn("problem", problem).drop("is_known_by_first_look")


def _is_as_read() -> Column:
    log = F.try_element_at("files", F.lit(-1))
    mtime_ms = F.expr("try_element_at(files, -1).mtime_ns div 1000000")
    return (log["size_bytes"] == F.col("size_bytes")) & (mtime_ms == F.col("last_modified_ms"))
