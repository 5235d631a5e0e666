"""The first step of a build: list the sources and compare the list with table ``segments``."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.derived.configs import with_topic_configs
from kafka_segments.engine.derived.topic_sizes import SIZES
from kafka_segments.engine.frames.driver_rows import are_few, as_arrow
from kafka_segments.engine.frames.engines import (
    collected_if_few,
    expect,
    in_one_task,
    persisted_if_many,
)
from kafka_segments.engine.frames.local_rows import frame_of_rows
from kafka_segments.engine.limits import Load, Work
from kafka_segments.engine.sources.broker_identity import lies_below, with_broker
from kafka_segments.engine.sources.list import (
    ListedInDriver,
    list_in_driver,
    list_on,
    list_rest,
    listed_frame,
    sources_without_segments,
)
from kafka_segments.engine.sources.missing import Lost, refuse_lost
from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.engine.tables.upgrades import with_new_columns
from kafka_segments.errors import SourceError
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.stores import store_of
from kafka_segments.verbs.scan.decide import plan as decide
from kafka_segments.verbs.scan.decide.unchanged import (
    COMPARED,
    Identity,
    of_logs,
    without_unchanged,
)
from kafka_segments.verbs.scan.decide.unchanged import lies_below as lies_below_in_driver
from kafka_segments.verbs.scan.lost_notes import with_lost_notes
from kafka_segments.verbs.scan.options import BuildOptions

_OF_SEGMENTS = (
    *("source", "relative_path", "name", "size_bytes", "mtime_ns", "is_active"),
    "next_base_offset",
)
"""The columns of a listing, beside the key, that are used of a segment's row."""
_READ_OF_KNOWN = ("index_format", "checked", "size_bytes", "last_modified_ms", "damage")


class BuildWork(NamedTuple):
    """What a build has to do.

    Attributes:
        listed: the rows of the listing, with cluster and broker_id.
        listed_loads: how many rows and bytes the listing has, by kind.
        known: the rows of ``segments`` below the sources; None if there are none.
        planned: the segments of the listing with which something is to be done, as ``plan_scan``
            marks them.
        load: the segments to be read, and their bytes.
        retouched: how many segments became or ceased to be the active one.
        vanished: the rows of ``segments`` that were not found again; None if there are none.
        vanished_count: how many these are.
        empty_sources: those below which no segment was found.
    """

    listed: DataFrame
    listed_loads: dict[str, Load]
    known: DataFrame | None
    planned: DataFrame
    load: Load
    retouched: int = 0
    vanished: DataFrame | None = None
    vanished_count: int = 0
    empty_sources: tuple[str, ...] = ()

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
        VanishedError: below one more is gone than the options allow.
    """
    work = _Planner(warehouse, options, now, caches).plan()
    if work.vanished is not None and work.known is not None:
        counted = decide.count_lost(work.known, work.vanished, work.listed, options.sources)
        lost = (Lost(**row.asDict()) for row in counted.collect())
        refuse_lost(lost, most_percent=options.most_vanished, what="segments")
    return work


class _Unlike(NamedTuple):
    """A listing, its rows that differ from table ``segments``, and the table's rows for them."""

    listing: ListedInDriver
    listed: pa.Table
    known: DataFrame


