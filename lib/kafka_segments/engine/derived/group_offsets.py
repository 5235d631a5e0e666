"""Which partitions of ``__consumer_offsets`` the tables have, and how many a cluster has."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.cluster_names import lines_of_clusters
from kafka_segments.engine.tables.catalog import METADATA_PARTITIONS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.missing import missing_name
from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.consumer_groups import (
    OffsetsRead,
    group_partition,
    partitions_by_groups,
    unread_partition,
)
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.kafka.text.plain_text import first_of

_OF_LOG = ("cluster", "partition", "log_start_offset", "doubt", "lost")
_MOST_NAMED = 8
_MOST_GROUPS = 1000
_ADD = (
    "{kept} in it may be missing here; add the disk of a broker that has it as --source of"
    " `kafka-segments build --internals`"
)


def offsets_read(
    tables: Warehouse, logs: DataFrame, topic: str = OFFSETS_TOPIC
) -> list[OffsetsRead]:
    """Return what was read as a whole of each cluster's ``__consumer_offsets``, or of ``topic``.

    Needs: ``logs``: as ``unread_partitions``.
    """
    counts = _partition_counts(tables, topic)
    read: dict[str, set[int]] = {}
    for row in logs.select(*_OF_LOG).distinct().collect():
        found = read.setdefault(row["cluster"], set())
        if next(_not_whole(topic, row.asDict()), None) is None:
            found.add(row["partition"])
    return [OffsetsRead(frozenset(found), counts.get(name)) for name, found in read.items()]


def _partition_counts(tables: Warehouse, topic: str) -> dict[str, int]:
    """Return how many partitions a topic has in each cluster whose metadata names it."""
    if tables.version(METADATA_PARTITIONS) is None:
        return {}
    held = tables.read(METADATA_PARTITIONS).where("until_offset IS NULL")
    of_topic = held.where(F.col("topic") == topic)
    rows = of_topic.groupBy("cluster").agg(F.max("partition")).collect()
    return {cluster: last + 1 for cluster, last in rows}


def may_hold(tables: Warehouse, groups: Iterable[str], partition: str) -> Column:
    """Tell whether a partition of ``__consumer_offsets`` may hold one of some groups.

    Where no metadata says how many partitions a cluster has, any may.

    Needs: cluster, and the partition's number in column ``partition``.
    """
    asked, may = tuple(groups), F.lit(False)
    counts = _partition_counts(tables, OFFSETS_TOPIC)
    for cluster, count in counts.items():
        named = {group_partition(group, count) for group in asked}
        may |= (F.col("cluster") == cluster) & F.col(partition).isin(*named)
    return may | ~F.col("cluster").isin(*counts)


def unread_partitions(
    tables: Warehouse,
    logs: DataFrame,
    topic: str = OFFSETS_TOPIC,
    *,
    cluster: str | None = None,
    groups: Collection[str] = (),
    kept: str = "groups",
    seen: Callable[[], DataFrame] | None = None,
) -> list[str]:
    """Return a line for each partition of a coordinator's topic that was not read as a whole.

    Of several clusters each line names its own.

    Needs: ``logs``: cluster, partition, log_start_offset, doubt (why the log does not answer; null:
        it does) and lost (why records are missing in it; null: none are) of logs that were read.
        ``cluster``: of this one alone. ``groups``: only of the partitions of these; empty: of all.
        ``kept``: what the topic's records are about. ``seen``: gives cluster, offsets_partition and
        group_id of records, read only where no metadata says how many partitions there are, as
        groups may tell it by where they lie.
    """
    rows = [row.asDict() for row in logs.select(*_OF_LOG).distinct().collect()]
    counts = _partition_counts(tables, topic)
    if seen is not None and not groups and not {row["cluster"] for row in rows} <= counts.keys():
        counts = {**_counts_by_groups(seen(), rows), **counts}
    asked = [
        name
        for name in sorted({*counts, *(row["cluster"] for row in rows)})
        if cluster in (None, name)
    ]
    lines = (
        (name, line)
        for name in asked
        for line in partitions_not_read(
            topic, [row for row in rows if row["cluster"] == name], counts.get(name), groups, kept
        )
    )
    return lines_of_clusters(lines, asked)


def _counts_by_groups(seen: DataFrame, logs: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many partitions there are in each cluster whose groups tell it."""
    last: dict[str, int] = {}
    for log in logs:
        last[log["cluster"]] = max(last.get(log["cluster"], 0), log["partition"])
    names = ("cluster", "offsets_partition", "group_id")
    some = seen.where("group_id != ''").select(*names).distinct().limit(_MOST_GROUPS)
    places: dict[str, list[tuple[int, str]]] = {}
    for cluster, partition, group in some.collect():
        places.setdefault(cluster, []).append((partition, group))
    told = {
        name: partitions_by_groups(places[name], least=last.get(name, 0) + 1) for name in places
    }
    return {name: count for name, count in told.items() if count is not None}


