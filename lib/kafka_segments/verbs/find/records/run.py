"""Read the records of logs, all cores at once, and keep what was asked for."""

import difflib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_segments.errors import FileChangedError, UnreadableObjectError, UsageError
from kafka_segments.files.folders.walk import ListedSegment, UnlistedFolder, find_segments
from kafka_segments.files.storage.files import first_line
from kafka_segments.kafka.wire.plain_text import first_of
from kafka_segments.verbs.find.records.decide import Query
from kafka_segments.verbs.find.records.segment_records import SegmentReader, SegmentScan

if TYPE_CHECKING:
    from kafka_segments.console.bar import ReadProgress

_ERRORS = (OSError, FileChangedError, UnreadableObjectError)
_MOST_NAMED = 5


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


def run_records(
    options: RecordsOptions, *, work: "ReadProgress | None" = None
) -> tuple[Iterator[SegmentScan], list[UnlistedFolder]]:
    """Return what is read of each segment, in order as it is read, and the folders that were not.

    ``work`` is told of the progress, in bytes.

    Raises:
        SourceError: a source cannot be listed.
        UsageError: a topic or log that is asked for is in none of the sources.
    """
    found = find_segments(options.sources, follow_links=options.follow_links)
    chosen = _chosen(found.segments, options)
    if work is not None:
        work.reads_here(sum(segment.size_bytes for segment in chosen))
    return _scans(chosen, options, work), found.unlisted


def _chosen(segments: Sequence[ListedSegment], options: RecordsOptions) -> list[ListedSegment]:
    topics = {segment.topic for segment in segments}
    logs = {(segment.topic, segment.partition) for segment in segments}
    for topic in options.topics:
        if topic not in topics:
            raise UsageError(
                f"no segment of topic {topic} is in the sources; {_nearest(topic, topics)}"
            )
    for topic, partition in options.logs:
        if (topic, partition) not in logs:
            asked, there = f"{topic}-{partition}", [f"{name}-{number}" for name, number in logs]
            raise UsageError(f"no segment of {asked} is in the sources; {_nearest(asked, there)}")
    return [
        segment
        for segment in segments
        if (not options.topics and not options.logs)
        or segment.topic in options.topics
        or (segment.topic, segment.partition) in options.logs
    ]


def _some(names: Iterable[str]) -> str:
    return f"there are: {first_of(sorted(names), _MOST_NAMED)}"


def _nearest(name: str, names: Iterable[str]) -> str:
    """Name what is there: the nearest names, else the first."""
    close = difflib.get_close_matches(name, sorted(names), _MOST_NAMED)
    return f"nearest: {', '.join(close)}" if close else _some(names)


def _scans(
    segments: Sequence[ListedSegment], options: RecordsOptions, work: "ReadProgress | None"
) -> Iterator[SegmentScan]:
    own = threading.local()

    def scan(segment: ListedSegment) -> SegmentScan:
        if not hasattr(own, "reader"):
            own.reader = SegmentReader(
                options.query, most=options.most, most_large=options.most_large
            )
        try:
            found: SegmentScan = own.reader.scan(segment)
        except _ERRORS as error:
            found = SegmentScan(segment, problem=first_line(error))
        if work is not None:
            work.has_read(segment.size_bytes)
        return found

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(scan, segments)
