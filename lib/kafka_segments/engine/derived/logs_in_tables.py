"""Of which topics and brokers there are segments in the tables, without Spark."""

from typing import Any, NamedTuple, TypeVar

import pyarrow.compute as pc

from kafka_segments.engine.derived.replicas import is_of_another_topic
from kafka_segments.engine.limits import LOGS_BYTES, SEGMENT_FILES, SEGMENT_LOG_BYTES, SEGMENT_ROWS
from kafka_segments.engine.tables.catalog import LOGS, METADATA_PARTITIONS, SEGMENTS
from kafka_segments.files.delta.health import version_if_there
from kafka_segments.files.delta.rows import read_small_files, read_small_table
from kafka_segments.files.storage.uris import join_uri

_Row = TypeVar("_Row", bound=Any)


class KnownLog(NamedTuple):
    """A topic on a broker of a cluster."""

    cluster: str
    topic: str
    broker_id: int


class KnownPartition(NamedTuple):
    """A partition on a broker of a cluster."""

    cluster: str
    topic: str
    broker_id: int
    partition: int


def logs_known(warehouse: str) -> set[KnownLog] | None:
    """Return the topics on each broker that have segments; None: only Spark can tell.

    ``warehouse``: URI of the tables.
    """
    return _distinct(warehouse, KnownLog)


def logs_of_topics(warehouse: str) -> set[KnownLog] | None:
    """Return the logs of ``logs_known`` for which their topic's settings hold.

    A topic of whose logs on a broker all are left over from a topic of its name that was deleted
    is not among them, see ``replicas.left_over``.
    """
    known, named = logs_known(warehouse), _named_ids(warehouse)
    if not known or not named:
        return None if named is None else known
    columns = (*KnownLog._fields, "topic_id")
    logs = read_small_table(join_uri(warehouse, LOGS.name), columns, most_bytes=LOGS_BYTES)
    if logs is None:
        return None
    of_topics: set[KnownLog] = set()
    others: set[KnownLog] = set()
    for row in logs:
        log = KnownLog(*(row[name] for name in KnownLog._fields))
        is_other = is_of_another_topic(row["topic_id"], named.get((log.cluster, log.topic)))
        (others if is_other else of_topics).add(log)
    return known - (others - of_topics)


def _named_ids(warehouse: str) -> dict[tuple[str, str], str] | None:
    """Return the topic ids that the metadata gives topics last; None: only Spark can tell."""
    table = join_uri(warehouse, METADATA_PARTITIONS.name)
    if version_if_there(table) is None:
        return {}
    columns = ("cluster", "topic", "topic_id", "until_offset")
    rows = read_small_table(table, columns, most_bytes=LOGS_BYTES)
    if rows is None:
        return None
    held = [row for row in rows if row["until_offset"] is None]
    return {(row["cluster"], row["topic"]): row["topic_id"] for row in held}


def partitions_known(warehouse: str) -> set[KnownPartition] | None:
    """Return the partitions on each broker that have segments, as ``logs_known`` does."""
    return _distinct(warehouse, KnownPartition)


def _distinct(warehouse: str, row_type: type[_Row]) -> set[_Row] | None:
    columns: tuple[str, ...] = row_type._fields
    found = read_small_files(
        join_uri(warehouse, SEGMENTS.name),
        (*columns, "vanished_at"),
        most_bytes=SEGMENT_LOG_BYTES,
        most_files=SEGMENT_FILES,
        most_rows=SEGMENT_ROWS,
    )
    if found is None:
        return None
    logs: set[_Row] = set()
    for rows in found.files:
        there = rows
        if "vanished_at" in rows.column_names:
            there = rows.filter(pc.is_null(rows["vanished_at"]))
        distinct = there.group_by(list(columns)).aggregate([])
        logs |= {row_type(**row) for row in distinct.to_pylist()}
    return logs
