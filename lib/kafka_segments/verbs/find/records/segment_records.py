"""Read the records of a segment, also behind batches that cannot be read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import CorruptIndexError, UnreadableObjectError
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.segments.decoding import MOST_BATCH_BYTES, record_filler
from kafka_segments.files.segments.largest_record import largest_record
from kafka_segments.files.storage.files import OpenSegment, open_segment, place, read_whole
from kafka_segments.kafka.broker_rules.start.torn_tail import read_tail
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.text.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.verbs.find.records.decide import Query, Unreadable, Why, matching
from kafka_segments.verbs.find.records.large_batches import LargestBatches

_MOST_INDEX_BYTES = 256 * 1024 * 1024
_NEWEST_MAGIC = layout.MAGIC_V2
Header = tuple[str, bytes | None]


class FoundRecord(NamedTuple):
    """A record. ``timestamp`` in ms; ``producer_id`` -1: none; ``position``: its batch's byte."""

    path: str
    topic: str
    partition: int
    position: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    producer_id: int
    leader_epoch: int


@dataclass
class SegmentScan:
    """What was read of a segment.

    Attributes:
        segment: The segment.
        largest: The largest batches.
        found: The records asked for, up to as many as are kept.
        count: How many there are.
        records: How many records were looked at, those of control batches not counted.
        stored: How many with those.
        unreadable: What could not be read.
        next_offset: The offset behind the last batch that was read; None: there is none.
        problem: Why the file could not be read to its end; None: it was.
        missing: Which offsets behind it are in no segment; None: none that are asked for.
    """

    segment: ListedSegment
    largest: LargestBatches
    found: list[FoundRecord] = field(default_factory=list)
    count: int = 0
    records: int = 0
    stored: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    next_offset: int | None = None
    problem: str | None = None
    missing: str | None = None


