"""What a build would read, told without Spark where that can be.

The rules are those of ``scan.decide.plan`` and ``sources.broker_identity``; the tests hold both
against each other. A tree or a table too large for one process is left to Spark.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka_segments.engine.sources.missing import Lost, refuse_lost
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.errors import SourceError
from kafka_segments.files.delta.log import last_version
from kafka_segments.files.delta.rows import read_small_table
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.unread_notes import unread_in
from kafka_segments.files.folders.walk import walk_folders
from kafka_segments.files.storage.links import links_into
from kafka_segments.files.storage.uris import join_uri, lies_in
from kafka_segments.kafka.text.names import IN_LOG_DIR
from kafka_segments.verbs.scan.decide.unchanged import (
    Identity,
    OptionsInWords,
    fingerprint_columns,
)
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.summary import BuildSummary

_MOST_ROWS = 200_000
_MOST_BYTES = 64 * 1024 * 1024
_READ = (*SEGMENT_KEYS, "path", "fingerprint", "vanished_at")
_LOG_DIR = SEGMENT_KEYS.index("log_dir")
_IN_LOG_DIR = re.compile(IN_LOG_DIR)

Key = tuple[Any, ...]
"""The values of ``SEGMENT_KEYS``."""


class KnownSegment(NamedTuple):
    """What is compared of a row of table ``segments``."""

    path: str
    fingerprint: str | None
    has_vanished: bool


class Planned(NamedTuple):
    """What a build does with the segments of a listing, and with those known.

    Attributes:
        found: all of the listing.
        to_scan: those of them that are new or have changed.
        gone: those known that were not found again, and may not lie where nobody looked.
    """

    found: list[Listed]
    to_scan: list[Listed]
    gone: list[KnownSegment]


def plan_without_spark(warehouse: str, options: BuildOptions) -> BuildSummary | None:
    """Count what a build would read; None: only Spark can tell.

    Raises:
        SourceError: a source that cannot be listed.
        VanishedError: see ``plan_build``.
    """
    if options.is_first_look:  # what it leaves alone depends on more than fingerprints
        return None
    started = time.monotonic()
    known = _known(warehouse, options.sources)
    if known is None:
        return None
    walked = walk_folders(
        ((source, "") for source in options.sources),
        most_rows=_MOST_ROWS,
        follow_into=links_into(options.sources, follow=options.follow_links),
        finishes_swaps=options.finishes_swaps,
    )
    if walked.left:
        return None
    listed = [row for rows in walked.folders for row in rows]
    for row in listed:
        if row.kind == kinds.UNLISTED and not row.relative_path:
            raise SourceError(row.source, row.reason or "unknown reason")
    found, to_scan, gone = plan_in_driver(
        listed,
        known,
        options=options.fingerprint_in_words,
        needs_next=options.index_format.needs_next,
        identity=Identity(options.cluster, options.broker_id),
        full=options.full,
    )
    lost = _lost(known, gone, listed, options.sources)
    refuse_lost(lost, most_percent=options.most_vanished, what="segments")
    with_segments = {row.source for row in found}
    empty = tuple(source for source in options.sources if source not in with_segments)
    not_taken = sum(row.kind in kinds.NOT_TAKEN for row in listed)
    left_over, passed_over = (sum(row.kind == kind for row in listed) for kind in kinds.HARMLESS)
    unread = unread_in(listed)
    return BuildSummary(
        run_id="",
        segments_found=len(found),
        segments_scanned=len(to_scan),
        segments_unchanged=len(found) - len(to_scan),
        segments_vanished=len(gone),
        segments_damaged=0,
        segments_open=0,
        files_unrecognized=not_taken,
        files_left_over=left_over,
        files_passed_over=passed_over,
        bytes_scanned=sum(row.size_bytes or 0 for row in to_scan),
        findings=not_taken - left_over - passed_over + len(empty) + unread.places,
        seconds=time.monotonic() - started,
        seconds_by_step={},
        empty_sources=empty,
        unread=unread,
    )


def plan_in_driver(
    listed: Sequence[Listed],
    known: Mapping[Key, KnownSegment],
    *,
    options: OptionsInWords,
    needs_next: bool,
    identity: Identity,
    full: bool,
) -> Planned:
    """Decide as ``plan_scan`` and ``gone`` do, but not which rows are only to be retouched.

    Args:
        listed: rows of a listing, whole.
        known: the rows of ``segments`` below the sources, by key.
        options: what a fingerprint says of the options, of all or by cluster, broker id and topic.
        needs_next: whether the next segment's base offset counts like the size.
        identity: the cluster and the broker of all segments.
        full: whether all are read.
    """
    found = _found(listed, identity)
    before = {key: (row.path, row.fingerprint) for key, row in known.items()}
    names = fingerprint_columns(needs_next=needs_next)
    to_scan = [
        row
        for key, row in found
        if full or before.get(key) != (_path(row), _fingerprint(key, row, names, options))
    ]
    gone = _vanished(known, {key for key, _ in found}, listed)
    return Planned([row for _, row in found], to_scan, gone)


def _known(warehouse: str, sources: Sequence[str]) -> dict[Key, KnownSegment] | None:
    """Return by key the segments below the sources that earlier builds know."""
    table = join_uri(warehouse, "segments")
    if not last_version(table):
        return {}
    rows = read_small_table(table, _READ, most_bytes=_MOST_BYTES)
    if rows is None:
        return None
    return {
        tuple(row[key] for key in SEGMENT_KEYS): KnownSegment(
            row["path"], row["fingerprint"], row["vanished_at"] is not None
        )
        for row in rows
        if any(lies_in(row["path"], source) for source in sources)
    }


def _found(listed: Sequence[Listed], identity: Identity) -> list[tuple[Key, Listed]]:
    """Return the segments found with their keys, as ``with_broker`` completes them."""
    brokers = {
        row.log_dir: (row.meta.get("cluster_id"), row.meta.get("node_id"))
        for row in listed
        if row.kind == kinds.LOG_DIR and row.meta is not None
    }
    found = []
    for row in listed:
        if row.kind == kinds.SEGMENT:
            named, node = brokers.get(row.log_dir, (None, None))
            cluster = _first(identity.cluster, named, "")
            broker_id = _first(identity.broker_id, node, -1)
            key = (cluster, broker_id, row.log_dir, row.topic, row.partition, row.base_offset)
            found.append((key, row))
    return found


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _fingerprint(key: Key, row: Listed, names: Sequence[str], options: OptionsInWords) -> str:
    cluster, broker_id, _, topic, *_ = key
    parts = [str(value) for name in names if (value := getattr(row, name)) is not None]
    in_words = options if isinstance(options, str) else options(cluster, broker_id, topic)
    return "/".join([*parts, in_words])


def _vanished(
    known: Mapping[Key, KnownSegment], found: set[Key], listed: Sequence[Listed]
) -> list[KnownSegment]:
    """Return the known segments that are gone, but for those that may lie where none could look."""
    unseen = tuple(f"{_path(row)}/" for row in listed if row.kind in kinds.UNSEEN)
    return [
        row
        for key, row in known.items()
        if not row.has_vanished and key not in found and not f"{row.path}/".startswith(unseen)
    ]


def _lost(
    known: Mapping[Key, KnownSegment],
    gone: Sequence[KnownSegment],
    listed: Sequence[Listed],
    sources: Sequence[str],
) -> Iterator[Lost]:
    """Count as ``count_lost`` does."""
    folders = {_folder(_path(row)) for row in listed if row.kind == kinds.SEGMENT}
    lost = {row.path for row in gone if _folder(row.path) not in folders}
    before = {row.path: key[_LOG_DIR] for key, row in known.items() if not row.has_vanished}
    for source in sources:
        counts = (sum(lies_in(path, source) for path in paths) for paths in (before, lost))
        yield Lost(source, *counts)
    there = {row.log_dir for row in listed if row.kind == kinds.LOG_DIR}
    of_brokers = {path: at for path, at in before.items() if _IN_LOG_DIR.search(path)}
    counted = Counter(of_brokers.values())
    counted_lost = Counter(at for path, at in of_brokers.items() if path in lost)
    for log_dir, number in counted.items():
        if log_dir not in there and counted_lost[log_dir] == number:
            yield Lost(log_dir, number, number)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _path(row: Listed) -> str:
    root = "" if row.source == "/" else row.source
    return "/".join([root, *(part for part in (row.relative_path, row.name) if part)])
