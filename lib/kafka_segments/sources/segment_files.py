"""List the files of segments in the executors, one folder at a time."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_segments.spark.few_rows import map_few
from kafka_segments.spark.parallelism import default_parallelism
from kafka_segments.storage.durable_files import sha256_of
from kafka_segments.storage.set_aside import files_of_segments
from kafka_segments.tables import columns as F

_FILE = pa.struct([("name", pa.string()), ("size_bytes", pa.int64()), ("mtime_ns", pa.int64())])
_LISTED = pa.schema(
    [
        ("folder", pa.string()),
        ("base_offset", pa.int64()),
        ("files", pa.list_(_FILE)),
        ("unlisted", pa.string()),
        ("digests", pa.map_(pa.string(), pa.string())),
    ]
)
_ROWS = 1000


def with_segment_files(
    segments: DataFrame, *, has_digests: bool = False, only_found: bool = False
) -> DataFrame:
    """Add the files of every segment.

    Needs: path (of a local .log), base_offset. A path occurs once.
    Gives: the same, ``files``, ``unlisted`` (why the folder cannot be read; null if it can), and
        ``digests``: with ``has_digests`` the sha256 of each file by its name. With ``only_found``
        links that lead nowhere are left out, as a broker finds no file there.
    """
    folder = F.regexp_extract("path", "^(.*)/[^/]*$", 1)
    folders = segments.groupBy(folder.alias("folder")).agg(
        F.sort_array(F.collect_list("base_offset")).alias("base_offsets")
    )
    on_task = partial(_list, has_digests=has_digests, only_found=only_found)
    row_type = from_arrow_schema(_LISTED)
    threads = default_parallelism(segments.sparkSession) if has_digests else 1
    listed = map_few(folders, on_task, row_type, spread=has_digests, threads=threads)
    keys = ["_folder", "base_offset"]
    return (
        segments.withColumn("_folder", folder)
        .join(listed.withColumnRenamed("folder", "_folder"), keys, how="left")
        .drop("_folder")
    )


def _list(
    batches: Iterable[pa.RecordBatch], *, has_digests: bool, only_found: bool
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for group in batch.to_pylist():
            rows = list(
                _rows_of(
                    group["folder"],
                    group["base_offsets"],
                    has_digests=has_digests,
                    only_found=only_found,
                )
            )
            for start in range(0, len(rows), _ROWS):
                yield pa.RecordBatch.from_pylist(rows[start : start + _ROWS], _LISTED)


def _rows_of(
    folder: str, base_offsets: list[int], *, has_digests: bool, only_found: bool
) -> Iterator[dict[str, object]]:
    unlisted = None
    digests: dict[int, dict[str, str]] = {base: {} for base in base_offsets}
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
            if has_digests:
                digests[base_offset][name] = sha256_of(Path(folder, name))
    except OSError as error:
        unlisted = str(error)
    for base_offset, found in files.items():
        yield {
            "folder": folder,
            "base_offset": base_offset,
            "files": found,
            "unlisted": unlisted,
            "digests": list(digests[base_offset].items()) if has_digests else None,
        }
