"""What verbs do with rows by one of two engines: Spark as it works by itself, or one for few rows.

For few rows the driver reads with Arrow and has the rows, and one task runs what is asked: Spark
compiles a program for each query, starts Python workers, and persists frames, and each of these
takes longer than the query. Each function here does the one or the other by the session that it
gets; a verb does not ask which.
"""

from collections.abc import Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import can_work_in_driver, expect_many_rows, has_few_rows
from kafka_segments.engine.frames.local_rows import (
    arrow_rows,
    arrow_schema,
    computed_rows,
    frame_of_rows,
    persisted_rows,
    rows_in_driver,
)
from kafka_segments.engine.limits import MOST, MOST_IN_DRIVER, MOST_ROWS, Load, Work
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.files.storage.files import opened_for_arrow, place
from kafka_segments.files.storage.stores import hadoop_uri
from kafka_segments.files.storage.uris import GLOB_SIGN, join_uri

_ROWS_A_FILE = 50_000
_LEAST_ROWS_A_FILE = 5_000


def expect(spark: SparkSession, work: Work, load: Load) -> None:
    """Note how much a verb has found to work on; more than few rows are left to Spark.

    ``load``: rows or segments, and the bytes that the work depends on.
    """
    is_few = load.is_little if work is Work.LIST else load.is_within(MOST[work])
    if not is_few:
        expect_many_rows(spark)


def expect_files(files: DataFrame, work: Work, *, by: str) -> None:
    """Note the bytes of files, in column ``by``, as ``expect`` does; a query asks for them."""
    spark = files.sparkSession
    if has_few_rows(spark):
        size_bytes = files.select(F.coalesce(F.sum(by), F.lit(0))).collect()[0][0]
        expect(spark, work, Load(0, size_bytes))


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
    if has_few_rows(frame.sparkSession):
        return frame
    if caches is not None:
        caches.callback(frame.unpersist)
    return persisted_rows(frame)


def collected_if_few(frame: DataFrame) -> DataFrame:
    """Return the same rows; where a verb works on few, they are collected now.

    The driver has them, and one task does all that follows. Rows that the driver has already are
    not collected once more.
    """
    if not has_few_rows(frame.sparkSession) or rows_in_driver(frame) is not None:
        return frame
    return frame_of_rows(frame.sparkSession, *computed_rows(frame))


def collected_if_so_few(frame: DataFrame, rows: int) -> DataFrame:
    """Return the same rows; if there are so few, they are collected now, however many others are.

    So they are written without Spark, which commits a few rows for longer than it computes many.
    ``rows``: how many there are.
    """
    if rows > MOST_ROWS or rows_in_driver(frame) is not None:
        return frame
    return frame_of_rows(frame.sparkSession, *computed_rows(frame))


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


def sorted_in_tasks(
    rows: DataFrame, keys: Sequence[str], *, order: Sequence[str | Column]
) -> DataFrame:
    """Bring the rows of equal keys to one task each, and order the rows of every task."""
    few = has_few_rows(rows.sparkSession)
    brought = rows.coalesce(1) if few else rows.repartition(*keys)
    return brought.sortWithinPartitions(*order)


def rows_to_map(rows: DataFrame) -> tuple[pa.Table, StructType] | None:
    """Return few rows, with their schema, that the driver may map; None: tasks have to.

    Tasks map few rows too where executors see other files than the driver does.
    """
    return computed_rows(rows) if can_work_in_driver(rows.sparkSession) else None


def threads_for(spark: SparkSession, load: Load) -> int:
    """Return how many threads of the driver read segments: one reads few bytes; 0: tasks do."""
    if not has_few_rows(spark):
        return 0
    if load.is_little:
        return 1
    if load.segments <= MOST_IN_DRIVER and can_work_in_driver(spark):
        return min(load.segments, default_parallelism(spark))
    return 0


def rows_of_files(
    spark: SparkSession, folder: str, names: Sequence[str], columns: StructType
) -> DataFrame:
    """Return the rows of Parquet files in a folder, all with ``columns``; Arrow reads few rows."""
    files = [join_uri(folder, name) for name in names]
    if has_few_rows(spark):
        expect(spark, Work.ROWS, Load(sum(_footer(file).num_rows for file in files)))
    if has_few_rows(spark):
        found = [_rows(file) for file in files] or [arrow_schema(columns).empty_table()]
        return frame_of_rows(spark, pa.concat_tables(found), columns)
    if not names:
        return spark.createDataFrame([], columns)
    root = hadoop_uri(folder)
    paths = [GLOB_SIGN.sub(r"\\\g<0>", join_uri(root, name)) for name in names]
    return spark.read.schema(columns).parquet(*paths)


def mapped_rows(spark: SparkSession, rows: pa.Table, columns: StructType) -> DataFrame:
    """Return rows that the driver has mapped as a DataFrame; more than few are Spark's then."""
    expect(spark, Work.ROWS, Load(len(rows)))
    if has_few_rows(spark):
        return frame_of_rows(spark, rows, columns)
    return arrow_rows(spark, rows, columns)


def rows_for_tasks(spark: SparkSession, rows: pa.Table, columns: StructType) -> DataFrame:
    """Return rows that the driver has as a DataFrame that tasks map; what follows is Spark's."""
    expect_many_rows(spark)
    return arrow_rows(spark, rows, columns)


def _footer(uri: str) -> pq.FileMetaData:
    file = place(uri)
    with opened_for_arrow(file) as stream:
        return pq.read_metadata(stream)


def _rows(uri: str) -> pa.Table:
    file = place(uri)
    with opened_for_arrow(file) as stream:
        return pq.read_table(stream)
