"""Offset and timestamp of every record, without keys and values."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kafka_segments.wire import batches as wire
from kafka_segments.wire import filling
from kafka_segments.wire.codecs import DecompressionError, Decompressor
from kafka_segments.wire.failures import describe
from kafka_segments.wire.sections import Int64s, decompressed_records, record_sections

_MOST_ROWS = 64 * 1024


class RecordTimes(NamedTuple):
    """Some records, in the order of the log: a row each.

    ``position`` is the first byte of the record's batch in the file.
    """

    position: Int64s
    offset: Int64s
    timestamp: Int64s


class Undecodable(NamedTuple):
    """A batch whose records cannot be had, and why."""

    position: int
    reason: str


class RecordTimesReader:
    """Reads the records of some batches after others, in columns that are made once.

    A batch that cannot be decoded counts as one record, at its base offset and greatest
    timestamp; ``undecodable`` has the first one.
    """

    def __init__(self, *, max_batch_bytes: int) -> None:
        self._max_batch_bytes = max_batch_bytes
        self._decompressor = Decompressor(max_batch_bytes)
        self._columns = filling.new_columns(
            rows=_MOST_ROWS, data_bytes=0, headers=0, wants=(False, False, False)
        )
        self._failure = filling.new_failure()
        self._fill = filling.new_fill()
        self.undecodable: Undecodable | None = None

    def read(
        self, batches: wire.Batches, data: wire.Bytes | None, data_position: int
    ) -> Iterator[RecordTimes]:
        """Give the records of ``batches``, whose bytes are in ``data``; None: too many bytes."""
        self._fill = filling.new_fill()
        batches = np.ascontiguousarray(batches)
        for _ in self._decode(batches, data, data_position):
            yield self._taken(batches)
        if self._fill[filling.ROWS]:
            yield self._taken(batches)

    def _decode(
        self, batches: wire.Batches, data: wire.Bytes | None, data_position: int
    ) -> Iterator[None]:
        if data is None:
            for size_bytes in batches[wire.SIZE_BYTES].tolist():
                yield from self._give_up(
                    batches, f"{size_bytes} bytes, at most {self._max_batch_bytes} are read"
                )
            return
        starts, ends = record_sections(batches, data_position)
        for batch in np.flatnonzero(batches[wire.ATTRIBUTES] & wire.CODEC_MASK).tolist():
            yield from self._fill_up(data, starts, ends, batch, batches)
            stored = data[starts[batch] : ends[batch]]
            try:
                records = decompressed_records(self._decompressor, stored, batches[:, batch])
            except DecompressionError as error:
                yield from self._give_up(batches, str(error))
                continue
            starts[batch], ends[batch] = 0, len(records)
            yield from self._fill_up(records, starts, ends, batch + 1, batches)
        yield from self._fill_up(data, starts, ends, batches.shape[1], batches)

    def _fill_up(
        self, data: wire.Bytes, starts: Int64s, ends: Int64s, stop: int, batches: wire.Batches
    ) -> Iterator[None]:
        while True:
            status = filling.fill_columns(
                data, starts, ends, stop, batches, self._columns, self._fill, self._failure
            )
            if status == filling.DONE:
                return
            if status == filling.NO_ROOM:
                yield
                continue
            batch = int(self._fill[filling.BATCH])
            reason = describe(self._failure, section="records", start=int(starts[batch]))
            yield from self._give_up(batches, reason)

    def _give_up(self, batches: wire.Batches, reason: str) -> Iterator[None]:
        """Let one row stand for the batch under decoding, and go on to the next."""
        if self._fill[filling.ROWS] == _MOST_ROWS:
            yield
        fill, rows = self._fill, self._columns.rows
        row, batch = int(fill[filling.ROWS]), int(fill[filling.BATCH])
        rows[filling.ROW_BATCH, row] = batch
        rows[filling.ROW_OFFSET, row] = batches[wire.BASE_OFFSET, batch]
        rows[filling.ROW_TIMESTAMP, row] = batches[wire.MAX_TIMESTAMP, batch]
        fill[filling.ROWS] += 1
        fill[filling.BATCH] += 1
        fill[filling.LEFT] = -1
        if self.undecodable is None:
            self.undecodable = Undecodable(int(batches[wire.POSITION, batch]), reason)

    def _taken(self, batches: wire.Batches) -> RecordTimes:
        rows = self._columns.rows[:, : int(self._fill[filling.ROWS])].copy()
        self._fill[filling.ROWS] = 0
        return RecordTimes(
            batches[wire.POSITION, rows[filling.ROW_BATCH]],
            rows[filling.ROW_OFFSET],
            rows[filling.ROW_TIMESTAMP],
        )
