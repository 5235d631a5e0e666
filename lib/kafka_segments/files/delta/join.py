"""Join the files of a small plain Delta table on this machine, as OPTIMIZE does, without Spark.

Each append or merge adds a file, and each later one opens all of them.

Source: delta-io/delta PROTOCOL.md, Add File and Remove File (``dataChange``).
"""

import time
from contextlib import suppress

import pyarrow as pa

from kafka_segments.files.delta.append import commit_written, write_rows
from kafka_segments.files.delta.commit import commit_info
from kafka_segments.files.delta.merge import removed_file
from kafka_segments.files.delta.metadata import TableMetadata
from kafka_segments.files.delta.rows import SmallTable


def commit_join(uri: str, table: TableMetadata, read: SmallTable, rows: pa.Table) -> None:
    """Commit one file with all rows in the place of those that were read; no row changes.

    Where another run committed first, the table stays as that run left it.

    Raises:
        OSError: the disk refused; the table is as it was.
    """
    add = {**write_rows(uri, table, rows), "dataChange": False}
    now_ms = time.time_ns() // 1_000_000
    removed = [
        {"remove": {**removed_file(*added, len(file), now_ms), "dataChange": False}}
        for added, file in zip(read.added, read.files, strict=True)
    ]
    metrics = {"numAddedFiles": "1", "numRemovedFiles": str(len(removed))}
    asked = {"predicate": "[]", "zOrderBy": "[]"}
    said = commit_info("OPTIMIZE", asked, read_version=table.version, metrics=metrics)
    with suppress(FileExistsError):
        commit_written(uri, table.version + 1, said, [{"add": add}], removed)
