"""Read where a segment ends as a starting broker does: from its last index entry on."""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_segments.errors import FileChangedError, UnreadableBatchError
from kafka_segments.files.storage.files import Place, open_segment
from kafka_segments.kafka.broker_rules.start.facts import SegmentEnd
from kafka_segments.kafka.index.segment.batch_reading import BatchSearch, headers, wrapped
from kafka_segments.kafka.index.segment.index_ends import RangedFile, count_filled
from kafka_segments.kafka.index.segment.recovered_segment import OFFSET_ENTRY_BYTES
from kafka_segments.kafka.text.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, file_name
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.reading import ReadInto

_MOST_WALKED = 16 * 1024 * 1024  # bytes of headers that are walked where no index entry leads


class _Entry(NamedTuple):
    """The last entry of an offset index: the offset, and the byte where its batch begins."""

    offset: int
    position: int


def read_segment_end(
    folder: Place,
    base: int,
    files: Mapping[str, int],
    *,
    suffix: str = "",
    most_walked: float = _MOST_WALKED,
) -> SegmentEnd:
    """Read where a segment ends.

    Args:
        folder: its partition's folder.
        base: its base offset.
        files: bytes of the folder's files.
        suffix: ``.swap``, of a finished compaction.
        most_walked: bytes of headers that are walked at most; the end of a longer way is not known.

    Raises:
        OSError: a file cannot be read.
        FileChangedError: a file became shorter.
    """
    entry = _Entry(base, 0)
    index = file_name(base, OFFSET_INDEX_SUFFIX) + suffix
    if files.get(index):
        with open_segment(folder.child(index), reads_ahead=False) as opened:
            entry = _last_entry(opened.read_into, opened.size_bytes, base)
    with open_segment(
        folder.child(file_name(base, LOG_SUFFIX) + suffix), reads_ahead=False
    ) as opened:
        if opened.size_bytes - entry.position > most_walked:
            return SegmentEnd(None)
        end = find_end(opened.read_into, opened.size_bytes, base, entry.offset, entry.position)
        return end._replace(first_offset=_first_offset(opened.read_into)) if suffix else end


def first_leader_epoch(log: Place) -> int | None:
    """Return the leader epoch of a segment's first batch; None: it is of a format without.

    Raises:
        OSError: the file cannot be read.
    """
    with open_segment(log, reads_ahead=False) as opened:
        header = bytearray(layout.UP_TO_MAGIC)
        if opened.read_into(0, memoryview(header)) < len(header):
            return None
    if header[layout.MAGIC] < layout.MAGIC_V2:
        return None
    return int.from_bytes(header[layout.LEADER_EPOCH : layout.LEADER_EPOCH + 4], "big", signed=True)


def _first_offset(read_into: ReadInto) -> int | None:
    data = bytearray(layout.LENGTH)
    is_there = read_into(0, memoryview(data)) == len(data)
    return int.from_bytes(data, "big", signed=True) if is_there else None


def find_end(
    read_into: ReadInto, size_bytes: int, base: int, offset: int, position: int
) -> SegmentEnd:
    """Find a segment's end from the last entry of its offset index on.

    Source: LogSegment.readNextOffset.
    """
    if position >= size_bytes:
        return _beyond(read_into, size_bytes, base)
    try:
        start = BatchSearch(read_into, end=size_bytes).position_of(offset, start=position)
        if start is None:
            return _beyond(read_into, size_bytes, base)
        return _walk(read_into, size_bytes, start, base)
    except UnreadableBatchError as error:
        known = _before(read_into, size_bytes, position, base)
        return known._replace(
            next_offset=None,
            problem=error.reason,
            position=error.position,
            kept_offset=known.next_offset,
        )


def _beyond(read_into: ReadInto, size_bytes: int, base: int) -> SegmentEnd:
    """Return the end of a segment whose index leads to no batch: its base offset."""
    if size_bytes > _MOST_WALKED:
        return SegmentEnd(base, size_bytes, base)
    return _before(read_into, size_bytes, 0, base)._replace(next_offset=base)


def _before(read_into: ReadInto, size_bytes: int, position: int, base: int) -> SegmentEnd:
    """Walk up to the first bytes that are no batch."""
    found = SegmentEnd(base, position)
    try:
        for batches in headers(read_into, position, size_bytes):
            found = _end_of(batches)
    except UnreadableBatchError:
        pass
    return found


def _walk(read_into: ReadInto, size_bytes: int, position: int, base: int) -> SegmentEnd:
    found, seen = SegmentEnd(base, position), False
    for batches in headers(read_into, position, size_bytes):
        found = _end_of(batches)
        seen = seen or found.has_transactions
    return found._replace(has_transactions=seen)


def _end_of(batches: wire.Batches) -> SegmentEnd:
    last = int(batches[wire.BATCH_LAST_OFFSET, -1])
    marks = layout.CONTROL | layout.TRANSACTIONAL
    return SegmentEnd(
        wrapped(last + 1),
        int(batches[wire.BATCH_POSITION, -1] + batches[wire.BATCH_SIZE_BYTES, -1]),
        last,
        bool((batches[wire.BATCH_ATTRIBUTES] & marks).any()),
        is_legacy=bool(batches[wire.BATCH_MAGIC, -1] < layout.MAGIC_V2),
    )


def _last_entry(read_into: ReadInto, size_bytes: int, base: int) -> _Entry:
    """Return the last entry of an offset index, without preallocated zeros."""

    def read(position: int, length: int) -> bytes:
        data = bytearray(length)
        if read_into(position, memoryview(data)) < length:
            raise FileChangedError(position, size_bytes)
        return bytes(data)

    width = OFFSET_ENTRY_BYTES
    count = size_bytes // width
    if not count:
        return _Entry(base, 0)
    last = read((count - 1) * width, width)
    if not any(last):
        count = count_filled(RangedFile(count * width, read), width)
        if not count:
            return _Entry(base, 0)
        last = read((count - 1) * width, width)
    offset = base + int.from_bytes(last[:4], "big", signed=True)
    return _Entry(offset, max(int.from_bytes(last[4:], "big", signed=True), 0))