class SegmentReader:
    """Reads segments one after another; a thread has one of its own.

    Args:
        query: which records are kept.
        most: how many of a segment are kept at most.
        largest: how many of its largest batches are, and what they are held against.
    """

    def __init__(self, query: Query, *, most: int, largest: LargestBatches) -> None:
        self._query, self._most, self._largest = query, most, largest
        bounds = Bounds(
            query.low_offset, query.high_offset, query.low_timestamp, query.high_timestamp
        )
        self._reader = ChunkReader(
            ChunkOptions(needs_body=True, max_batch_bytes=MOST_BATCH_BYTES, bounds=bounds)
        )
        wants = (query.key is not None, False, query.header is not None)
        self._looked = record_filler(wants)
        self._whole = record_filler((True, True, True))

    def scan(self, segment: ListedSegment) -> SegmentScan:
        """Read a segment.

        Raises:
            OSError: it cannot be read.
            FileChangedError: it became shorter.
        """
        scan = SegmentScan(segment, self._largest.anew())
        with open_segment(place(segment.path)) as opened:
            position = 0
            while position < opened.size_bytes:
                end = self._to_end(opened, position, scan)
                if end is None:
                    break
                behind = self._behind(opened, scan, *end)
                if behind is None:
                    break
                position = behind
            opened.check_unchanged()
        return scan

    def _to_end(
        self, opened: OpenSegment, position: int, scan: SegmentScan
    ) -> tuple[int, str] | None:
        """Read batches from a byte on; return where and why they end before the file does."""
        written = opened.written_bytes
        chunks = self._reader.read(
            shifted(opened.read_into, position),
            size_bytes=opened.size_bytes - position,
            written_bytes=None if written is None else max(written - position, 0),
        )
        end, walked = None, position
        for chunk in chunks:
            if chunk.batches.shape[1]:
                self._take(chunk, position, scan)
                last = chunk.batches[:, -1]
                walked = position + int(last[wire.BATCH_POSITION] + last[wire.BATCH_SIZE_BYTES])
            if chunk.end_reason is not None:
                end = position + chunk.end_position, chunk.end_reason
        is_closed = scan.segment.next_base_offset is not None
        if end is None and is_closed and self._query.is_any and walked < opened.size_bytes:
            return walked, "zeros up to the end of a segment that is not the last"
        return end

    def _take(self, chunk: Chunk, start: int, scan: SegmentScan) -> None:
        """Look at the records of a chunk."""
        batches = chunk.batches
        self._note_order(batches, start, scan)
        if self._query.is_any:
            scan.largest.note(batches, scan.segment, start, partial(self._largest_record, chunk))
        for batch in np.flatnonzero(batches[wire.BATCH_MAGIC] > _NEWEST_MAGIC).tolist():
            reason = f"its magic is {batches[wire.BATCH_MAGIC, batch]}, consumers know 0 to 2"
            scan.unreadable.append(_unreadable(scan, batches[:, batch], start, reason))
        known = batches[wire.BATCH_MAGIC] <= _NEWEST_MAGIC
        if not known.any():
            return
        chosen = np.ascontiguousarray(batches[:, known])
        is_data = chosen[wire.BATCH_ATTRIBUTES] & layout.CONTROL == 0
        matched: set[int] = set()
        filler = self._looked
        for rows in filler.fill(chosen, chunk.data, chunk.data_position):
            batch_of = filler.columns.rows[filling.ROW_BATCH, :rows]
            for row, reason in filler.errors.items():
                bad = chosen[:, int(batch_of[row])]
                if bad[wire.BATCH_RECORD_COUNT] == 0:
                    continue
                scan.unreadable.append(_unreadable(scan, bad, start, reason))
            is_record = is_data[batch_of]
            is_record[list(filler.errors)] = False
            scan.records += int(np.count_nonzero(is_record))
            scan.stored += rows - len(filler.errors)
            if not self._query.is_any:
                found = matching(self._query, filler.columns, rows, filler.headers)
                found = found[is_record[found]]
                scan.count += len(found)
                if len(scan.found) + len(matched) < self._most:
                    matched.update(batch_of[found].tolist())
        if matched:
            self._keep(chunk, np.ascontiguousarray(chosen[:, sorted(matched)]), start, scan)

    def _keep(self, chunk: Chunk, batches: wire.Batches, start: int, scan: SegmentScan) -> None:
        """Decode the batches with records that were asked for once more, values and all."""
        filler, segment = self._whole, scan.segment
        for rows in filler.fill(batches, chunk.data, chunk.data_position):
            columns = filler.columns
            for row in matching(self._query, columns, rows, filler.headers).tolist():
                if len(scan.found) >= self._most or row in filler.errors:
                    continue
                batch = batches[:, int(columns.rows[filling.ROW_BATCH, row])]
                scan.found.append(
                    FoundRecord(
                        segment.path,
                        segment.topic,
                        segment.partition,
                        start + int(batch[wire.BATCH_POSITION]),
                        int(columns.rows[filling.ROW_OFFSET, row]),
                        int(columns.rows[filling.ROW_TIMESTAMP, row]),
                        _bytes(columns.key, row),
                        _bytes(columns.value, row),
                        _headers(columns, row),
                        int(batch[wire.BATCH_PRODUCER_ID]),
                        int(batch[wire.BATCH_LEADER_EPOCH]),
                    )
                )

    def _note_order(self, batches: wire.Batches, start: int, scan: SegmentScan) -> None:
        """Note batches that a consumer passes over, as it has had their offsets by then."""
        before = -1 if scan.next_offset is None else scan.next_offset - 1
        last = batches[wire.BATCH_LAST_OFFSET]
        greatest = np.maximum.accumulate(np.concatenate([[before], last]))
        for batch in np.flatnonzero(last <= greatest[:-1]).tolist():
            reason = f"offset {greatest[batch]} stands in front of it"
            bad = _unreadable(scan, batches[:, batch], start, reason)
            _add_to_run(scan, bad._replace(why=Why.ORDER, seek_to=None))
        scan.next_offset = int(greatest[-1]) + 1

    def _largest_record(self, chunk: Chunk, batch: int) -> int | None:
        """Return the bytes of the largest record of a batch; None: it cannot be decoded."""
        chosen = np.ascontiguousarray(chunk.batches[:, [batch]])
        return largest_record(self._whole, chosen, chunk.data, chunk.data_position)

    def _behind(
        self, opened: OpenSegment, scan: SegmentScan, position: int, reason: str
    ) -> int | None:
        """Note what cannot be read at a byte; return where batches go on, None: nowhere."""
        size = opened.size_bytes
        expected = scan.segment.base_offset if scan.next_offset is None else scan.next_offset
        header = bytearray(min(layout.HEADER_BYTES, size - position))
        opened.read_into(position, memoryview(header))
        length = _int(header, layout.LENGTH, 4) if len(header) >= layout.UP_TO_MAGIC else -1
        end = position + layout.LOG_OVERHEAD + length
        is_whole = length >= layout.MIN_LENGTH and end <= size and "checksum" in reason
        if is_whole:
            bad = _of_header(header, expected)
            scan.unreadable.append(
                _at(scan, position, end - position, bad[0], bad[1], Why.CHECKSUM, reason, bad[2])
            )
            scan.next_offset = bad[1]
            return end
        is_beyond = length >= layout.MIN_LENGTH and end > size
        why = Why.LENGTH if is_beyond or len(header) < layout.UP_TO_MAGIC else Why.FORMAT
        tail = read_tail(opened.read_into, start=position, end=size, next_offset=expected)
        if tail.sound_at is None:
            is_last = scan.segment.next_base_offset is None
            why = Why.TORN if is_last else why
            seek = scan.segment.next_base_offset
            scan.unreadable.append(
                _at(scan, position, size - position, expected, seek, why, reason)
            )
            return None
        first = bytearray(layout.LENGTH)
        opened.read_into(tail.sound_at, memoryview(first))
        length = tail.sound_at - position
        sound = _int(first, layout.BASE_OFFSET, 8)
        seek = _served_from(scan.segment, tail.sound_at)
        if seek is None or seek > sound:
            until = "on" if seek is None else f"to {seek - 1}"
            reason = f"{reason}; offsets {sound} {until} follow, and no broker finds them"
        scan.unreadable.append(_at(scan, position, length, expected, seek, why, reason))
        return tail.sound_at


