"""Single batches of a log, read by ranges where something leads to them. They must be v2."""

from operator import itemgetter
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.index.segment.index_ends import RangedFile
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import ends
from kafka_segments.kafka.wire.header_layout import MAGIC_V2

WINDOW_BYTES = 16 * 1024
"""Large enough for most batches; of a larger one only the header is read."""
_MOST_BETWEEN_BYTES = 8 * 1024 * 1024
_values = itemgetter(
    *(wire.BATCH_POSITION, wire.BATCH_SIZE_BYTES, wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET),
    *(wire.BATCH_MAX_TIMESTAMP, wire.BATCH_LEADER_EPOCH),
)


class Batch(NamedTuple):
    """A batch by its header; ``is_checked``: its checksum was verified."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    is_checked: bool

    def holds(self, offset: int) -> bool:
        """Tell whether an offset lies in the batch."""
        return self.base_offset <= offset <= self.last_offset


class FewBatches:
    """Reads single batches of one log.

    Its methods raise ``CorruptIndexError`` at messages in an older format.
    """

    def __init__(self, log: RangedFile) -> None:
        self._log = log
        self._header = np.empty((wire.BATCH_FIELDS, 1), dtype=np.int64)
        self._start = wire.new_walk(size_bytes=log.size_bytes, check_crc=False, needs_body=False)

    def bytes(self, position: int, length: int) -> wire.Bytes:
        """Return a range of the log."""
        return np.array(np.frombuffer(self._log.read(position, length), dtype=np.uint8))

    def at(self, position: int) -> Batch:
        """Return the batch at a position; its checksum is verified if it is small.

        Raises:
            CorruptIndexError: no sound batch begins there.
        """
        data = self.bytes(position, min(WINDOW_BYTES, self._log.size_bytes - position))
        for check_crc in (True, False):
            batch, status = self._walked(data, position, check_crc=check_crc)
            if batch is not None:
                return batch
            if status != wire.WANTS_BYTES:
                break
        raise CorruptIndexError(f"no sound batch begins at byte {position} of the log")

    def first_in(
        self, data: wire.Bytes, position: int, *, low_offset: int | None = None
    ) -> Batch | None:
        """Return the first batch that reaches an offset, in ``data`` from ``position`` on.

        Its body need not be there. None: headers end before it.
        """
        return self._walked(data, position, check_crc=False, low_offset=low_offset)[0]

    def first_between(self, start: int, end: int, *, low_offset: int) -> Batch | None:
        """Return the first batch that reaches an offset, of those that begin from start to end.

        Raises:
            CorruptIndexError: the positions are none that entries of an index lead to.
        """
        length = min(end - start + WINDOW_BYTES, self._log.size_bytes - start)
        if not 0 < length <= _MOST_BETWEEN_BYTES:
            raise CorruptIndexError(f"entries of the .index lead to bytes {start} and {end}")
        return self.first_in(self.bytes(start, length), start, low_offset=low_offset)

    def _walked(
        self, data: wire.Bytes, position: int, *, check_crc: bool, low_offset: int | None = None
    ) -> tuple[Batch | None, int]:
        walk = self._start.copy()
        walk.checks_crc, walk.next_position = check_crc, position
        if low_offset is not None:
            walk.low_offset = low_offset
        if not wire.walk_batches(data, len(data), position, self._header, 0, walk):
            return None, walk.status
        header = self._header[:, 0].tolist()
        if header[wire.BATCH_MAGIC] != MAGIC_V2:
            raise CorruptIndexError(f"messages in the format of v{header[wire.BATCH_MAGIC]}")
        return Batch._make((*_values(header), check_crc)), ends.SOUND
