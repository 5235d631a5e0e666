"""How large an index gets by how fine it is: the table of docs/index-formats.md.

Source: KIP-33 (an entry every second or minute, 3,500 partitions); an article on sparse indexes
(an entry every 100 messages, or every 4096 bytes).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka_segments.errors import SourceError
from kafka_segments.files.folders.walk import find_segments
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.index.formats.every_n_index import EveryNIndexBuilder, EveryNRule
from kafka_segments.kafka.index.formats.minute_index import MINUTE_MS, FirstOfEach
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
)
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.wire.record_times import RecordTimesReader

GIB = 2**30
DAY_MS = 86_400_000
PARTITIONS = 3_500


class EntryCounts(NamedTuple):
    """How many entries a segment has in each kind of index; ``log`` names its partition."""

    log: str
    log_bytes: int
    seconds: int
    minutes: int
    offset_entries: int
    time_entries: int
    every_100: int


class IndexSize(NamedTuple):
    """The size of one kind of index.

    Means of the segments measured; ``bytes_per_gib`` is of log, ``bytes_of_partitions`` of
    ``PARTITIONS`` logs as large as the mean of those measured.
    """

    granularity: str
    entry_bytes: int
    entries_per_segment: float
    bytes_per_segment: float
    bytes_per_gib: float
    bytes_of_partitions: float


def sizes_by_granularity(segments: Sequence[EntryCounts]) -> list[IndexSize]:
    """Give the sizes of each kind of index, the finest by the clock first.

    Raises:
        ValueError: no segment, or none with a byte in it.
    """
    log_bytes = sum(segment.log_bytes for segment in segments)
    if not log_bytes:
        raise ValueError("no segments to measure, or only empty ones")
    logs = len({segment.log for segment in segments})
    kinds = {
        "second": (TIME_ENTRY_BYTES, [segment.seconds for segment in segments]),
        "minute": (TIME_ENTRY_BYTES, [segment.minutes for segment in segments]),
        "4096 bytes, .index": (OFFSET_ENTRY_BYTES, [s.offset_entries for s in segments]),
        "4096 bytes, .timeindex": (TIME_ENTRY_BYTES, [s.time_entries for s in segments]),
        "every 100 messages": (OFFSET_ENTRY_BYTES, [segment.every_100 for segment in segments]),
    }
    return [
        IndexSize(
            granularity=granularity,
            entry_bytes=entry_bytes,
            entries_per_segment=sum(entries) / len(segments),
            bytes_per_segment=entry_bytes * sum(entries) / len(segments),
            bytes_per_gib=entry_bytes * sum(entries) * GIB / log_bytes,
            bytes_of_partitions=entry_bytes * sum(entries) * PARTITIONS / logs,
        )
        for granularity, (entry_bytes, entries) in kinds.items()
    ]


def bytes_by_the_clock(span_ms: int, *, days: int = 1, partitions: int = PARTITIONS) -> int:
    """Give the bytes of an entry in every span of time for so many days: the KIP's reckoning."""
    return days * DAY_MS // span_ms * TIME_ENTRY_BYTES * partitions


def bytes_by_the_interval(
    interval_bytes: int, entry_bytes: int = OFFSET_ENTRY_BYTES, log_bytes: int = GIB
) -> int:
    """Give the bytes of an entry every so many bytes of log: the article's reckoning."""
    return log_bytes // interval_bytes * entry_bytes


_SECOND_MS = 1_000


def count_entries(sources: Sequence[str]) -> Iterator[EntryCounts]:
    """Read every segment under the sources and count the entries of each kind of index.

    Raises:
        SourceError: a source, or a folder below it, cannot be listed.
        OSError: a segment cannot be read.
    """
    found = find_segments([absolute_uri(source) for source in sources])
    for folder in found.unlisted:
        raise SourceError(folder.path, folder.reason)
    options = ChunkOptions(needs_body=True, check_crc=False)
    recoverer, chunks = SegmentRecoverer(RecoveryOptions()), ChunkReader(options)
    records = RecordTimesReader(max_batch_bytes=options.max_batch_bytes)
    for segment in found.segments:
        log = place(segment.source).child(segment.relative_path, segment.name)
        seconds, minutes = FirstOfEach(_SECOND_MS), FirstOfEach(MINUTE_MS)
        every_100 = EveryNIndexBuilder(100, EveryNRule.BY_ORDINAL)
        with open_segment(log) as file:
            recovery = recoverer.recover(
                file.read_into, size_bytes=file.size_bytes, base_offset=segment.base_offset
            )
            for chunk in chunks.read(file.read_into, size_bytes=recovery.valid_bytes):
                for part in records.read(chunk.batches, chunk.data, chunk.data_position):
                    seconds.add(part.offset, part.timestamp)
                    minutes.add(part.offset, part.timestamp)
                    every_100.add(part.offset, part.position)
            file.check_unchanged()
        offsets, times = recovery.offset_entries, recovery.time_entries
        yield EntryCounts(
            log=join_uri(segment.source, segment.relative_path),
            log_bytes=recovery.valid_bytes,
            seconds=len(seconds.entries()),
            minutes=len(minutes.entries()),
            offset_entries=0 if offsets is None else len(offsets),
            time_entries=0 if times is None else len(times),
            every_100=len(every_100.entries()),
        )


_HEADER = (
    "granularity",
    "bytes an entry",
    "entries a segment",
    "bytes a segment",
    "per 1 GiB of log",
    "3,500 such partitions",
)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(sources: Sequence[str]) -> str:
    """Measure the segments under the sources; gives the table, a line a granularity."""
    lines = [_HEADER, ("---",) + ("--:",) * (len(_HEADER) - 1)]
    lines += [
        (
            size.granularity,
            str(size.entry_bytes),
            f"{size.entries_per_segment:.1f}",
            _amount(size.bytes_per_segment),
            _amount(size.bytes_per_gib),
            _amount(size.bytes_of_partitions),
        )
        for size in sizes_by_granularity(list(count_entries(sources)))
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _amount(size_bytes: float) -> str:
    """Write a size with two decimals, in the unit that keeps it below 1024."""
    unit = 0
    while size_bytes >= 1024 and unit < len(_UNITS) - 1:
        size_bytes /= 1024
        unit += 1
    return f"{size_bytes:.0f} B" if unit == 0 else f"{size_bytes:.2f} {_UNITS[unit]}"
