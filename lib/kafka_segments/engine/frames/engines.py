"""The two engines that work on rows: Spark as it does by itself, and one for small data.

What verbs do with rows is said by the other modules of this room. Where the engines differ, these
call the engine of the session, and do not ask which one it is.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import can_work_in_driver, expect_many_rows, has_few_rows
from kafka_segments.engine.frames.local_rows import (
    arrow_rows,
    arrow_schema,
    computed_rows,
    frame_of_rows,
    rows_in_driver,
)
from kafka_segments.engine.limits import MOST, MOST_IN_DRIVER, Load, Work
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.stores import hadoop_uri
from kafka_segments.files.storage.uris import GLOB_SIGN, join_uri


class SparkEngine:
    """Spark as it works by itself: plans are compiled, frames persisted, tasks do the work."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def collected(self, frame: DataFrame) -> DataFrame:
        """Return the same rows; the driver has those of small data."""
        return frame

    def persisted(self, frame: DataFrame, caches: ExitStack | None) -> DataFrame:
        """Return the same rows; those of small data are not persisted."""
        kept = frame.persist()
        if caches is not None:
            caches.callback(kept.unpersist)
        return kept

    def joined_by_shuffle(self, frame: DataFrame) -> DataFrame:
        """Return the same rows, which no join broadcasts unless they are small data."""
        return frame.hint("merge")

    def shared_out(self, frame: DataFrame, by_spark: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return the same rows in tasks as ``by_spark`` makes them, those of small data in one."""
        return by_spark(frame)

    def rows_to_map(self, rows: DataFrame) -> tuple[pa.Table, StructType] | None:
        """Return rows, with their schema, that the driver may map; None: tasks have to."""
        return None

    def threads(self, load: Load) -> int:
        """Return how many threads of the driver read segments; 0: tasks do."""
        return 0

    def frame(self, rows: pa.Table, columns: StructType) -> DataFrame:
        """Return rows of Arrow as a DataFrame; their schema is ``arrow_schema`` of ``columns``."""
        return arrow_rows(self._spark, rows, columns)

    def parquet(self, folder: str, names: Sequence[str], columns: StructType) -> DataFrame:
        """Return the rows of files in a folder, all with ``columns``."""
        if not names:
            return self._spark.createDataFrame([], columns)
        root = hadoop_uri(folder)
        paths = [GLOB_SIGN.sub(r"\\\g<0>", join_uri(root, name)) for name in names]
        return self._spark.read.schema(columns).parquet(*paths)

    def expect(self, work: Work, load: Load) -> None:
        """Note how much a verb has found to work on; more than few rows are left to Spark.

        ``load``: rows or segments, and the bytes that the work depends on.
        """

    def expect_many(self) -> None:
        """Note that what follows is not small data: Spark compiles its plans from now on."""

    def expect_files(self, files: DataFrame, work: Work, *, by: str) -> None:
        """Note the bytes of files, in column ``by``, as ``expect`` does."""


class SmallEngine(SparkEngine):
    """For few rows: the driver reads with Arrow and has the rows, one task runs what is asked.

    Where executors see other files than the driver does, tasks read segments all the same.
    """

    def collected(self, frame: DataFrame) -> DataFrame:
        """Return the same rows, which the driver has."""
        if rows_in_driver(frame) is not None:
            return frame
        return frame_of_rows(self._spark, *computed_rows(frame))

    def persisted(self, frame: DataFrame, caches: ExitStack | None) -> DataFrame:
        """Return the same rows: few are computed sooner than persisted."""
        return frame

    def joined_by_shuffle(self, frame: DataFrame) -> DataFrame:
        """Return the same rows, which a join may broadcast."""
        return frame

    def shared_out(self, frame: DataFrame, by_spark: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return the same rows in one task."""
        return frame.coalesce(1)

    def rows_to_map(self, rows: DataFrame) -> tuple[pa.Table, StructType] | None:
        """Return rows where the driver sees the files that executors see."""
        return computed_rows(rows) if can_work_in_driver(self._spark) else None

    def threads(self, load: Load) -> int:
        """Return how many threads read segments: one reads little, tasks read many."""
        if load.is_little:
            return 1
        if load.segments <= MOST_IN_DRIVER and can_work_in_driver(self._spark):
            return min(load.segments, default_parallelism(self._spark))
        return 0

    def frame(self, rows: pa.Table, columns: StructType) -> DataFrame:
        """Return rows of Arrow as a DataFrame whose rows the driver has."""
        return frame_of_rows(self._spark, rows, columns)

    def parquet(self, folder: str, names: Sequence[str], columns: StructType) -> DataFrame:
        """Return the rows of files as Arrow reads them, unless they are more than few."""
        files = [join_uri(folder, name) for name in names]
        self.expect(Work.ROWS, Load(sum(_footer(file).num_rows for file in files)))
        if not has_few_rows(self._spark):
            return super().parquet(folder, names, columns)
        found = [_rows(file) for file in files] or [arrow_schema(columns).empty_table()]
        return self.frame(pa.concat_tables(found), columns)

    def expect(self, work: Work, load: Load) -> None:
        """Leave more than few rows to Spark."""
        is_few = load.is_little if work is Work.LIST else load.is_within(MOST[work])
        if not is_few:
            self.expect_many()

    def expect_many(self) -> None:
        """Leave what follows to Spark."""
        expect_many_rows(self._spark)

    def expect_files(self, files: DataFrame, work: Work, *, by: str) -> None:
        """Leave files of more bytes to Spark; a query asks for them."""
        size_bytes = files.select(F.coalesce(F.sum(by), F.lit(0))).collect()[0][0]
        self.expect(work, Load(0, size_bytes))


def engine_of(spark: SparkSession) -> SparkEngine:
    """Return the engine that works for a session now; a table that is not small changes it."""
    return SmallEngine(spark) if has_few_rows(spark) else SparkEngine(spark)


def _footer(uri: str) -> pq.FileMetaData:
    file = place(uri)
    with file.filesystem.open_input_file(file.path) as stream:
        return pq.read_metadata(stream)


def _rows(uri: str) -> pa.Table:
    file = place(uri)
    with file.filesystem.open_input_file(file.path) as stream:
        return pq.read_table(stream)
