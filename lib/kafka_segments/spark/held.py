"""What several steps read, computed once: few rows are collected, many persisted."""

from contextlib import ExitStack

from pyspark.sql import DataFrame

from kafka_segments.spark.few_rows import has_few_rows
from kafka_segments.spark.local_rows import arrow_rows


def held(frame: DataFrame, caches: ExitStack | None = None) -> DataFrame:
    """Return the same rows, which are computed once, however many steps read them.

    Where a verb works on few rows they are collected now, as by ``held_if_few``. Others are
    persisted until ``caches`` closes; None: until the session ends.
    """
    if has_few_rows(frame.sparkSession):
        return held_if_few(frame)
    kept = frame.persist()
    if caches is not None:
        caches.callback(kept.unpersist)
    return kept


def held_if_few(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, they are collected now.

    The driver holds them, and one task does all that follows.
    """
    spark = frame.sparkSession
    if not has_few_rows(spark):
        return frame
    return in_one_task(arrow_rows(spark, frame.toArrow(), frame.schema))


def in_one_task(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, one task does all that follows.

    So nothing is shuffled, and a write makes one file.
    """
    return frame.coalesce(1) if has_few_rows(frame.sparkSession) else frame
