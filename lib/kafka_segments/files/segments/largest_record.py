"""The largest record of a segment, which only decoding tells."""

import numpy as np

from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.segments.decoding import MOST_BATCH_BYTES, record_filler
from kafka_segments.kafka.broker_rules.record_sizes import bytes_but_times
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.kafka.wire.record_filling import RecordFiller


class LargestRecordReader:
    """Reads one segment after another, with buffers that are made once."""

    def __init__(self) -> None:
        self._reader = ChunkReader(
            ChunkOptions(needs_body=True, check_crc=False, max_batch_bytes=MOST_BATCH_BYTES)
        )
        self._filler = record_filler((True, True, True))

    def read(self, read_into: ReadInto, *, size_bytes: int) -> int | None:
        """Return the bytes of a segment's largest record, see ``largest_record``; 0: it has none.

        Control records do not count. None: it is not known, as a batch cannot be decoded.
        ``size_bytes``: those of the batches that recovery keeps; it has verified their checksums,
        or was told to trust them.

        Raises:
            FileChangedError: the file ended before ``size_bytes``.
            OSError: whatever ``read_into`` raises.
        """
        largest = 0
        for chunk in self._reader.read(read_into, size_bytes=size_bytes):
            is_data = chunk.batches[wire.BATCH_ATTRIBUTES] & layout.CONTROL == 0
            chosen = np.ascontiguousarray(chunk.batches[:, is_data])
            found = largest_record(self._filler, chosen, chunk.data, chunk.data_position)
            if found is None or chunk.end_reason is not None:
                return None
            largest = max(largest, found)
        return largest


def largest_record(
    filler: RecordFiller, batches: wire.Batches, data: wire.Bytes | None, data_position: int
) -> int | None:
    """Return the bytes of the largest record of some batches; 0: they have none.

    It is key, value, headers and offset with their lengths, as a batch v2 holds them before it is
    compressed, without the record's own length and timestamp; a message v0 or v1 counts as the
    first record of such a batch. None: some record cannot be decoded.

    Args:
        filler: decodes keys, values and headers.
        batches: the batches.
        data: their bytes; None: more than are decoded.
        data_position: the byte of the file at which ``data`` begins.
    """
    if not batches.shape[1]:
        return 0
    if data is None or (batches[wire.BATCH_MAGIC] > layout.MAGIC_V2).any():
        return None
    largest = 0
    for rows in filler.fill(batches, data, data_position):
        if filler.errors:
            return None
        columns = filler.columns
        batch = columns.rows[filling.ROW_BATCH, :rows]
        deltas = columns.rows[filling.ROW_OFFSET, :rows] - batches[wire.BATCH_BASE_OFFSET, batch]
        deltas[batches[wire.BATCH_MAGIC, batch] < layout.MAGIC_V2] = 0
        largest = max(largest, int(bytes_but_times(columns, rows, deltas).max(initial=0)))
    return largest
