"""Count the batches, records and bytes of each format in a segment."""

from typing import NamedTuple

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import OK
from kafka_segments.kafka.wire.filling import new_failure
from kafka_segments.kafka.wire.messages import check_messages
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.kafka.wire.sections import Int64s, decompressed_records

_UNKNOWN = -1
_V0_TYPE, _CREATE_TIME, _LOG_APPEND_TIME = 0, 1, 2


class FormatCount(NamedTuple):
    """Batches of one magic, codec and timestamp type; ``record_count`` None: not known."""

    magic: int
    codec: str
    timestamp_type: str
    batch_count: int
    record_count: int | None
    bytes: int


class FormatCounter:
    """Counts one segment after another.

    ``decompresses``: compressed messages v0 and v1 are opened to count the messages in them.
    Otherwise only headers are read, and their record counts are not known.
    """

    def __init__(self, *, decompresses: bool, max_batch_bytes: int = 64 * 1024 * 1024) -> None:
        self._decompresses = decompresses
        options = ChunkOptions(
            needs_body=decompresses, check_crc=False, max_batch_bytes=max_batch_bytes
        )
        self._reader = ChunkReader(options)
        self._decompressor = Decompressor(max_batch_bytes)
        self._failure = new_failure()

    def count(self, read_into: ReadInto, *, valid_bytes: int) -> list[FormatCount]:
        """Return the counts of the batches that recovery kept, by magic, codec and timestamp type.

        Raises:
            FileChangedError: the file ended before ``valid_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        totals: dict[int, list[int | None]] = {}
        for chunk in self._reader.read(read_into, size_bytes=valid_bytes):
            formats = _formats(chunk.batches)
            records = self._record_counts(chunk)
            sizes = chunk.batches[wire.BATCH_SIZE_BYTES]
            for one in np.unique(formats).tolist():
                chosen = formats == one
                known = records[chosen]
                total = totals.setdefault(one, [0, 0, 0])
                counts = (
                    int(chosen.sum()),
                    None if (known == _UNKNOWN).any() else int(known.sum()),
                    int(sizes[chosen].sum()),
                )
                totals[one] = [_sum(a, b) for a, b in zip(total, counts, strict=True)]
        return [_count(one, *totals[one]) for one in sorted(totals)]

    def _record_counts(self, chunk: Chunk) -> Int64s:
        batches = chunk.batches
        counts: Int64s = batches[wire.BATCH_RECORD_COUNT].copy()
        if self._decompresses and chunk.data is not None:
            is_set = (batches[wire.BATCH_MAGIC] < layout.MAGIC_V2) & (counts == _UNKNOWN)
            for batch in np.flatnonzero(is_set).tolist():
                counts[batch] = self._messages_in(
                    chunk.data, chunk.data_position, batches[:, batch]
                )
        return counts

    def _messages_in(self, data: wire.Bytes, data_position: int, column: Int64s) -> int:
        start = int(column[wire.BATCH_POSITION]) - data_position
        stored = data[start : start + int(column[wire.BATCH_SIZE_BYTES])]
        try:
            messages = decompressed_records(self._decompressor, stored, column)
        except DecompressionError:
            return _UNKNOWN
        magic, offset = column[wire.BATCH_MAGIC], column[wire.BATCH_LAST_OFFSET]
        status, count, _ = check_messages(messages, 0, len(messages), magic, offset, self._failure)
        return int(count) if status == OK else _UNKNOWN


def _formats(batches: wire.Batches) -> Int64s:
    """Return one number for the format of each batch."""
    attributes = batches[wire.BATCH_ATTRIBUTES]
    magics = np.clip(batches[wire.BATCH_MAGIC], 0, 3)
    is_append_time = attributes & layout.LOG_APPEND_TIME != 0
    types = np.where(is_append_time, _LOG_APPEND_TIME, _CREATE_TIME)
    types = np.where(magics == 0, _V0_TYPE, types)
    formats: Int64s = (magics * 8 + (attributes & layout.CODEC_MASK)) * 3 + types
    return formats


def _count(one: int, batches: int | None, records: int | None, size: int | None) -> FormatCount:
    magic, rest = divmod(one, 24)
    codec, kind = divmod(rest, 3)
    return FormatCount(
        magic, wire.CODECS[codec], wire.TIMESTAMP_TYPES[kind], batches or 0, records, size or 0
    )


def _sum(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
