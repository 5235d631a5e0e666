"""Of which topics and brokers there are segments in the tables, without Spark."""

from typing import NamedTuple

import pyarrow.compute as pc

from kafka_segments.storage.delta_rows import read_small_files
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.catalog import SEGMENTS

_MOST_BYTES = 1024**3
_MOST_FILES = 1_000
_MOST_ROWS = 10_000_000


class KnownLog(NamedTuple):
    """A topic on a broker of a cluster."""

    cluster: str
    topic: str
    broker_id: int


def logs_known(warehouse: str) -> set[KnownLog] | None:
    """Return the topics on each broker that have segments; None: only Spark can tell.

    ``warehouse``: URI of the tables.
    """
    found = read_small_files(
        join_uri(warehouse, SEGMENTS.name),
        (*KnownLog._fields, "vanished_at"),
        most_bytes=_MOST_BYTES,
        most_files=_MOST_FILES,
        most_rows=_MOST_ROWS,
    )
    if found is None:
        return None
    logs: set[KnownLog] = set()
    for rows in found.files:
        there = rows
        if "vanished_at" in rows.column_names:
            there = rows.filter(pc.is_null(rows["vanished_at"]))
        distinct = there.group_by(list(KnownLog._fields)).aggregate([])
        logs |= {KnownLog(**row) for row in distinct.to_pylist()}
    return logs
