"""Offset and timestamp of every record, without keys and values."""

from collections.abc import Iterator
from typing import NamedTuple

from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire.record_filling import RecordFiller
from kafka_segments.kafka.wire.sections import Int64s


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
        self._filler = RecordFiller(max_batch_bytes=max_batch_bytes)
        self.undecodable: Undecodable | None = None

    def read(
        self, batches: wire.Batches, data: wire.Bytes | None, data_position: int
    ) -> Iterator[RecordTimes]:
        """Return the records of ``batches``, whose bytes are in ``data``; None: too many bytes."""
        for count in self._filler.fill(batches, data, data_position):
            rows = self._filler.columns.rows[:, :count].copy()
            positions = batches[wire.BATCH_POSITION, rows[filling.ROW_BATCH]]
            for row, reason in self._filler.errors.items():
                if self.undecodable is None:
                    self.undecodable = Undecodable(int(positions[row]), reason)
            yield RecordTimes(positions, rows[filling.ROW_OFFSET], rows[filling.ROW_TIMESTAMP])
