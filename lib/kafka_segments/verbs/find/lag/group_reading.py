"""Read the records about one group in each cluster, and say what was not read."""

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from math import inf
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.group_offsets import (
    groups_not_known,
    may_hold,
    offsets_read,
    unread_partitions,
)
from kafka_segments.engine.derived.internal_current import group_of_key
from kafka_segments.engine.derived.lost_records import as_read, with_unread_until
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.lag.decide.facts import GroupRecords
from kafka_segments.verbs.find.lag.group_records import Doubted, Put, Record, put_in_order
from kafka_segments.verbs.find.lag.offsets_topic import no_offsets
from kafka_segments.verbs.find.lag.tasks import read_commits, read_group
from kafka_segments.verbs.find.search.log_tables import READING, LogChoice, LogTables

_SEGMENT = (
    *("cluster", "partition", "path", "base_offset", "next_offset"),
    *("record_count", "min_timestamp_ms", "doubt", "lost", "unread_until"),
)
_DOUBTED = ("offset", "timestamp_ms", "kind", "key_json", "contradicted")
_RECORD = ("offset", "timestamp_ms", "producer_id", "control_type", "key", "value")


class GroupRead(NamedTuple):
    """What a cluster's partition of ``__consumer_offsets`` has of a group."""

    cluster: str
    partition: int
    records: GroupRecords


def read_clusters(
    warehouse: Warehouse, cluster: str | None, group: str, caches: ExitStack
) -> list[GroupRead]:
    """Read the records about a group in each cluster that has some; say what was not read.

    Raises:
        UsageError: the tables have no segments of ``__consumer_offsets``, or no such group.
    """
    choice = LogChoice(topics=(OFFSETS_TOPIC,), cluster=cluster)
    also = (*READING, "min_timestamp_ms")
    tables = LogTables(warehouse, choice, caches, also=also)
    replicas = computed_once(tables.coordinators(), caches)
    if replicas.isEmpty():
        raise no_offsets(warehouse.root)
    as_they_were_read = replicas.transform(as_read)
    counts = offsets_read(warehouse, as_they_were_read)
    tell_not_known(unread_partitions(warehouse, as_they_were_read, cluster=cluster, groups=[group]))
    logs = replicas.select(*LOG_KEYS, "doubt", "lost")
    joined = tables.segments_as_built().join(logs, list(LOG_KEYS), how="inner")
    joined = joined.transform(with_unread_until)
    segments = computed_once(joined.where(may_hold(warehouse, [group], "partition")), caches)
    kept = computed_once(segments.transform(read_group(group)), caches)
    doubted = _doubted(tables, group, logs)
    by_log: dict[tuple[str, int], list[Row]] = {}
    for row in segments.select(*_SEGMENT).orderBy("base_offset").collect():
        by_log.setdefault((row["cluster"], row["partition"]), []).append(row)
    read = [
        GroupRead(*log, _records(kept, rows, doubted.get(log, ())))
        for log, rows in sorted(by_log.items())
    ]
    found = [one for one in read if one.records.is_there]
    if not found:
        named = segments.transform(read_commits).where(F.col("group_id").isNotNull())  # no markers
        names = {row[0] for row in named.select("group_id").distinct().collect()}
        tell_not_known(groups_not_known(warehouse.root, [group], names, counts))
    return found


def _doubted(
    tables: LogTables, group: str, logs: DataFrame
) -> dict[tuple[str, int], list[Doubted]]:
    """Return the group's keys that copies contradict each other in, by cluster and partition."""
    found: dict[tuple[str, int], list[Doubted]] = {}
    if tables.contradicted is None:
        return found
    keys = tables.contradicted.keys.join(logs.select(*LOG_KEYS), list(LOG_KEYS), "left_semi")
    of_group = keys.where(group_of_key() == group).orderBy("offset")
    for row in of_group.select("cluster", "partition", *_DOUBTED).collect():
        offset, timestamp_ms, kind, key_json, why = (row[name] for name in _DOUBTED)
        one = Doubted(offset, timestamp_ms, kind, json.loads(key_json), why)
        found.setdefault((row["cluster"], row["partition"]), []).append(one)
    return found


def _records(kept: DataFrame, segments: Sequence[Row], doubted: Sequence[Doubted]) -> GroupRecords:
    """Return what a log's segments have of the group; they are in order."""
    here = kept.where(F.col("path").isin(*(row["path"] for row in segments)))
    errors = here.where(F.col("error").isNotNull())
    sound = here.where(F.col("error").isNull())
    of_group = sound.where(F.col("control_type").isNull())
    producers = of_group.where(F.col("producer_id").isNotNull()).select("producer_id").distinct()
    markers = sound.where(F.col("control_type").isNotNull())
    ended = markers.join(F.broadcast(producers), "producer_id", how="left_semi")
    rows = of_group.select(*_RECORD).unionByName(ended.select(*_RECORD)).orderBy("offset")
    put = put_in_order((Record(*row) for row in stream_rows(rows)), doubted)
    lost_until, lost_why = _lost(segments, errors.collect(), put)
    complete_from, complete_ms = _complete_from(segments)
    return GroupRecords(
        put.commits, put.pending, put.states, complete_from, complete_ms, lost_until, lost_why
    )


def _lost(segments: Sequence[Row], errors: Iterable[Row], put: Put) -> tuple[float | None, str]:
    """Return up to which offset something could not be read, and why; None: all could be."""
    lost: list[tuple[float, str]] = [(float(offset), why) for offset, why in put.problems]
    ends = {row["path"]: row["unread_until"] for row in segments}
    for row in errors:
        until = row["offset"] if row["offset"] is not None else ends[row["path"]]
        if until is not None:
            lost.append((float(until), f"{row['path']}: {row['error']}"))
    lost += {(float(row["lost"]["until"]), row["lost"]["why"]) for row in segments if row["lost"]}
    doubts = [(inf, row["doubt"].removeprefix("not known: ")) for row in segments if row["doubt"]]
    tell_not_known(f"not known: {OFFSETS_TOPIC}: {why}" for _, why in lost)
    return max((*lost, *doubts), default=(None, ""))


def _complete_from(segments: Sequence[Row]) -> tuple[int | None, int | None]:
    """Return from which offset on, and time, nothing was compacted away; None: nowhere."""
    found: Row | None = None
    following: int | None = None
    for row in reversed(segments):
        count, first, behind = row["record_count"], row["base_offset"], row["next_offset"]
        is_whole = count is not None and behind is not None and behind - first == count
        if not is_whole or (following is not None and behind != following):
            break
        found, following = row, first
    if found is None:
        return None, None
    return found["base_offset"], found["min_timestamp_ms"]
