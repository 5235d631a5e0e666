"""Logs in memory, read with the package's own readers: what tests of indexes start from."""

from collections.abc import Iterator

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire.reading import FRONT_BYTES, Fetched, FetchedAt, ReadInto
from kafka_segments.kafka.wire.record_times import RecordTimes, RecordTimesReader


def reader_of(log: bytes) -> ReadInto:
    """Read a log from memory."""

    def read_into(position: int, view: memoryview) -> int:
        piece = log[position : position + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    return read_into


def fetched_of(log: bytes, step: int) -> FetchedAt:
    """Give a log as it was fetched, so many bytes at once; what was given must stay as it is."""
    given: list[tuple[np.ndarray, bytes]] = []

    def fetched_at(position: int) -> Fetched | None:
        for memory, data in given:
            assert memory[FRONT_BYTES:].tobytes() == data
        data = log[position : position + step]
        if position % step or not data:
            return None
        memory = np.full(FRONT_BYTES + len(data), 0xEE, dtype=np.uint8)
        memory[FRONT_BYTES:] = np.frombuffer(data, dtype=np.uint8)
        given.append((memory, data))
        return Fetched(memory, len(data))

    return fetched_at


def recovered(log: bytes, *, base_offset: int, interval_bytes: int = 4096) -> SegmentRecovery:
    """Recover a segment from its bytes."""
    recoverer = SegmentRecoverer(RecoveryOptions(index_interval_bytes=interval_bytes))
    return recoverer.recover(reader_of(log), size_bytes=len(log), base_offset=base_offset)


def chunks(log: bytes, *, needs_body: bool = True) -> Iterator[Chunk]:
    """Give a log's batches as they are read from a file."""
    yield from ChunkReader(ChunkOptions(needs_body=needs_body)).read(
        reader_of(log), size_bytes=len(log)
    )


def batches_of(log: bytes) -> wire.Batches:
    """Give a column for every batch of a log."""
    parts = [chunk.batches.copy() for chunk in chunks(log, needs_body=False)]
    return np.concatenate([np.empty((wire.BATCH_FIELDS, 0), dtype=np.int64), *parts], axis=1)


def record_times(log: bytes, *, max_batch_bytes: int = 1_000_000) -> Iterator[RecordTimes]:
    """Give the offset and timestamp of every record of a log."""
    reader = RecordTimesReader(max_batch_bytes=max_batch_bytes)
    for chunk in chunks(log):
        yield from reader.read(chunk.batches, chunk.data, chunk.data_position)
