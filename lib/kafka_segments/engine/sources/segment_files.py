"""List the files of segments in the executors, one folder at a time, and digest them."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_segments.engine.frames.engines import rows_to_map
from kafka_segments.engine.frames.local_rows import rows_in_driver
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.packing import TellLoad, TellRead, pack_by_bytes, tell_nobody
from kafka_segments.engine.limits import MOST_IN_DRIVER, Load
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.files.changes.set_aside import files_of_segments
from kafka_segments.files.storage.durable_files import sha256_of

_FILE = pa.struct([("name", pa.string()), ("size_bytes", pa.int64()), ("mtime_ns", pa.int64())])
_LISTED = pa.schema(
    [
        ("folder", pa.string()),
        ("base_offset", pa.int64()),
        ("files", pa.list_(_FILE)),
        ("unlisted", pa.string()),
    ]
)
_DIGESTED = pa.schema(
    [
        ("path", pa.string()),
        ("digests", pa.map_(pa.string(), pa.string())),
        ("unread", pa.string()),
    ]
)
_ROWS = 1000


def with_segment_files(segments: DataFrame, *, only_found: bool = False) -> DataFrame:
    """Add the files of every segment.

    Needs: path (of a local .log), base_offset. A path occurs once.
    Gives: the same, ``files``, and ``unlisted`` (why the folder cannot be read; null if it can).
        With ``only_found`` links that lead nowhere are left out, as a broker finds no file there.
    """
    folder = F.regexp_extract("path", "^(.*)/[^/]*$", 1)
    folders = segments.groupBy(folder.alias("folder")).agg(
        F.sort_array(F.collect_list("base_offset")).alias("base_offsets")
    )
    on_task = partial(_list, only_found=only_found)
    listed = map_rows(folders, on_task, from_arrow_schema(_LISTED))
    keys = ["_folder", "base_offset"]
    return (
        segments.withColumn("_folder", folder)
        .join(listed.withColumnRenamed("folder", "_folder"), keys, how="left")
        .drop("_folder")
    )


def with_digests(
    listed: DataFrame, *, tell: TellLoad = tell_nobody, tell_read: TellRead | None = None
) -> DataFrame:
    """Add the sha256 of every file of segments; threads of the driver read few of them.

    ``tell``: is told how much is read, by how many tasks (none: by the driver). ``tell_read``: is
    told of the bytes that the driver has read.

    Needs: what ``with_segment_files`` gives, and size_bytes (of the ``.log``). Read twice.
    Gives: the same, ``digests`` (the sha256 of each file by its name), ``unlisted`` also where a
        file cannot be read.
    """
    spark = listed.sparkSession
    here = None if rows_in_driver(listed) is None else rows_to_map(listed)
    asked = listed.select("path", "size_bytes", F.expr("files.name").alias("names"))
    row_type = from_arrow_schema(_DIGESTED)
    if here is not None and len(here[0]) <= MOST_IN_DRIVER:
        tell(Load(len(here[0]), sum(here[0]["size_bytes"].to_pylist())), 0)
        threads = default_parallelism(spark)
        on_read = None if tell_read is None else _teller(tell_read)
        digested = map_rows(asked, _digest, row_type, threads=threads, tell=on_read)
    else:
        digested = pack_by_bytes(asked, by="size_bytes", tell=tell).mapInArrow(_digest, row_type)
    return (
        listed.join(digested, "path", how="left")
        .withColumn("unlisted", F.coalesce("unlisted", "unread"))
        .drop("unread")
    )


def _teller(tell_read: TellRead) -> Callable[[pa.RecordBatch], None]:
    return lambda row: tell_read(sum(row.column("size_bytes").to_pylist()))


def _digest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_digests_of(row["path"], row["names"]) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, _DIGESTED)


def _digests_of(path: str, names: list[str] | None) -> dict[str, object]:
    digests: list[tuple[str, str]] = []
    unread = None
    try:
        for name in names or ():
            digests.append((name, sha256_of(Path(path).with_name(name))))
    except OSError as error:
        unread = str(error)
    return {"path": path, "digests": digests, "unread": unread}


def _list(batches: Iterable[pa.RecordBatch], *, only_found: bool) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for group in batch.to_pylist():
            rows = list(_rows_of(group["folder"], group["base_offsets"], only_found=only_found))
            for start in range(0, len(rows), _ROWS):
                yield pa.RecordBatch.from_pylist(rows[start : start + _ROWS], _LISTED)


def _rows_of(
    folder: str, base_offsets: list[int], *, only_found: bool
) -> Iterator[dict[str, object]]:
    unlisted = None
    files: dict[int, list[dict[str, object]]] = {base: [] for base in base_offsets}
    try:
        for base_offset, name, size_bytes, mtime_ns in files_of_segments(
            Path(folder), base_offsets
        ):
            if only_found and not Path(folder, name).exists():
                continue
            files[base_offset].append(
                {"name": name, "size_bytes": size_bytes, "mtime_ns": mtime_ns}
            )
    except OSError as error:
        unlisted = str(error)
    for base_offset, found in files.items():
        yield {
            "folder": folder,
            "base_offset": base_offset,
            "files": found,
            "unlisted": unlisted,
        }
