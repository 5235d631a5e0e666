"""Rows of Parquet files that tasks have written, beside the tables."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.frames.expected import expect
from kafka_segments.engine.frames.local_rows import arrow_schema, frame_of_rows
from kafka_segments.engine.limits import Load, Work
from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.stores import hadoop_uri
from kafka_segments.files.storage.uris import GLOB_SIGN, join_uri


def parquet_rows(
    spark: SparkSession, folder: str, names: Sequence[str], schema: StructType
) -> DataFrame:
    """Return the rows of files in a folder, all with the columns of ``schema``."""
    files = [join_uri(folder, name) for name in names]
    if has_few_rows(spark):
        expect(spark, Work.ROWS, Load(sum(_footer(file).num_rows for file in files)))
    if has_few_rows(spark):
        found = [_rows(file) for file in files] or [arrow_schema(schema).empty_table()]
        return frame_of_rows(spark, pa.concat_tables(found), schema)
    if not files:
        return spark.createDataFrame([], schema)
    root = hadoop_uri(folder)
    paths = [GLOB_SIGN.sub(r"\\\g<0>", join_uri(root, name)) for name in names]
    return spark.read.schema(schema).parquet(*paths)


def _footer(uri: str) -> pq.FileMetaData:
    file = place(uri)
    with file.filesystem.open_input_file(file.path) as stream:
        return pq.read_metadata(stream)


def _rows(uri: str) -> pa.Table:
    file = place(uri)
    with file.filesystem.open_input_file(file.path) as stream:
        return pq.read_table(stream)
