"""List the sources: small trees in the driver, the rest of large ones in the executors."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    StructType,
)

from kafka_segments.engine.frames.local_rows import persisted_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.limits import LISTED_IN_DRIVER, Load
from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.engine.sources.unread_notes import find_unread
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders import listing_rows as listing
from kafka_segments.files.folders.walk import left_of, list_folders, walk_on
from kafka_segments.files.storage.links import lies_in, links_into
from kafka_segments.files.storage.uris import join_uri

_EPOCH = StructType(row_fields("epoch int, start_offset long"))
_META = StructType(
    row_fields(
        "version int, cluster_id string, node_id int, directory_id string,"
        " was_clean_shutdown boolean, has_lock_file boolean, has_cleaner_offsets boolean,"
        " has_high_watermarks boolean, has_log_starts boolean"
    )
)
_OFFSETS = StructType(
    row_fields(
        "topic string, partition int, recovery_point long, log_start_offset long,"
        " high_watermark long, cleaner_offset long"
    )
)
LISTED = StructType(
    row_fields(
        "kind string, source string, relative_path string, name string, log_dir string,"
        " topic string, partition int, folder_state string, base_offset long, size_bytes long,"
        " mtime_ns long, is_active boolean, next_base_offset long, reason string,"
        " topic_id string",
        leader_epochs=ArrayType(_EPOCH),
        meta=_META,
        offsets=ArrayType(_OFFSETS),
    )
)
OnTask = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_ROWS_A_BATCH = 10_000


def _list_folders(*, finishes_swaps: bool) -> OnTask:
    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(LISTED)
        rows: list[listing.Listed] = []
        for batch in batches:
            names = (batch.column(name).to_pylist() for name in ("source", "relative_path"))
            for row in list_folders(zip(*names, strict=True), finishes_swaps=finishes_swaps):
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


class ListedInDriver(NamedTuple):
    """Rows that the driver listed, as Arrow holds ``LISTED``, and rows of the folders left.

    ``finishes_swaps``: how they were listed, see ``list_log``.
    """

    rows: pa.Table
    left: list[listing.Listed]
    finishes_swaps: bool = False

    def loads(self) -> dict[str, Load]:
        """Return how many rows there are and how many bytes they have, by kind."""
        loads = {}
        for found in pc.value_counts(self.rows["kind"]).to_pylist():
            sizes = self.rows["size_bytes"].filter(pc.equal(self.rows["kind"], found["values"]))
            loads[found["values"]] = Load(found["counts"], pc.sum(sizes).as_py() or 0)
        return loads


def list_in_driver(
    sources: Sequence[str], *, follow_links: bool = False, finishes_swaps: bool = False
) -> ListedInDriver:
    """List every source down to the partitions' folders in the driver, up to many rows.

    With ``follow_links`` all are listed here: executors do not know which folders others saw.
    ``finishes_swaps``: see ``list_log``.
    """
    nothing = pa.Table.from_batches([], to_arrow_schema(LISTED))
    roots = [listing.Listed(kinds.FOLDER, source, "") for source in sources]
    here = ListedInDriver(nothing, roots, finishes_swaps)
    follow_into = links_into(sources, follow=follow_links)
    return list_on(here, most_rows=LISTED_IN_DRIVER, follow_into=follow_into)


def list_on(
    here: ListedInDriver, *, most_rows: int, follow_into: tuple[str, ...] = ()
) -> ListedInDriver:
    """List the folders that are left, up to ``most_rows`` more rows; all if links are followed."""
    arrow_schema = to_arrow_schema(LISTED)
    waiting = deque((folder.source, folder.relative_path) for folder in here.left)
    batches: list[pa.RecordBatch] = []
    rows: list[listing.Listed] = []
    walked = walk_on(
        waiting, most_rows=most_rows, follow_into=follow_into, finishes_swaps=here.finishes_swaps
    )
    for listed in walked:
        rows += listed
        if len(rows) >= _ROWS_A_BATCH:
            batches.append(_to_batch(rows, arrow_schema))
            rows = []
    batches.append(_to_batch(rows, arrow_schema))
    more = pa.Table.from_batches(batches, arrow_schema)
    rows_here = pa.concat_tables([here.rows, more])
    return here._replace(rows=rows_here, left=left_of(waiting))


def list_sources(
    spark: SparkSession,
    sources: Sequence[str],
    caches: ExitStack,
    *,
    follow_links: bool = False,
    tell: Callable[[Iterable[str]], None] | None = None,
) -> tuple[DataFrame, dict[str, Load]]:
    """List every source down to the partitions' folders; return the rows and how many, by kind.

    The rows, one per ``sources.listing_rows.Listed``, stay where they are until ``caches`` closes,
    so a folder is listed once. The driver lists a tree of up to ``LISTED_IN_DRIVER`` rows; what
    is left of a larger one is listed by the executors, a folder level a Spark job. ``tell`` is
    given in words the sources without a segment, and what was not read of brokers' small files.
    """
    here = list_in_driver(sources, follow_links=follow_links)
    listed, loads = list_rest(spark, here, caches)
    if tell is not None:
        tell(map(no_segments, sources_without_segments(sources, here, listed)))
        tell(find_unread(listed).lines())
    return listed, loads


def list_rest(
    spark: SparkSession, here: ListedInDriver, caches: ExitStack
) -> tuple[DataFrame, dict[str, Load]]:
    """List what ``list_in_driver`` left; return all rows and how many, as ``list_sources`` does."""
    list_below = _list_folders(finishes_swaps=here.finishes_swaps)
    loads = here.loads()
    levels = [listed_frame(spark, here.rows)]
    if not here.left:
        return levels[0], loads
    folders = listed_frame(
        spark, pa.Table.from_batches([_to_batch(here.left, to_arrow_schema(LISTED))])
    )
    tasks = default_parallelism(spark)
    for _ in range(listing.MOST_LEVELS):
        below = folders.where(F.col("kind") == kinds.FOLDER).select("source", "relative_path")
        level = below.repartition(tasks).mapInArrow(list_below, LISTED)
        caches.callback(level.unpersist)
        listed = persisted_rows(level)
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


def sources_without_segments(
    sources: Sequence[str], here: ListedInDriver, listed: DataFrame
) -> tuple[str, ...]:
    """Return the sources below which no segment was found; ``listed``: the rest's rows, too."""
    found = _with_segments(here, sources)
    if here.left and not found.issuperset(sources):
        rows = listed.where(F.col("kind") == kinds.SEGMENT).select("source").distinct().collect()
        found.update(row["source"] for row in rows)
    return tuple(source for source in sources if source not in found)