class _Planner(NamedTuple):
    """What the steps of ``plan_build`` share: its arguments."""

    warehouse: Warehouse
    options: BuildOptions
    now: Column
    caches: ExitStack

    def plan(self) -> BuildWork:
        """Return what a build has to do, however much has vanished."""
        listing = list_in_driver(
            self.options.sources,
            follow_links=self.options.follow_links,
            finishes_swaps=self.options.finishes_swaps,
        )
        unlike = self._without_unchanged(listing)
        if unlike is not None:
            return self._planned_of_few(unlike)
        listed, loads = list_rest(self.warehouse.spark, listing, self.caches)
        self._expect(loads)
        if kinds.UNLISTED in loads:
            _refuse_missing_sources(listed)
        listed = self._identified(listed)
        found = self._segments_of(listed)
        known = self._rows_below() if self.warehouse.version(SEGMENTS) else None
        empty = sources_without_segments(self.options.sources, listing, listed)
        if known is not None:
            plan = self._compared(known, found, listed)
            if decide.KNOWN in plan.counted:
                work = plan.work(listed, loads, known, now=self.now)
                return work._replace(empty_sources=empty)
        return BuildWork(
            listed=listed,
            listed_loads=loads,
            known=None,
            planned=found.transform(self._plan_scan(None)),
            load=loads.get(kinds.SEGMENT, Load()),
            empty_sources=empty,
        )

    def _without_unchanged(self, listing: ListedInDriver) -> _Unlike | None:
        """Leave out the segments that are as ``segments`` has them; None: Spark is to find them.

        On a local disk the driver lists a larger tree than elsewhere, if the table has as many
        rows.
        """
        options = self.options
        if options.full:
            return None
        asked = (*COMPARED, *_READ_OF_KNOWN)
        found = self.warehouse.columns_in_driver(SEGMENTS, asked, beside_files=True)
        if found is None or len(found[1]) < len(asked):
            return None
        rows, columns = found
        is_below = lies_below_in_driver(rows["path"], options.sources)
        if not pc.all(is_below).as_py():
            rows = rows.filter(is_below)
        are_local = all(store_of(source).is_local for source in options.sources)
        if listing.left and are_local and len(rows) > len(listing.rows):
            more = 2 * len(rows) - len(listing.rows)
            listing = list_on(listing, most_rows=more)
        if listing.left:
            return None
        unlike = without_unchanged(
            listing.rows,
            rows,
            options=options.fingerprint_in_words,
            needs_next=options.index_format.needs_next,
            identity=Identity(options.cluster, options.broker_id),
        )
        if not unlike.same or not are_few(unlike.listed, unlike.known):
            return None
        known = frame_of_rows(self.warehouse.spark, unlike.known, columns)
        return _Unlike(listing, unlike.listed, known)

    def _planned_of_few(self, unlike: _Unlike) -> BuildWork:
        """Plan a build of which all but few segments are as ``segments`` has them.

        Where nothing is to be done, the other segments are not looked at. Else Spark gets all
        segments of the logs in which something has changed, and the whole rows of ``segments``.
        """
        loads = unlike.listing.loads()
        listed = self._identified(listed_frame(self.warehouse.spark, unlike.listed))
        if kinds.UNLISTED in loads:
            _refuse_missing_sources(listed)
        plan = self._compared(unlike.known, self._segments_of(listed), listed)
        known = unlike.known
        if not plan.is_needless:
            plan = plan._replace(gone=collected_if_few(plan.gone))
            changed = [as_arrow(plan.planned), as_arrow(plan.gone)]
            listed_segments = loads.get(kinds.SEGMENT, Load())
            self._expect(loads | {kinds.SEGMENT: listed_segments._replace(bytes=plan.load.bytes)})
            rows = of_logs(unlike.listing.rows, changed)
            listed = self._identified(listed_frame(self.warehouse.spark, rows))
            known = self._rows_below()
        empty = sources_without_segments(self.options.sources, unlike.listing, listed)
        work = plan.work(listed, loads, known, now=self.now)
        return work._replace(empty_sources=empty)

    def _expect(self, loads: Mapping[str, Load]) -> None:
        """Note how much there is to list, to read and to write."""
        whole = _whole_load(loads, reads_all=not self.options.is_first_look)
        expect(self.warehouse.spark, Work.BUILD, whole)

    def _identified(self, listed: DataFrame) -> DataFrame:
        listed = in_one_task(listed)
        identify = with_broker(
            listed, cluster=self.options.cluster, broker_id=self.options.broker_id
        )
        identified = collected_if_few(listed.transform(identify))
        return collected_if_few(with_lost_notes(self.warehouse, identified))

    def _segments_of(self, listed: DataFrame) -> DataFrame:
        """Return the segments of a listing, with their topics' index settings if these vary."""
        sizes = self.options.sizes
        found = listed.where(F.col("kind") == kinds.SEGMENT).select(*SEGMENT_KEYS, *_OF_SEGMENTS)
        if sizes is None or not sizes.vary:
            return found
        return found.transform(with_topic_configs(self.warehouse.spark, sizes.configs, SIZES))

    def _compared(self, known: DataFrame, found: DataFrame, listed: DataFrame) -> "_Plan":
        """Return what is new, changed or gone since the rows of ``segments``, ``known``."""
        unseen = listed.where(F.col("kind").isin(*kinds.UNSEEN))
        planned = found.transform(self._plan_scan(known)).where(F.col("plan") != decide.SAME)
        planned = persisted_if_many(planned, self.caches)
        gone = persisted_if_many(known.transform(decide.gone(found, unseen)), self.caches)
        counted = {row["plan"]: row for row in decide.count_work(planned, gone, known).collect()}
        plan = _Plan(planned, gone, counted)
        return plan if plan.is_needless else plan._replace(planned=collected_if_few(planned))

    def _plan_scan(self, known: DataFrame | None) -> Transform:
        return decide.plan_scan(
            known,
            options=self._options_in_words(),
            full=self.options.full,
            is_first_look=self.options.is_first_look and not self.options.makes_anew,
            needs_next=self.options.index_format.needs_next,
        )

    def _options_in_words(self) -> Column | str:
        """Return what fingerprints say of the options, by the columns of ``_segments_of``."""
        in_words = self.options.fingerprint_in_words
        if isinstance(in_words, str):
            return in_words
        before, after = self.options.fingerprint_around
        return F.concat_ws("/", F.lit(before), *SIZES, F.lit(after))

    def _rows_below(self) -> DataFrame:
        """Return the rows of ``segments`` that lie below the sources."""
        rows = self.warehouse.read(SEGMENTS).transform(with_new_columns(SEGMENTS))
        rows = rows.where(lies_below(F.col("path"), self.options.sources))
        return rows.dropDuplicates([*SEGMENT_KEYS]) if self.options.makes_anew else rows


