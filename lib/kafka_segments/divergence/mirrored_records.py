"""Read those records of a log that a mirror can have: those that clients wrote."""

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafka_segments.divergence.batch_facts import batch_facts, is_control
from kafka_segments.divergence.decide.mirrors import MirroredLog, OffsetSync
from kafka_segments.divergence.log_files import (
    Open,
    RecordDigests,
    digest64,
    formed_records,
    has_value,
    key_digest,
    open_file,
)
from kafka_segments.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.wire import batches as wire

_INT16, _INT32, _SYNC = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">qq")


class LogSegments(NamedTuple):
    """The segments of a log as (path, size in bytes), in the order of their offsets.

    ``start``: its log start offset. ``is_compacted``: a checkpoint says that it was compacted.
    """

    segments: Sequence[tuple[str, int]]
    start: int
    is_compacted: bool = False


class ReadMirror(NamedTuple):
    """The records of a log, and what could not be read of it, in words."""

    log: MirroredLog
    problems: tuple[str, ...]


class MirrorReader:
    """Reads logs one after another, with buffers that are made once."""

    def __init__(self, open_log: Open = open_file) -> None:
        self._open = open_log
        self._chunks = ChunkReader(ChunkOptions(needs_body=True))
        self._digests = RecordDigests()

    def read(self, found: LogSegments) -> ReadMirror:
        """Return the records of a log from its start on.

        Raises:
            FileChangedError: a file has become shorter since it was listed.
            OSError: a file cannot be read.
        """
        records = _Records()
        problems = []
        for path, chunk in self._chunks_of(found):
            if chunk.end_reason is not None:
                problems.append(f"{path} at byte {chunk.end_position}: {chunk.end_reason}")
            elif not self._add(chunk, records):
                problems.append(f"{path}: a batch cannot be decoded")
        log = records.log(found.start, is_compacted=found.is_compacted)
        return ReadMirror(log, tuple(problems))

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
            for formed in self._digests.forms(chunk):
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
        for batch, formed in enumerate(self._digests.forms(chunk)):
            facts = batch_facts(chunk, batch)
            base, last = chunk.batches[
                [wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET], batch
            ].tolist()
            records.end = last + 1
            if facts.is_commit is not None:
                records.settle(facts.producer_id, is_commit=facts.is_commit)
            elif not is_control(chunk, batch):
                records.is_thinned |= facts.records < last - base + 1
                is_whole &= formed is not None
                records.add(formed or b"", facts.producer_id)
        return is_whole


def _syncs_in(formed: bytes, key: bytes) -> Iterator[OffsetSync]:
    for record in formed_records(formed):
        value = formed[record.value + 4 : record.value + 4 + _SYNC.size]
        if formed[record.key + 4 : record.value] == key and len(value) == _SYNC.size:
            yield OffsetSync(*_SYNC.unpack(value))


class _Records:
    """Takes a log's records batch by batch."""

    def __init__(self) -> None:
        self.end = 0
        self.is_thinned = False
        self._offsets = array("q")
        self._digests, self._keys = array("Q"), array("Q")
        self._tombstones = bytearray()
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._aborted: list[tuple[int, int]] = []

    def add(self, formed: bytes, producer_id: int | None) -> None:
        """Take the records of a batch; ``producer_id``: of its transaction."""
        first = len(self._offsets)
        for record in formed_records(formed):
            key = key_digest(formed, record)
            self._offsets.append(record.offset)
            self._digests.append(digest64(formed[record.key : record.end]))
            self._keys.append(key)
            self._tombstones.append(key != 0 and not has_value(formed, record))
        if producer_id is not None:
            self._open.setdefault(producer_id, []).append((first, len(self._offsets)))

    def settle(self, producer_id: int | None, *, is_commit: bool) -> None:
        """End a producer's transaction."""
        places = self._open.pop(-1 if producer_id is None else producer_id, [])
        if not is_commit:
            self._aborted += places

    def log(self, start: int, *, is_compacted: bool) -> MirroredLog:
        """Return what was taken, from a log start offset on."""
        offsets = np.frombuffer(self._offsets, dtype=np.int64)
        aborted = np.zeros(len(offsets), dtype=np.bool_)
        for low, high in self._aborted:
            aborted[low:high] = True
        first = int(np.searchsorted(offsets, start))
        return MirroredLog(
            start,
            max(start, self.end),
            offsets[first:],
            np.frombuffer(self._digests, dtype=np.uint64)[first:],
            np.frombuffer(self._keys, dtype=np.uint64)[first:],
            np.frombuffer(self._tombstones, dtype=np.bool_)[first:],
            aborted[first:],
            is_compacted or self.is_thinned,
        )