def bare_sources(sources: Sequence[str], *, follow_links: bool = False) -> tuple[str, ...]:
    """Return the sources below which there is no segment; of a large tree it is not asked."""
    here = list_in_driver(sources, follow_links=follow_links)
    found = _with_segments(here, sources)
    found.update(folder.source for folder in here.left)
    return tuple(source for source in sources if source not in found)


def _with_segments(here: ListedInDriver, sources: Sequence[str]) -> set[str]:
    """Return the sources with segments, those that a link in another one leads to among them."""
    segments = here.rows.filter(pc.equal(here.rows["kind"], kinds.SEGMENT))
    found = set(pc.unique(segments["source"]).to_pylist())
    rest = links_into([one for one in sources if one not in found], follow=True)
    if rest:
        folders = segments.group_by(["source", "relative_path"]).aggregate([]).to_pylist()
        read = [os.path.realpath(join_uri(*row.values())) for row in folders]
        found.update(one for one in rest if any(lies_in(path, one) for path in read))
    return found


def listed_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows of a listing as a DataFrame."""
    if not rows.num_rows:
        return spark.createDataFrame([], LISTED)  # Connect's client takes no empty table of Arrow
    return spark.createDataFrame(rows)


def _add(loads: dict[str, Load], kind: str, load: Load) -> None:
    before = loads.get(kind, Load())
    loads[kind] = Load(before.segments + load.segments, before.bytes + load.bytes)