class _Plan(NamedTuple):
    """What is new, changed or gone since the rows of ``segments``.

    Attributes:
        planned: the segments of the listing with which something is to be done.
        gone: the keys of those that were not found again.
        counted: the rows of ``count_work``, by plan.
    """

    planned: DataFrame
    gone: DataFrame
    counted: dict[str, Row]

    @property
    def is_needless(self) -> bool:
        """Whether nothing is to be done."""
        return not {decide.SCAN, decide.RETOUCH, decide.GONE} & self.counted.keys()

    @property
    def load(self) -> Load:
        """The segments to be read, and their bytes."""
        return Load(self._count(decide.SCAN, "segments"), self._count(decide.SCAN, "bytes"))

    def _count(self, plan: str, column: str) -> int:
        return self.counted[plan][column] or 0 if plan in self.counted else 0

    def work(
        self, listed: DataFrame, loads: dict[str, Load], known: DataFrame, *, now: Column
    ) -> BuildWork:
        """Return what a build has to do; ``known``: the rows of ``segments``."""
        vanished = None
        if decide.GONE in self.counted:
            vanished = collected_if_few(known.transform(decide.vanished(self.gone, now=now)))
        return BuildWork(
            listed=listed,
            listed_loads=loads,
            known=known,
            planned=self.planned,
            load=self.load,
            retouched=self._count(decide.RETOUCH, "segments"),
            vanished=vanished,
            vanished_count=self._count(decide.GONE, "segments"),
        )


def _whole_load(listed: Mapping[str, Load], *, reads_all: bool) -> Load:
    """Return how much was listed, and the bytes of it that are read: by first looks hardly any."""
    rows = sum(load.segments for load in listed.values())
    return Load(rows, listed.get(kinds.SEGMENT, Load()).bytes if reads_all else 0)


def _refuse_missing_sources(listed: DataFrame) -> None:
    is_source = (F.col("kind") == kinds.UNLISTED) & (F.col("relative_path") == "")
    missing = listed.where(is_source).first()
    if missing is not None:
        raise SourceError(missing["source"], missing["reason"])