def partitions_not_read(
    topic: str,
    logs: Iterable[Mapping[str, Any]],
    count: int | None,
    groups: Collection[str] = (),
    kept: str = "groups",
) -> Iterator[str]:
    """Yield a line for each partition of a coordinator's topic that was not read as a whole.

    1. A partition that the metadata names, and of which there is no log, was not read. Without
       metadata a topic has at least as many partitions as by default.
    2. A log that is in doubt may lack records.
    3. ``__consumer_offsets`` is compacted alone, and so begins at offset 0: what is before a later
       start is missing.
    4. A log may have lost records between others (``lost_records``).

    Args:
        topic: Of a coordinator.
        logs: partition, log_start_offset, doubt and lost of the logs of one cluster.
        count: Partitions that the cluster's metadata names; None: it is not at hand.
        groups: Only of the partitions that these are in; empty: of all.
        kept: What the topic's records are about.
    """
    add = _ADD.format(kept=kept)
    found = {log["partition"]: log for log in logs}
    read = OffsetsRead(frozenset(found), count)
    every = range(read.partitions)
    named = {group_partition(group, read.partitions) for group in groups}
    asked = sorted(named) if groups and count is not None else every
    unread = [number for number in asked if number not in found]
    if unread and count is not None:
        names = first_of((f"{topic}-{number}" for number in unread), _MOST_NAMED)
        yield f"not known: {names}: no log was read: {add}"
    elif unread and not groups:  # of those that are asked for ``groups_not_known`` tells
        yield (
            f"not known: of {topic} {len(found)} partitions were read, and no metadata says how"
            f" many there are: {kept} of others are missing here; read all brokers' disks, and a"
            " controller's, with `kafka-segments build --internals`"
        )
    for number in sorted(found.keys() & set(asked)):
        for why in _not_whole(topic, found[number]):
            is_doubt = why == found[number]["doubt"]
            name = f"{topic}-{number}"
            yield f"{name}: {why}" if is_doubt else f"not known: {name}: {why}: {add}"


def _not_whole(topic: str, log: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a log was not read as a whole; see ``partitions_not_read``."""
    if log["doubt"] is not None:
        yield log["doubt"]
        return
    if topic == OFFSETS_TOPIC and log["log_start_offset"] > 0:
        yield f"it begins at offset {log['log_start_offset']}, its first segments are missing"
    if log["lost"] is not None:
        yield log["lost"]


def groups_not_known(
    warehouse: str, groups: Iterable[str], known: Iterable[str], read: Iterable[OffsetsRead]
) -> Iterator[str]:
    """Yield a line for each group that is not among the known, but may lie in what was not read.

    ``known``: those whose records were read; ``""`` among them: some could not be.

    Raises:
        UsageError: another group that is not there.
    """
    there, clusters = set(known), list(read)
    for group in groups:
        if group in there:
            continue
        why = unread_partition(group, clusters)
        if why is None and "" in there:
            why = "not known: not all records of __consumer_offsets can be read"
        if why is None:
            raise UsageError(missing_name(warehouse, "group", group, there))
        yield f"group {group}: {why}"
