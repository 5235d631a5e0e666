"""What several steps read, computed once: few rows are collected, many persisted."""

from contextlib import ExitStack

from pyspark.sql import DataFrame

from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.frames.local_rows import computed_rows, frame_of_rows, rows_in_driver
from kafka_segments.engine.spark.parallelism import default_parallelism

_ROWS_A_FILE = 50_000
_LEAST_ROWS_A_FILE = 5_000


def computed_once(frame: DataFrame, caches: ExitStack | None = None) -> DataFrame:
    """Return the same rows, which are computed once, however many steps read them.

    Where a verb works on few rows they are collected now, as by ``collected_if_few``. Others are
    persisted until ``caches`` closes; None: until the session ends.
    """
    if has_few_rows(frame.sparkSession):
        return collected_if_few(frame)
    return persisted_if_many(frame, caches)


def persisted_if_many(frame: DataFrame, caches: ExitStack | None = None) -> DataFrame:
    """Return the same rows; where a verb works on many, they are persisted until ``caches`` closes.

    Few are computed anew by each step that reads them: for two short steps that takes less time
    than to collect them in between.
    """
    if has_few_rows(frame.sparkSession):
        return frame
    kept = frame.persist()
    if caches is not None:
        caches.callback(kept.unpersist)
    return kept


def collected_if_few(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, they are collected now.

    The driver holds them, and one task does all that follows. Rows that the driver holds already
    are not collected once more.
    """
    spark = frame.sparkSession
    if not has_few_rows(spark) or rows_in_driver(frame) is not None:
        return frame
    return frame_of_rows(spark, *computed_rows(frame))


def joined_by_shuffle(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on many, a join does not broadcast them.

    Spark broadcasts persisted rows by their compressed size: millions of rows that are alike are
    few bytes, until each task has a copy.
    """
    return frame if has_few_rows(frame.sparkSession) else frame.hint("merge")


def in_one_task(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, one task does all that follows.

    So nothing is shuffled, and a write makes one file.
    """
    return frame.coalesce(1) if has_few_rows(frame.sparkSession) else frame


def into_files(frame: DataFrame, rows: int) -> DataFrame:
    """Return the same rows in so many tasks as a write is to make files: few are quicker to read.

    Of enough rows all cores write. ``rows``: about how many there are.
    """
    spark = frame.sparkSession
    if has_few_rows(spark):
        return frame.coalesce(1)
    return frame.coalesce(count_files(rows, cores=default_parallelism(spark)))


def count_files(rows: int, *, cores: int) -> int:
    """Choose how many files so many rows are written to."""
    return max(1, -(-rows // _ROWS_A_FILE), min(cores, rows // _LEAST_ROWS_A_FILE))
