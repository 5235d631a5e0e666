"""The parts of a segment, given by offsets, that a load reads again to rebuild the producer state.

Source: UnifiedLog.rebuildProducerState, LogSegment.read.
"""

from kafka_segments.errors import InvalidTransactionError
from kafka_segments.kafka.index.segment.batch_reading import BatchSearch
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, empty_summary
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.wire.reading import ReadInto


def producers_between(
    recoverer: SegmentRecoverer,
    read_into: ReadInto,
    *,
    size_bytes: int,
    base_offset: int,
    start_offset: int,
    end_offset: int | None,
) -> ProducerSummary:
    """Summarise the producers of the batches from one offset on, up to the place of another.

    ``end_offset`` is None for the end of the segment. ``size_bytes`` is the size that recovery
    left. Both places are found by the segment's index; where offsets go back, the batches between
    them can have any offsets.

    Raises:
        InvalidTransactionError: Kafka throws at a marker, and does not load the log.
        UnreadableBatchError: Kafka throws when it looks up a place, and does not load the log.
        FileChangedError: the file ended before ``size_bytes``.
        OSError: whatever ``read_into`` raises.
    """
    places = _Places(recoverer, read_into, size_bytes=size_bytes, base_offset=base_offset)
    end = size_bytes
    if end_offset is not None:
        limit = places.of(end_offset)
        end = size_bytes if limit is None else limit
    start = places.of(start_offset)
    if start is None:
        return empty_summary()
    if end < start:
        message = f"the batch of offset {end_offset} stands before that of {start_offset}"
        raise InvalidTransactionError(end, message)
    return recoverer.producers(shifted(read_into, start), size_bytes=end - start)


def reaches(
    recoverer: SegmentRecoverer,
    read_into: ReadInto,
    *,
    size_bytes: int,
    base_offset: int,
    offset: int | None,
) -> bool:
    """Tell whether Kafka finds a batch of an offset, or of one above it, in a segment.

    None: of the offset that it looks up to find the segment's end.

    Raises:
        UnreadableBatchError: Kafka throws at the search.
        FileChangedError: the file ended before ``size_bytes``.
        OSError: whatever ``read_into`` raises.
    """
    places = _Places(recoverer, read_into, size_bytes=size_bytes, base_offset=base_offset)
    return (places.of_end() if offset is None else places.of(offset)) is not None


class _Places:
    """Looks up offsets in a segment, by its index."""

    def __init__(
        self, recoverer: SegmentRecoverer, read_into: ReadInto, *, size_bytes: int, base_offset: int
    ) -> None:
        found = recoverer.recover(read_into, size_bytes=size_bytes, base_offset=base_offset)
        self._base_offset = base_offset
        self._entries = found.offset_entries
        self._search = BatchSearch(read_into, end=size_bytes)

    def of_end(self) -> int | None:
        target, start = self._base_offset, 0
        if self._entries is not None and len(self._entries):
            target, start = self._entries[-1].tolist()
        return self._search.position_of(target, start=start)

    def of(self, offset: int) -> int | None:
        start = 0
        if self._entries is not None:
            below = self._entries[self._entries[:, 0] <= offset]
            start = int(below[-1, 1]) if len(below) else 0
        return self._search.position_of(offset, start=start)
