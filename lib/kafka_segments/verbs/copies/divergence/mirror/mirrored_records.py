"""Read those records of a log that a mirror can have: those that clients wrote."""

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.verbs.copies.divergence.log_reading.batch_facts import batch_facts, is_control
from kafka_segments.verbs.copies.divergence.log_reading.log_files import Open, open_file
from kafka_segments.verbs.copies.divergence.log_reading.record_reading import (
    RecordReader,
    digest64,
    formed_records,
    has_value,
    key_digest,
)
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrored_log import MirroredLog
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrors import OffsetSync

_INT16, _INT32, _SYNC = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">qq")


class LogSegments(NamedTuple):
    """A log's segments as (path, size in bytes), in the order of their offsets, and its start."""

    segments: Sequence[tuple[str, int]]
    start: int


class ReadMirror(NamedTuple):
    """The records of a log, and what could not be read of it, in words."""

    log: MirroredLog
    problems: tuple[str, ...]


class MirrorReader:
    """Reads logs one after another, with buffers that are made once."""

    def __init__(self, open_log: Open = open_file) -> None:
        self._open = open_log
        self._chunks = ChunkReader(ChunkOptions(needs_body=True))
        self._records = RecordReader()

    def read(self, found: LogSegments) -> ReadMirror:
        """Return the records of a log from its start on.

        Raises:
            FileChangedError: a file has become shorter since it was listed.
            OSError: a file cannot be read.
        """
        records = _Records(found.start)
        problems = []
        file = None
        for path, chunk in self._chunks_of(found):
            if path != file:
                file = path
                records.begin_segment()
            if chunk.end_reason is not None:
                problems.append(f"{path} at byte {chunk.end_position}: {chunk.end_reason}")
            elif not self._add(chunk, records):
                problems.append(f"{path}: a batch cannot be decoded")
        return ReadMirror(records.log(), tuple(problems))

    def syncs(self, found: LogSegments, topic: str, partition: int) -> list[OffsetSync]:
        """Return what a mirror maker noted of one partition of the source.

        Source: OffsetSync of connect-mirror (4.3.1): the key is topic and partition, the value the
        offset in the source and that in the mirror.

        Raises:
            FileChangedError: a file has become shorter since it was listed.
            OSError: a file cannot be read.
        """
        name = topic.encode()
        key = _INT16.pack(len(name)) + name + _INT32.pack(partition)
        syncs: list[OffsetSync] = []
        for _, chunk in self._chunks_of(found):
            for formed in self._records.forms(chunk):
                syncs += _syncs_in(formed or b"", key)
        return syncs

    def _chunks_of(self, found: LogSegments) -> Iterator[tuple[str, Chunk]]:
        for path, size_bytes in found.segments:
            with self._open(path) as read_into:
                for chunk in self._chunks.read(read_into, size_bytes=size_bytes):
                    yield path, chunk

    def _add(self, chunk: Chunk, records: "_Records") -> bool:
        """Add the records of a chunk; return whether all batches could be decoded."""
        is_whole = True
        for batch, formed in enumerate(self._records.forms(chunk)):
            facts = batch_facts(chunk, batch)
            base, last = chunk.batches[
                [wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET], batch
            ].tolist()
            if is_control(chunk, batch):
                records.pass_over(base, last)
                if facts.is_commit is not None:
                    records.settle(facts.producer_id, is_commit=facts.is_commit)
            elif formed is None:
                records.pass_over(base, last)
                is_whole = False
            else:
                is_stamped = _has_timestamps(chunk, batch)
                records.add(formed, last, facts.producer_id, is_stamped=is_stamped)
        return is_whole


def _has_timestamps(chunk: Chunk, batch: int) -> bool:
    """Tell whether the records of a batch have the timestamps that their producers gave them."""
    magic, attributes = chunk.batches[[wire.BATCH_MAGIC, wire.BATCH_ATTRIBUTES], batch].tolist()
    return magic > 0 and not attributes & layout.LOG_APPEND_TIME


def _syncs_in(formed: bytes, key: bytes) -> Iterator[OffsetSync]:
    for record in formed_records(formed):
        value = formed[record.value + 4 : record.value + 4 + _SYNC.size]
        if formed[record.key + 4 : record.value] == key and len(value) == _SYNC.size:
            yield OffsetSync(*_SYNC.unpack(value))


class _Records:
    """Takes a log's records batch by batch, from its start offset on."""

    def __init__(self, start: int) -> None:
        self._start = self._next = start
        self._gaps = 0
        self._is_first = self._is_thinned = False
        self._offsets, self._holes = array("q"), array("q")
        self._digests, self._keys = array("Q"), array("Q")
        self._timestamps = array("q")
        self._tombstones, self._stamped = bytearray(), bytearray()
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._aborted: list[tuple[int, int]] = []

    def begin_segment(self) -> None:
        """Go on with another file; what lacks in front of its first batch is not inside of one."""
        self._is_first = True

    def pass_over(self, base: int, last: int) -> None:
        """Take a batch of which no record counts."""
        self._reach(base, last + 1)
        self._end_batch(last)

    def add(self, formed: bytes, last: int, producer_id: int | None, *, is_stamped: bool) -> None:
        """Take a batch that ends at ``last``; ``producer_id``: of its transaction."""
        first = len(self._offsets)
        for record in formed_records(formed):
            self._reach(record.offset, record.offset + 1)
            key = key_digest(formed, record)
            self._offsets.append(record.offset)
            self._digests.append(digest64(formed[record.key : record.end]))
            self._keys.append(key)
            self._timestamps.append(record.timestamp)
            self._stamped.append(is_stamped)
            self._tombstones.append(key != 0 and not has_value(formed, record))
        self._end_batch(last)
        if producer_id is not None:
            self._open.setdefault(producer_id, []).append((first, len(self._offsets)))

    def settle(self, producer_id: int | None, *, is_commit: bool) -> None:
        """End a producer's transaction."""
        places = self._open.pop(-1 if producer_id is None else producer_id, [])
        if not is_commit:
            self._aborted += places

    def log(self) -> MirroredLog:
        """Return what was taken, from the log start offset on."""
        offsets = np.frombuffer(self._offsets, dtype=np.int64)
        aborted = np.zeros(len(offsets), dtype=np.bool_)
        for low, high in self._aborted:
            aborted[low:high] = True
        first = int(np.searchsorted(offsets, self._start))
        return MirroredLog(
            self._start,
            self._next,
            offsets[first:],
            np.frombuffer(self._digests, dtype=np.uint64)[first:],
            np.frombuffer(self._keys, dtype=np.uint64)[first:],
            np.frombuffer(self._tombstones, dtype=np.bool_)[first:],
            aborted[first:],
            np.frombuffer(self._timestamps, dtype=np.int64)[first:],
            np.frombuffer(self._stamped, dtype=np.bool_)[first:],
            np.frombuffer(self._holes, dtype=np.int64),
            self._gaps,
        )

    def _reach(self, offset: int, until: int) -> None:
        """Go on to what stands from an offset to before another; note what lacks in front of it."""
        if offset > self._next:
            self._holes.append(self._next)
            self._is_thinned |= not self._is_first
        self._next = max(self._next, until)
        self._is_first = False

    def _end_batch(self, last: int) -> None:
        self._is_first = False
        self._reach(last + 1, last + 1)
        self._gaps += self._is_thinned
        self._is_thinned = False
