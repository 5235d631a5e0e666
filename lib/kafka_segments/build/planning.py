"""The first step of a build: list the sources and hold them against table ``segments``."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import Column, DataFrame

from kafka_segments.build.decide import plan as decide
from kafka_segments.build.options import BuildOptions
from kafka_segments.errors import SourceError
from kafka_segments.sources import kinds
from kafka_segments.sources.broker_identity import lies_below, with_broker
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.few_rows import expect_many_rows
from kafka_segments.spark.held import held_if_few, held_if_many, in_one_task
from kafka_segments.spark.packing import Load
from kafka_segments.tables import columns as F
from kafka_segments.tables.catalog import SEGMENTS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.tables.upgrades import with_new_columns

_MOST_OF_FEW = Load(10_000, 16 * 1024**3)
"""Rows of a listing, and bytes in its segments, up to which a build works on few rows.

Beyond so many bytes the driver might have to hold much of what they tell of transactions.
"""
_OF_SEGMENTS = (
    *("source", "relative_path", "name", "size_bytes", "mtime_ns", "is_active"),
    "next_base_offset",
)
"""What a listing says of a segment beside its key; other columns are of other kinds of rows."""


class BuildWork(NamedTuple):
    """What a build has to do.

    Attributes:
        listed: the rows of the listing, with cluster and broker_id.
        listed_loads: how many rows and bytes the listing has, by kind.
        known: the rows of ``segments`` below the sources; None if there are none.
        planned: the segments of the listing with which something is to be done, as ``plan_scan``
            marks them.
        load: the segments to be read, and their bytes.
        rescanned: how many of these are known.
        retouched: how many segments became or ceased to be the active one.
        vanished: the rows of ``segments`` that were not found again; None if there are none.
        vanished_count: how many these are.
    """

    listed: DataFrame
    listed_loads: dict[str, Load]
    known: DataFrame | None
    planned: DataFrame
    load: Load
    rescanned: int = 0
    retouched: int = 0
    vanished: DataFrame | None = None
    vanished_count: int = 0

    @property
    def to_scan(self) -> int:
        """The number of segments to be read."""
        return self.load.segments

    def listed_count(self, *of_kinds: str) -> int:
        """Return how many rows of some kinds the listing has."""
        return sum(self.listed_loads.get(kind, Load()).segments for kind in of_kinds)


def plan_build(
    warehouse: Warehouse, options: BuildOptions, *, now: Column, caches: ExitStack
) -> BuildWork:
    """List the sources, and decide which segments are read.

    Args:
        warehouse: has table ``segments``, or has no tables yet.
        options: what is asked for.
        now: the run's clock, as a timestamp.
        caches: unpersists at its end what is kept in memory.

    Raises:
        SourceError: a source cannot be listed.
    """
    listed, listed_loads = list_sources(
        warehouse.spark, options.sources, caches, follow_links=options.follow_links
    )
    if not _is_little(listed_loads, reads_all=not options.is_first_look):
        expect_many_rows(warehouse.spark)
    if kinds.UNLISTED in listed_loads:
        _refuse_missing_sources(listed)
    listed = in_one_task(listed)
    known = _known(warehouse, options)
    identify = with_broker(listed, cluster=options.cluster, broker_id=options.broker_id)
    listed = held_if_few(listed.transform(identify))
    found = listed.where(F.col("kind") == kinds.SEGMENT).select(*SEGMENT_KEYS, *_OF_SEGMENTS)
    if known is not None:
        work = _held_against(known, found, listed, options, now=now, caches=caches)
        if work is not None:
            return work._replace(listed_loads=listed_loads)
    return BuildWork(
        listed=listed,
        listed_loads=listed_loads,
        known=None,
        planned=found.transform(_plan_scan(None, options)),
        load=listed_loads.get(kinds.SEGMENT, Load()),
    )


def _held_against(
    known: DataFrame,
    found: DataFrame,
    listed: DataFrame,
    options: BuildOptions,
    *,
    now: Column,
    caches: ExitStack,
) -> BuildWork | None:
    """Return what is new, changed or gone since the table's rows; None if it has no rows."""
    unseen = listed.where(F.col("kind").isin(*kinds.UNSEEN))
    planned = found.transform(_plan_scan(known, options)).where(F.col("plan") != decide.SAME)
    planned = held_if_many(planned, caches)
    gone = held_if_many(known.transform(decide.gone(found, unseen)), caches)
    counted = {row["plan"]: row for row in decide.count_work(planned, gone, known).collect()}
    if decide.KNOWN not in counted:
        return None

    def count(plan: str, column: str) -> int:
        return counted[plan][column] or 0 if plan in counted else 0

    if decide.SCAN in counted or decide.RETOUCH in counted or decide.GONE in counted:
        planned = held_if_few(planned)
    vanished = None
    if decide.GONE in counted:
        vanished = held_if_few(known.transform(decide.vanished(gone, now=now)))
    return BuildWork(
        listed=listed,
        listed_loads={},
        known=known,
        planned=planned,
        load=Load(count(decide.SCAN, "segments"), count(decide.SCAN, "bytes")),
        rescanned=count(decide.SCAN, "known"),
        retouched=count(decide.RETOUCH, "segments"),
        vanished=vanished,
        vanished_count=count(decide.GONE, "segments"),
    )


def _is_little(listed: Mapping[str, Load], *, reads_all: bool) -> bool:
    rows = sum(load.segments for load in listed.values())
    size_bytes = listed.get(kinds.SEGMENT, Load()).bytes if reads_all else 0
    return rows <= _MOST_OF_FEW.segments and size_bytes <= _MOST_OF_FEW.bytes


def _plan_scan(known: DataFrame | None, options: BuildOptions) -> Transform:
    return decide.plan_scan(
        known,
        options=options.fingerprint_of_options(),
        full=options.full,
        is_first_look=options.is_first_look,
        needs_next=options.index_format.needs_next,
    )


def _refuse_missing_sources(listed: DataFrame) -> None:
    is_source = (F.col("kind") == kinds.UNLISTED) & (F.col("relative_path") == "")
    missing = listed.where(is_source).first()
    if missing is not None:
        raise SourceError(missing["source"], missing["reason"])


def _known(warehouse: Warehouse, options: BuildOptions) -> DataFrame | None:
    if not warehouse.version(SEGMENTS):
        return None
    rows = warehouse.read(SEGMENTS).transform(with_new_columns(SEGMENTS))
    return rows.where(lies_below(F.col("path"), options.sources))