def _served_from(segment: ListedSegment, position: int) -> int | None:
    """Return the first offset that a broker finds behind bytes that are no batch.

    It goes from an index entry on to the offset that is asked for: one has to lie behind them, else
    the next segment is the first that it finds. None: nothing. Source: LogSegment.translateOffset.
    """
    index = place(segment.path.removesuffix(LOG_SUFFIX) + OFFSET_INDEX_SUFFIX)
    try:
        data = read_whole(index, most_bytes=_MOST_INDEX_BYTES)
    except (OSError, CorruptIndexError, UnreadableObjectError):
        data = b""  # a broker makes it anew, and ends it there
    entries = decode_offset_index(data, base_offset=segment.base_offset)
    behind = entries[entries[:, 1] >= position]
    return int(behind[0, 0]) if len(behind) else segment.next_base_offset


def _add_to_run(scan: SegmentScan, bad: Unreadable) -> None:
    """Note a batch; those that follow each other without a gap are one."""
    last = scan.unreadable[-1] if scan.unreadable else None
    if last is None or last.why != bad.why or last.position + last.size_bytes != bad.position:
        scan.unreadable.append(bad)
        return
    scan.unreadable[-1] = last._replace(size_bytes=last.size_bytes + bad.size_bytes)


def _unreadable(scan: SegmentScan, batch: wire.Batches, start: int, reason: str) -> Unreadable:
    return _at(
        scan,
        start + int(batch[wire.BATCH_POSITION]),
        int(batch[wire.BATCH_SIZE_BYTES]),
        int(batch[wire.BATCH_BASE_OFFSET]),
        int(batch[wire.BATCH_LAST_OFFSET]) + 1,
        Why.RECORDS,
        reason,
        int(batch[wire.BATCH_PRODUCER_ID]),
        int(batch[wire.BATCH_ATTRIBUTES]) & layout.CODEC_MASK,
    )


def _at(
    scan: SegmentScan,
    position: int,
    size_bytes: int,
    base_offset: int,
    seek_to: int | None,
    why: Why,
    reason: str,
    producer_id: int = -1,
    codec: int = 0,
) -> Unreadable:
    segment = scan.segment
    return Unreadable(
        segment.path,
        segment.topic,
        segment.partition,
        position,
        size_bytes,
        base_offset,
        seek_to,
        why,
        reason,
        producer_id,
        codec,
    )


def _of_header(header: bytearray, expected: int) -> tuple[int, int, int]:
    """Return first offset, the one behind the last, and producer of a batch that is damaged.

    Where its header cannot be true, the offsets are those that are expected there.
    """
    base = _int(header, layout.BASE_OFFSET, 8)
    if header[layout.MAGIC] != layout.MAGIC_V2 or len(header) < layout.HEADER_BYTES:
        return base, base + 1, -1
    delta = _int(header, layout.LAST_OFFSET_DELTA, 4)
    if base < expected or delta < 0:
        return expected, expected + 1, -1
    return base, base + delta + 1, _int(header, layout.PRODUCER_ID, 8)


def _int(data: bytearray, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big", signed=True)


def _bytes(column: filling.Bytes, row: int) -> bytes | None:
    if column.is_null[row]:
        return None
    return column.data[column.ends[row] : column.ends[row + 1]].tobytes()


def _headers(columns: filling.Columns, row: int) -> tuple[Header, ...]:
    return tuple(_each_header(columns, row))


def _each_header(columns: filling.Columns, row: int) -> Iterator[Header]:
    for at in range(int(columns.header_ends[row]), int(columns.header_ends[row + 1])):
        name = _bytes(columns.header_key, at) or b""
        yield name.decode("utf-8", "backslashreplace"), _bytes(columns.header_value, at)
