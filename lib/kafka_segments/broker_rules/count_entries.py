"""Count what every kind of index would have of real segments."""

from collections.abc import Iterator, Sequence

from kafka_segments.broker_rules.index_sizes import EntryCounts
from kafka_segments.errors import SourceError
from kafka_segments.index.every_n_index import EveryNIndexBuilder, EveryNRule
from kafka_segments.index.minute_index import MINUTE_MS, FirstOfEach
from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer
from kafka_segments.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.sources.walk import find_segments
from kafka_segments.storage.files import absolute_uri, open_segment, place
from kafka_segments.storage.uris import join_uri
from kafka_segments.wire.record_times import RecordTimesReader

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
