"""Read what batches of copies mean to clients: records, transactions, markers."""

from contextlib import ExitStack

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.kafka.index.segment.markers import decode_marker, read_marker
from kafka_segments.kafka.index.segment.producer_batches import COMMIT, UNUSUAL
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece
from kafka_segments.verbs.copies.divergence.decide.transactions import ClientBatch
from kafka_segments.verbs.copies.divergence.log_reading.log_files import BatchAt, Open, open_file


class BatchFactsReader:
    """Reads one batch after another, and keeps the last file open. Use it in ``with``."""

    def __init__(self, open_log: Open = open_file) -> None:
        self._open = open_log
        self._chunks = ChunkReader(ChunkOptions(needs_body=True, check_crc=False))
        self._known: dict[object, ClientBatch] = {}
        self._opened = ExitStack()
        self._path = ""
        self._read_into: ReadInto | None = None

    def __enter__(self) -> "BatchFactsReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def of(self, piece: CopyPiece) -> ClientBatch:
        """Return the facts of a piece that is one batch.

        Raises:
            FileChangedError: the file has become shorter since the batch was read.
            OSError: the file cannot be read.
        """
        known = self._known.get(piece.content)
        if known is None:
            known = self._known[piece.content] = self._read(piece.where[0])
        return known

    def _read(self, batch: BatchAt) -> ClientBatch:
        if self._read_into is None or batch.path != self._path:
            self._opened.close()
            self._read_into = self._opened.enter_context(self._open(batch.path))
            self._path = batch.path
        rest = shifted(self._read_into, batch.position)
        size_bytes = batch.end_position - batch.position
        chunk = next(iter(self._chunks.read(rest, size_bytes=size_bytes)))
        return batch_facts(chunk, 0)


def is_control(chunk: Chunk, batch: int) -> bool:
    """Tell whether a batch of a chunk is a marker, or was one until the cleaner emptied it."""
    magic, attributes = chunk.batches[[wire.BATCH_MAGIC, wire.BATCH_ATTRIBUTES], batch].tolist()
    return magic >= layout.MAGIC_V2 and bool(attributes & layout.CONTROL)


def batch_facts(chunk: Chunk, batch: int) -> ClientBatch:
    """Return the facts of one batch of a chunk with bodies."""
    header = chunk.batches[:, batch]
    base, last, count = header[
        [wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET, wire.BATCH_RECORD_COUNT]
    ].tolist()
    records = last - base + 1 if count < 0 else count
    if header[wire.BATCH_MAGIC] < layout.MAGIC_V2:
        return ClientBatch(records)
    attributes, producer_id = (
        int(header[wire.BATCH_ATTRIBUTES]),
        int(header[wire.BATCH_PRODUCER_ID]),
    )
    is_transactional = bool(attributes & layout.TRANSACTIONAL)
    if not attributes & layout.CONTROL:
        return ClientBatch(records, producer_id if is_transactional else None)
    if producer_id < 0 or chunk.data is None:
        return ClientBatch(0)
    start = int(header[wire.BATCH_POSITION]) - chunk.data_position
    data = np.ascontiguousarray(chunk.data[start : start + int(header[wire.BATCH_SIZE_BYTES])])
    kind, _, _ = read_marker(data, 0, len(data))
    if kind == UNUSUAL:
        kind = decode_marker(data).kind
    return ClientBatch(0, producer_id, bool(kind == COMMIT))
