"""What several steps read, computed once: few rows are collected, many persisted."""

from contextlib import ExitStack

from pyspark.sql import DataFrame

from kafka_segments.engine.frames.engines import engine_of
from kafka_segments.engine.spark.parallelism import default_parallelism

_ROWS_A_FILE = 50_000
_LEAST_ROWS_A_FILE = 5_000


def computed_once(frame: DataFrame, caches: ExitStack | None = None) -> DataFrame:
    """Return the same rows, which are computed once, however many steps read them.

    Where a verb works on few rows they are collected now, as by ``collected_if_few``. Others are
    persisted until ``caches`` closes; None: until the session ends.
    """
    return persisted_if_many(collected_if_few(frame), caches)


def persisted_if_many(frame: DataFrame, caches: ExitStack | None = None) -> DataFrame:
    """Return the same rows; where a verb works on many, they are persisted until ``caches`` closes.

    Few are computed anew by each step that reads them: for two short steps that takes less time
    than to collect them in between.
    """
    return engine_of(frame.sparkSession).persisted(frame, caches)


def collected_if_few(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, they are collected now.

    The driver holds them, and one task does all that follows. Rows that the driver holds already
    are not collected once more.
    """
    return engine_of(frame.sparkSession).collected(frame)


def joined_by_shuffle(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on many, a join does not broadcast them.

    Spark broadcasts persisted rows by their compressed size: millions of rows that are alike are
    few bytes, until each task has a copy.
    """
    return engine_of(frame.sparkSession).joined_by_shuffle(frame)


def in_one_task(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, one task does all that follows.

    So nothing is shuffled, and a write makes one file.
    """
    return engine_of(frame.sparkSession).shared_out(frame, lambda many: many)


def into_files(frame: DataFrame, rows: int) -> DataFrame:
    """Return the same rows in so many tasks as a write is to make files: few are quicker to read.

    Of enough rows all cores write. ``rows``: about how many there are.
    """
    spark = frame.sparkSession

    def by_spark(many: DataFrame) -> DataFrame:
        return many.coalesce(count_files(rows, cores=default_parallelism(spark)))

    return engine_of(spark).shared_out(frame, by_spark)


def count_files(rows: int, *, cores: int) -> int:
    """Choose how many files so many rows are written to."""
    return max(1, -(-rows // _ROWS_A_FILE), min(cores, rows // _LEAST_ROWS_A_FILE))
