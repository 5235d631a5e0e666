"""Read the records of logs, all cores at once, and keep what was asked for."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kafka_segments.console.grouping import alike, without_numbers
from kafka_segments.console.local_folders import nearest_names
from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.errors import FileChangedError, UnreadableObjectError, UsageError
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.walk import ListedSegment, find_segments
from kafka_segments.files.storage.files import first_line
from kafka_segments.files.storage.threads import map_ahead
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.names import parse_partition_folder
from kafka_segments.verbs.find.records.decide import Query
from kafka_segments.verbs.find.records.large_batches import LargestBatches
from kafka_segments.verbs.find.records.missing_offsets import (
    NotedLogs,
    may_be_missing,
    missing_behind,
)
from kafka_segments.verbs.find.records.segment_records import SegmentReader, SegmentScan
from kafka_segments.verbs.find.records.topic_limits import DEFAULTS, read_limits

if TYPE_CHECKING:
    from kafka_segments.console.bar import ReadProgress

_ERRORS = (OSError, FileChangedError, UnreadableObjectError)


@dataclass(frozen=True)
class RecordsOptions:
    """What is read, and what is kept.

    Attributes:
        sources: URIs of log directories, or folders of several.
        query: Which records are kept.
        topics: Of these topics alone; none: of all.
        logs: Of these logs alone, as topic and partition; none: of all.
        most: How many records of a segment are kept.
        most_large: How many of the largest batches.
        follow_links: Links below the sources are followed, to what lies in one of them.
    """

    sources: tuple[str, ...]
    query: Query = field(default_factory=Query)
    topics: tuple[str, ...] = ()
    logs: tuple[tuple[str, int], ...] = ()
    most: int = 1000
    most_large: int = 10
    follow_links: bool = False


class ReadRecords(NamedTuple):
    """What is read.

    Attributes:
        scans: Of each segment, as it is read.
        unread: What is not read besides, in lines.
        largest: What the largest batches are held against; nothing is noted.
        limits_known_by: From where that is known.
    """

    scans: Iterator[SegmentScan]
    unread: list[str]
    largest: LargestBatches
    limits_known_by: str


def run_records(options: RecordsOptions, *, work: "ReadProgress | None" = None) -> ReadRecords:
    """Read segments, in order, all cores at once.

    ``work`` is told of the progress, in bytes.

    Raises:
        SourceError: a source cannot be listed.
        UsageError: a topic or log that is asked for is in none of the sources.
    """
    found = find_segments(options.sources, follow_links=options.follow_links)
    unlisted = [f"{folder.path}: {folder.reason}" for folder in found.unlisted]
    chosen = _chosen(found.segments, options, unlisted)
    if work is not None:
        work.reads_in_driver(sum(segment.size_bytes for segment in chosen))
    unread = [f"{folder.path}: not read: {folder.reason}" for folder in found.unlisted]
    full = {segment.source for segment in found.segments}
    unread += [no_segments(source) for source in options.sources if source not in full]
    if not options.query.is_any:  # a consumer never sees what no broker serves
        unread += _left_out(found.left_out, options)
    limits = read_limits(found.segments) if options.query.is_any else DEFAULTS
    unread += [] if limits.problem is None else [limits.problem]
    largest = LargestBatches(options.most_large, limits.of_topic, limits.default)
    scans = _scans(chosen, options, largest, NotedLogs(found.log_dirs), work)
    return ReadRecords(scans, unread, largest.anew(), limits.known_by)


def _chosen(
    segments: Sequence[ListedSegment], options: RecordsOptions, unlisted: Sequence[str]
) -> list[ListedSegment]:
    topics = {segment.topic for segment in segments}
    logs = {(segment.topic, segment.partition) for segment in segments}
    for topic in options.topics:
        if topic not in topics:
            near = nearest_names(topic, topics, unread=unlisted)
            raise UsageError(f"no segment of topic {topic} is in the sources; {near}")
    for topic, partition in options.logs:
        if (topic, partition) not in logs:
            asked, there = f"{topic}-{partition}", [f"{name}-{number}" for name, number in logs]
            near = nearest_names(asked, there, unread=unlisted)
            raise UsageError(f"no segment of {asked} is in the sources; {near}")
    return [segment for segment in segments if _is_asked(segment.topic, segment.partition, options)]


def _is_asked(topic: str, partition: int, options: RecordsOptions) -> bool:
    is_named = topic in options.topics or (topic, partition) in options.logs
    return is_named or not (options.topics or options.logs)


def _left_out(rows: Iterable[Listed], options: RecordsOptions) -> Iterator[str]:
    """Yield a line for each folder with files that hold records and are not read, and why."""
    asked = []
    for row in rows:
        folder = parse_partition_folder(_folder_of(row).rpartition("/")[2])
        if folder is None or _is_asked(folder.topic, folder.partition, options):
            asked.append(row)
    for group in alike(asked, lambda row: (_folder_of(row), without_numbers(row.reason or ""))):
        first, others = group[0], len(group) - 1
        path = join_uri(first.source, first.relative_path, first.name)
        yield f"{path}{f' and {others} more' if others else ''}: not read: {first.reason}"


def _folder_of(row: Listed) -> str:
    return join_uri(row.source, row.relative_path)


def _scans(
    segments: Sequence[ListedSegment],
    options: RecordsOptions,
    largest: LargestBatches,
    noted: NotedLogs,
    work: "ReadProgress | None",
) -> Iterator[SegmentScan]:
    own, query = threading.local(), options.query

    def scan(segment: ListedSegment) -> SegmentScan:
        if not hasattr(own, "reader"):
            own.reader = SegmentReader(query, most=options.most, largest=largest)
            own.whole = SegmentReader(Query(), most=0, largest=largest)
        try:
            found: SegmentScan = own.reader.scan(segment)
            of_log = noted.of(segment)
            is_told = bool(found.unreadable) or query.is_by_time
            if not is_told and may_be_missing(segment, query, of_log[1]):
                read = own.whole.scan(segment) if query.is_by_offset else found
                found.missing = missing_behind(
                    segment, read.next_offset, read.stored, query, of_log
                )
        except _ERRORS as error:
            found = SegmentScan(segment, largest.anew(), problem=first_line(error))
        if work is not None:
            work.has_read(segment.size_bytes)
        return found

    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        yield from map_ahead(pool, scan, segments, threads=threads)
