"""What tables say of themselves before an answer from them is believed: builds, logs cut short."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from kafka_segments.engine.derived.replicas import cut_short, lost_logs
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.frames.driver_rows import with_values
from kafka_segments.engine.tables.catalog import LOG_DIRS, LOGS, RUNS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.files.delta.notes import OF_SOURCES
from kafka_segments.files.delta.table_versions import taken_back
from kafka_segments.files.storage.read_again import marks_of
from kafka_segments.files.storage.uris import lies_in
from kafka_segments.kafka.text.checkpoints import (
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    META_PROPERTIES,
)

_NAMED = ("topic", "partition", "log_dir", "cut_short")
_MOST_NAMED = 3
_OF_BOUNDS = (LOG_START_OFFSET, HIGH_WATERMARK)
Allowed = Mapping[str, Sequence[str | int]]


class AsBuilt(NamedTuple):
    """What the tables of a warehouse say of themselves.

    Attributes:
        builds_ms: when each source was built last, by itself or as a part of another source;
            none: no build is noted.
        altered: what somebody else took back of the tables since, see ``altered``.
        cut_examples: the first logs that lack their end, see ``cut_logs``.
        unread_examples: the first log directories of whose files some were not read, see
            ``unread_notes``.
    """

    builds_ms: list[int]
    altered: tuple[str, ...] = ()
    cut_examples: tuple[Row, ...] = ()
    unread_examples: tuple[Row, ...] = ()


def last_builds(tables: Warehouse) -> DataFrame:
    """Return when the last build of the same sources began: sources, built_ms (long)."""
    builds = tables.read(RUNS).where(F.col("command") == "build")
    return builds.groupBy("sources").agg(F.unix_millis(F.max("started_at")).alias("built_ms"))


def read_builds(tables: Warehouse) -> AsBuilt:
    """Ask the tables when they were built, and what somebody took back of them since.

    Raises:
        UsageError: the warehouse lacks table ``runs``.
        BrokenTableError: the table is not whole.
    """
    return _as_built(tables, {"builds": last_builds(tables).collect()})


def read_as_built(
    tables: Warehouse,
    topics: Sequence[str] = (),
    partition: int | None = None,
    *,
    has_starts: bool = True,
) -> AsBuilt:
    """Ask the tables when they were built and what they lack, by one query.

    ``topics``: those whose logs are asked about; empty: of all. ``partition``: the one of these
    that is asked about; None: all are. ``has_starts``: where logs begin is asked, too.

    Raises:
        UsageError: the warehouse lacks a table.
        BrokenTableError: a table is not whole.
    """
    named = {"topic": topics, "partition": () if partition is None else (partition,)}
    allowed: Allowed = {name: values for name, values in named.items() if values}
    files = _OF_BOUNDS if has_starts else (HIGH_WATERMARK,)
    found = collect_together(
        {
            "builds": last_builds(tables),
            "cut": cut_logs(tables, topics, partition),
            "unread": unread_notes(tables, allowed, files),
        }
    )
    return _as_built(tables, found)


def read_age(tables: Warehouse, allowed: Allowed) -> AsBuilt:
    """Ask the tables as ``read_as_built`` does, but not which logs lack their end.

    ``allowed``: of the logs that are asked about, the values of columns of their key.

    Raises:
        UsageError: the warehouse lacks a table.
        BrokenTableError: a table is not whole.
    """
    found = collect_together(
        {"builds": last_builds(tables), "unread": unread_notes(tables, allowed)}
    )
    return _as_built(tables, found)


def _as_built(tables: Warehouse, found: Mapping[str, list[Row]]) -> AsBuilt:
    builds = found["builds"]
    cut, unread = (tuple(found.get(name, ())) for name in ("cut", "unread"))
    return AsBuilt(built_ms(builds), altered(tables, builds), cut, unread)


def altered(tables: Warehouse, builds: Iterable[Row]) -> tuple[str, ...]:
    """Return in words what was taken back of the tables that the next build of a source mends.

    Somebody else did, as by DELETE or RESTORE, or what had been committed was lost.
    ``builds``: rows of ``last_builds``.

    Raises:
        SourceError: the marks of earlier builds cannot be listed.
    """
    sources = sorted({source for row in builds for source in row["sources"]})
    marked = marks_of(tables.root, sources).values()
    return tuple(dict.fromkeys([*marked, *taken_back(tables.root, OF_SOURCES)]))


def built_ms(builds: Iterable[Row]) -> list[int]:
    """Return of rows of ``last_builds`` what ``AsBuilt.builds_ms`` has."""
    built = [(source, row["built_ms"]) for row in builds for source in row["sources"]]
    return [max(moment for other, moment in built if lies_in(source, other)) for source, _ in built]


def cut_logs(
    tables: Warehouse, topics: Sequence[str] = (), partition: int | None = None
) -> DataFrame:
    """Return the first logs that lack their end, see ``cut_short`` and ``lost_logs``.

    ``topics``, ``partition``: see ``read_as_built``.

    Gives: topic, partition, log_dir, cut_short (why), logs (how many there are of them).
    """
    is_asked = F.col("topic").isin(*topics) if topics else F.lit(True)
    if partition is not None:
        is_asked &= F.col("partition") == partition
    of_segments = (*LOG_KEYS, "base_offset", "next_offset", "vanished_at")
    segments = tables.read(SEGMENTS, of_segments).where(is_asked)
    logs = tables.read(LOGS, (*LOG_KEYS, "high_watermark")).where(is_asked)
    last = F.max(F.coalesce("next_offset", "base_offset")).alias("next_offset")
    ends = segments.where(F.col("vanished_at").isNull()).groupBy(*LOG_KEYS).agg(last)
    cut = ends.transform(with_cut_short(tables)).where(F.col("cut_short").isNotNull())
    lost = logs.transform(lost_logs(segments)).withColumnRenamed("lost", "cut_short")
    lacking = cut.select(*_NAMED).unionByName(lost.select(*_NAMED))
    counted = lacking.withColumn("logs", F.count("*").over(Window.partitionBy(F.lit(0))))
    return counted.orderBy(*_NAMED).limit(_MOST_NAMED)


def unread_notes(
    tables: Warehouse, allowed: Allowed | None = None, files: Sequence[str] = _OF_BOUNDS
) -> DataFrame:
    """Return the first log directories whose checkpoints ``files`` were there and not read.

    So are those of which ``meta.properties`` does not say whose they are. A directory counts if it
    has a log that is asked about. ``allowed``: see ``read_age``.

    Gives: log_dir, problem (of its files), dirs (how many there are of them).
    """
    names = ("cluster", "broker_id", "log_dir")
    dirs = tables.read(LOG_DIRS, (*names, "problem"))
    by_topic = {name: values for name, values in (allowed or {}).items() if name not in names}
    logs = with_values(tables.read(LOGS, LOG_KEYS), by_topic)
    asked = with_values(logs, allowed or {}).select(*names)
    is_unread = reduce(or_, (F.col("problem").contains(file) for file in files))
    is_nameless = F.col("problem").contains(META_PROPERTIES)  # of any cluster and broker
    unread = dirs.where(is_unread & ~is_nameless).join(asked, list(names), how="left_semi")
    nameless = dirs.where(is_nameless).join(logs, list(names), how="left_semi")
    named = unread.unionByName(nameless).select("log_dir", "problem")
    counted = named.withColumn("dirs", F.count("*").over(Window.partitionBy(F.lit(0))))
    return counted.orderBy("log_dir", "problem").limit(_MOST_NAMED)


def with_cut_short(tables: Warehouse) -> Transform:
    """Return what adds ``cut_short`` to logs: why a log lacks its end; null: nothing tells so.

    Needs: the key of a log, next_offset (of its last segment).
    """
    known = tables.read(LOGS, (*LOG_KEYS, "high_watermark"))

    def transform(last: DataFrame) -> DataFrame:
        joined = last.join(known, list(LOG_KEYS), how="left")
        with_end = joined.withColumn("log_end_offset", F.col("next_offset"))
        told = with_end.withColumn("cut_short", cut_short(F.col("high_watermark")))
        return told.drop("high_watermark", "log_end_offset")

    return transform
