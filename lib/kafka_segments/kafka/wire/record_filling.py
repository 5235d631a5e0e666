"""The records of batches decoded into columns; a batch that cannot be decoded is one row."""

from collections.abc import Iterator

import numpy as np

from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.failures import describe
from kafka_segments.kafka.wire.sections import Int64s, decompressed_records, record_sections

_MOST_ROWS = 64 * 1024


class RecordFiller:
    """Fills columns, made once, with the records of some batches after others.

    1. The records of a batch come all or not at all: where one cannot be decoded, one row
       stands for the batch, at its base offset and greatest timestamp.
    2. The same holds for a batch that is, or decompresses to, more than ``max_batch_bytes``.

    ``columns`` are to be read while ``fill`` waits; ``errors`` then says of each row that stands
    for a batch why, and ``headers`` how many of the headers' entries are in use. ``wants``: key,
    value, headers; of each there are ``data_bytes`` before rows are handed over, and so many
    ``most_headers``.
    """

    def __init__(
        self,
        *,
        max_batch_bytes: int,
        wants: tuple[bool, bool, bool] = (False, False, False),
        data_bytes: int = 0,
        most_headers: int = 0,
    ) -> None:
        self._max_batch_bytes = max_batch_bytes
        self._wants = wants
        self._data_bytes, self._most_headers = data_bytes, most_headers
        self._decompressor = Decompressor(max_batch_bytes)
        self._failure = filling.new_failure()
        self._fill = filling.new_fill()
        self.columns = self._new_columns(data_bytes, most_headers)
        self.errors: dict[int, str] = {}

    @property
    def headers(self) -> int:
        """How many of the headers' entries are in use."""
        return int(self._fill[filling.HEADERS])

    def fill(
        self, batches: wire.Batches, data: wire.Bytes | None, data_position: int
    ) -> Iterator[int]:
        """Return how many rows the columns hold, in the order of the log, whenever that is so.

        ``data`` holds the bytes of ``batches``, from ``data_position`` of the log on; None: they
        are too many.
        """
        self._fill, self.errors = filling.new_fill(), {}
        for _ in self._decode(np.ascontiguousarray(batches), data, data_position):
            yield from self._hand_over()
        if self._fill[filling.ROWS]:
            yield from self._hand_over()

    def _new_columns(self, data_bytes: int, headers: int) -> filling.Columns:
        return filling.new_columns(
            rows=_MOST_ROWS, data_bytes=data_bytes, headers=headers, wants=self._wants
        )

    def _hand_over(self) -> Iterator[int]:
        yield int(self._fill[filling.ROWS])
        self._fill[filling.ROWS : filling.NEEDED_BYTES] = 0
        self.errors = {}

    def _decode(
        self, batches: wire.Batches, data: wire.Bytes | None, data_position: int
    ) -> Iterator[None]:
        """Fill the columns; stops wherever they are to be emptied."""
        if data is None:
            for size_bytes in batches[wire.BATCH_SIZE_BYTES].tolist():
                yield from self._give_up(
                    batches,
                    f"the batch has {size_bytes} bytes, at most {self._max_batch_bytes} are read",
                )
            return
        starts, ends = record_sections(batches, data_position)
        for batch in np.flatnonzero(batches[wire.BATCH_ATTRIBUTES] & layout.CODEC_MASK).tolist():
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
        data = wire.read_only(data)
        while True:
            status = filling.fill_columns(
                data, starts, ends, stop, batches, self.columns, self._fill, self._failure
            )
            if status == filling.DONE:
                return
            if status == filling.FAILED:
                batch = self._fill[filling.BATCH]
                is_compressed = batches[wire.BATCH_ATTRIBUTES, batch] & layout.CODEC_MASK
                section = "decompressed records" if is_compressed else "records"
                reason = describe(self._failure, section=section, start=int(starts[batch]))
                yield from self._give_up(batches, reason)
            elif self._fill[filling.ROWS]:
                yield
            else:
                self._enlarge()

    def _enlarge(self) -> None:
        """Make columns that hold the one record that was too large for the usual ones."""
        needed_bytes = int(self._fill[filling.NEEDED_BYTES])
        needed_headers = int(self._fill[filling.NEEDED_HEADERS])
        self.columns = self._new_columns(
            max(needed_bytes, self._data_bytes), max(needed_headers + 1, self._most_headers)
        )

    def _give_up(self, batches: wire.Batches, reason: str) -> Iterator[None]:
        """Let one row stand for the batch under decoding, and go on to the next."""
        if self._fill[filling.ROWS] == _MOST_ROWS:
            yield
        fill, columns = self._fill, self.columns
        row, batch = int(fill[filling.ROWS]), int(fill[filling.BATCH])
        columns.rows[filling.ROW_BATCH, row] = batch
        columns.rows[filling.ROW_OFFSET, row] = batches[wire.BATCH_BASE_OFFSET, batch]
        columns.rows[filling.ROW_TIMESTAMP, row] = batches[wire.BATCH_MAX_TIMESTAMP, batch]
        for column in (columns.key, columns.value):
            column.is_null[row] = True
            column.ends[row + 1] = column.ends[row]
        columns.header_ends[row + 1] = columns.header_ends[row]
        self.errors[row] = reason
        fill[filling.ROWS] += 1
        fill[filling.BATCH] += 1
        fill[filling.LEFT] = -1
