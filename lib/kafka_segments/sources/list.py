"""List the sources: small trees in the driver, the rest of large ones in the executors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kafka_segments.sources import kinds
from kafka_segments.sources import listed as listing
from kafka_segments.sources.walk import list_folders, walk_folders
from kafka_segments.spark.packing import Load
from kafka_segments.spark.parallelism import default_parallelism
from kafka_segments.tables import columns as F

_EPOCH = StructType([StructField("epoch", IntegerType()), StructField("start_offset", LongType())])
_META = StructType(
    [
        StructField("version", IntegerType()),
        StructField("cluster_id", StringType()),
        StructField("node_id", IntegerType()),
        StructField("directory_id", StringType()),
        StructField("was_clean_shutdown", BooleanType()),
        StructField("has_lock_file", BooleanType()),
    ]
)
_OFFSETS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("recovery_point", LongType()),
        StructField("log_start_offset", LongType()),
        StructField("high_watermark", LongType()),
        StructField("cleaner_offset", LongType()),
    ]
)
LISTED = StructType(
    [
        StructField("kind", StringType()),
        StructField("source", StringType()),
        StructField("relative_path", StringType()),
        StructField("name", StringType()),
        StructField("log_dir", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("folder_state", StringType()),
        StructField("base_offset", LongType()),
        StructField("size_bytes", LongType()),
        StructField("mtime_ns", LongType()),
        StructField("is_active", BooleanType()),
        StructField("next_base_offset", LongType()),
        StructField("reason", StringType()),
        StructField("topic_id", StringType()),
        StructField("leader_epochs", ArrayType(_EPOCH)),
        StructField("meta", _META),
        StructField("offsets", ArrayType(_OFFSETS)),
    ]
)
OnTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_ROWS_A_BATCH = 10_000
_ROWS_IN_DRIVER = 200_000  # 200 MiB at most; a Spark job a level takes longer


def _list_folders(*, follow_links: bool) -> OnTask:
    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(LISTED)
        rows: list[listing.Listed] = []
        for batch in batches:
            names = (batch.column(name).to_pylist() for name in ("source", "relative_path"))
            for row in list_folders(zip(*names, strict=True), follow_links=follow_links):
                rows.append(row)
                if len(rows) == _ROWS_A_BATCH:
                    yield _to_batch(rows, arrow_schema)
                    rows = []
        yield _to_batch(rows, arrow_schema)

    return on_task


def _to_batch(rows: list[listing.Listed], arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = dict(zip(listing.Listed._fields, zip(*rows, strict=True), strict=False))
    arrays = []
    for field in arrow_schema:
        values = columns.get(field.name, ())
        plain = (
            [v and [epoch._asdict() for epoch in v] for v in values]
            if field.name == "leader_epochs"
            else values
        )
        arrays.append(pa.array(plain, type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema)


def list_sources(
    spark: SparkSession,
    sources: Sequence[str],
    caches: ExitStack,
    *,
    follow_links: bool = False,
) -> tuple[DataFrame, dict[str, Load]]:
    """List every source down to the partitions' folders; gives the rows and how many, by kind.

    The rows, one per ``sources.listed.Listed``, stay where they are until ``caches`` closes,
    so a folder is listed once. The driver lists a tree of up to ``_ROWS_IN_DRIVER`` rows; what
    is left of a larger one is listed by the executors, a folder level a Spark job.
    """
    walked = walk_folders(
        ((source, "") for source in sources), most_rows=_ROWS_IN_DRIVER, follow_links=follow_links
    )
    list_below = _list_folders(follow_links=follow_links)
    near = [row for rows in walked.folders for row in rows]
    loads: dict[str, Load] = {}
    for row in near:
        _add(loads, row.kind, Load(1, row.size_bytes or 0))
    levels = [_to_frame(spark, near)]
    if not walked.left:
        return levels[0], loads
    folders = _to_frame(spark, walked.left)
    tasks = default_parallelism(spark)
    for _ in range(listing.MOST_LEVELS):
        below = folders.where(F.col("kind") == kinds.FOLDER).select("source", "relative_path")
        listed = below.repartition(tasks).mapInArrow(list_below, LISTED).persist()
        caches.callback(listed.unpersist)
        levels.append(listed)
        found = listed.groupBy("kind").agg(
            F.count("*").alias("rows"), F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes")
        )
        below_here = {row["kind"]: Load(row["rows"], row["bytes"]) for row in found.collect()}
        for kind, load in below_here.items():
            _add(loads, kind, load)
        if kinds.FOLDER not in below_here:
            break
        folders = listed
    return reduce(DataFrame.unionByName, levels), loads


def _to_frame(spark: SparkSession, rows: list[listing.Listed]) -> DataFrame:
    if not rows:
        return spark.createDataFrame([], LISTED)  # Connect's client takes no empty table of Arrow
    arrow_schema = to_arrow_schema(LISTED)
    firsts = range(0, len(rows), _ROWS_A_BATCH)
    batches = [_to_batch(rows[first : first + _ROWS_A_BATCH], arrow_schema) for first in firsts]
    return spark.createDataFrame(pa.Table.from_batches(batches, arrow_schema))


def _add(loads: dict[str, Load], kind: str, load: Load) -> None:
    before = loads.get(kind, Load())
    loads[kind] = Load(before.segments + load.segments, before.bytes + load.bytes)
