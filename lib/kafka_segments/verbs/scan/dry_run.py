"""What a build would read, told without Spark where that can be.

The rules are those by which a build leaves out what has not changed (``decide.unchanged``); the
tests hold them against Spark's. A tree or a table too large for one process is left to Spark.
"""

import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kafka_segments.engine.limits import LISTED_IN_DRIVER
from kafka_segments.engine.sources.missing import Lost, refuse_lost
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.errors import SourceError
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.walk import walk_folders
from kafka_segments.files.storage.delta_log import last_version
from kafka_segments.files.storage.delta_rows import read_small_table
from kafka_segments.files.storage.links import links_into
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.scan.decide.unchanged import (
    Identity,
    PlannedHere,
    lies_below,
    plan_here,
)
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.summary import BuildSummary

_MOST_BYTES = 64 * 1024 * 1024
_READ = (*SEGMENT_KEYS, "path", "fingerprint", "vanished_at")
_LISTED = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "source", "relative_path", "name", "log_dir")),
        *(("topic", pa.string()), ("partition", pa.int32()), ("base_offset", pa.int64())),
        *(("size_bytes", pa.int64()), ("mtime_ns", pa.int64()), ("next_base_offset", pa.int64())),
        *(("is_active", pa.bool_()), ("reason", pa.string())),
        ("meta", pa.struct([("cluster_id", pa.string()), ("node_id", pa.int32())])),
    ]
)
_KNOWN = pa.schema(
    [
        *(("cluster", pa.string()), ("broker_id", pa.int32()), ("log_dir", pa.string())),
        *(("topic", pa.string()), ("partition", pa.int32()), ("base_offset", pa.int64())),
        *(("path", pa.string()), ("fingerprint", pa.string())),
        ("vanished_at", pa.timestamp("us", "UTC")),
    ]
)


def plan_without_spark(options: BuildOptions) -> BuildSummary | None:
    """Count what a build would read; None: only Spark can tell.

    Raises:
        SourceError: a source that cannot be listed.
        VanishedError: as of ``plan_build``.
    """
    if options.is_first_look:  # what it leaves alone depends on more than fingerprints
        return None
    started = time.monotonic()
    known = _known(options)
    listed = None if known is None else _listed(options)
    if known is None or listed is None:
        return None
    planned = plan_here(
        listed,
        known,
        options=options.fingerprint_in_words,
        needs_next=options.index_format.needs_next,
        identity=Identity(options.cluster, options.broker_id),
        full=options.full,
    )
    refuse_lost(_lost(known, planned, options), most_percent=options.most_vanished, what="segments")
    with_segments = set(planned.found["source"].unique().to_pylist())
    empty = tuple(source for source in options.sources if source not in with_segments)
    counts = Counter(listed["kind"].to_pylist())
    not_taken = sum(counts[kind] for kind in kinds.NOT_TAKEN)
    left_over, passed_over = (counts[kind] for kind in kinds.HARMLESS)
    return BuildSummary(
        run_id="",
        segments_found=len(planned.found),
        segments_scanned=len(planned.to_scan),
        segments_unchanged=len(planned.found) - len(planned.to_scan),
        segments_vanished=len(planned.gone),
        segments_damaged=0,
        segments_open=0,
        files_unrecognized=not_taken,
        files_left_over=left_over,
        files_passed_over=passed_over,
        bytes_scanned=pc.sum(planned.to_scan["size_bytes"]).as_py() or 0,
        findings=not_taken - left_over - passed_over + len(empty),
        seconds=time.monotonic() - started,
        seconds_by_step={},
        empty_sources=empty,
    )


def _listed(options: BuildOptions) -> pa.Table | None:
    """Return the rows of a listing of the sources; None: it is too large for one process."""
    walked = walk_folders(
        ((source, "") for source in options.sources),
        most_rows=LISTED_IN_DRIVER,
        follow_into=links_into(options.sources, follow=options.follow_links),
        finishes_swaps=options.finishes_swaps,
    )
    if walked.left:
        return None
    listed = [row for rows in walked.folders for row in rows]
    for row in listed:
        if row.kind == kinds.UNLISTED and not row.relative_path:
            raise SourceError(row.source, row.reason or "unknown reason")
    return pa.Table.from_pylist([row._asdict() for row in listed], _LISTED)


def _known(options: BuildOptions) -> pa.Table | None:
    """Return the segments below the sources that earlier builds know."""
    table = join_uri(options.warehouse, "segments")
    if not last_version(table):
        return _KNOWN.empty_table()
    rows = read_small_table(table, _READ, most_bytes=_MOST_BYTES)
    if rows is None:
        return None
    known = pa.Table.from_pylist(rows, _KNOWN)
    return known.filter(lies_below(known["path"], options.sources))


def _lost(known: pa.Table, planned: PlannedHere, options: BuildOptions) -> Iterator[Lost]:
    """Count as ``count_lost`` does."""
    folders = pc.unique(_folders(planned.found))
    gone = planned.gone
    lost = gone.filter(pc.invert(pc.is_in(_folders(gone), value_set=folders)))
    there = known.filter(pc.is_null(known["vanished_at"]))
    for source in options.sources:
        before, left = (
            pc.sum(lies_below(rows["path"], (source,))).as_py() or 0 for rows in (there, lost)
        )
        yield Lost(source, before, left)


def _folders(rows: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(rows["path"], r"/[^/]*$", "")
