"""Read batches and records of copies from their files, where digests of ranges differ."""

import hashlib
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import numpy as np

from kafka_segments.divergence.decide.copies import UNBOUNDED, CopyPiece
from kafka_segments.divergence.decide.logs import Records
from kafka_segments.divergence.decide.parts import Part
from kafka_segments.divergence.sound_batches import SoundBatches, Stretch
from kafka_segments.index.splitting import shifted
from kafka_segments.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.storage.files import open_segment, place
from kafka_segments.wire import batches as wire
from kafka_segments.wire import header_layout as layout
from kafka_segments.wire import record_form
from kafka_segments.wire.codecs import DecompressionError, Decompressor
from kafka_segments.wire.filling import new_failure
from kafka_segments.wire.reading import ReadInto
from kafka_segments.wire.sections import decompressed_records, record_sections
from kafka_segments.wire.tiered_names import parse_object_name

_MOST_BATCH_BYTES = 256 * 1024 * 1024
_OUT_BYTES = 64 * 1024
_DIGEST_BYTES = 16
_BATCH_ROWS = [
    *(wire.BATCH_POSITION, wire.BATCH_SIZE_BYTES, wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET),
    *(wire.BATCH_LEADER_EPOCH, wire.BATCH_MAGIC, wire.BATCH_CRC),
]
_NULL = (-1).to_bytes(4, "big", signed=True)
_INT32 = struct.Struct(">i")
Open = Callable[[str], AbstractContextManager[ReadInto]]


@contextmanager
def open_file(path: str) -> Iterator[ReadInto]:
    """Open a segment by its path or URI.

    Raises:
        OSError: it does not exist or cannot be read.
    """
    folder, _, name = path.rpartition("/")
    with open_segment(place(folder).child(name)) as file:
        yield file.read_into


@contextmanager
def open_sized(path: str, listed_bytes: int) -> Iterator[tuple[ReadInto, int]]:
    """Open a segment; yield it with its size: as listed, or of the log in an object of the tier.

    Raises:
        OSError: it does not exist or cannot be read.
    """
    folder, _, name = path.rpartition("/")
    with open_segment(place(folder).child(name)) as file:
        yield file.read_into, file.size_bytes if is_of_tier(path) else listed_bytes


def is_of_tier(path: str) -> bool:
    """Tell whether a segment is an object of tiered storage."""
    return parse_object_name(path.rpartition("/")[2]) is not None


class BatchAt(NamedTuple):
    """Where a batch lies."""

    path: str
    position: int
    end_position: int


class WholeSegment(NamedTuple):
    """A segment of a copy, as ``CopyFiles.batches`` reads parts."""

    path: str
    base_offset: int
    next_base: int | None
    end_position: int
    position: int = 0

    def as_piece(self) -> CopyPiece:
        """Return all of its batches as one piece."""
        return CopyPiece(0, UNBOUNDED - 1, -1, -1, None, where=(self,))


def stretch_of(part: Part | WholeSegment) -> Stretch:
    """Return the bytes of a part of a segment, of which damage is known."""
    stretch = Stretch(part.position, part.end_position, part.base_offset, is_last=False)
    return stretch if part.next_base is None else stretch._replace(limit=part.next_base)


class CopyFiles:
    """Reads what ``decide.logs`` asks for; without ``has_epochs``, batches get no leader epochs."""

    def __init__(
        self, *, check_crc: bool = True, has_epochs: bool = True, open_log: Open = open_file
    ) -> None:
        self._open = open_log
        self._has_epochs = has_epochs
        self._sound = SoundBatches(check_crc=check_crc)
        bodies = ChunkOptions(needs_body=True, max_batch_bytes=_MOST_BATCH_BYTES)
        self._bodies = ChunkReader(bodies)
        self._records = RecordDigests()
        self._total = [0]

    def batches(self, copy: str, piece: CopyPiece) -> list[CopyPiece]:
        """Return the sound batches of a range.

        Raises:
            FileChangedError: a file has become shorter since the range was read.
            OSError: a file cannot be read.
        """
        del copy
        found: list[CopyPiece] = []
        for part in piece.where:
            with self._open(part.path) as read_into:
                for sound in self._sound.read(counted(read_into, self._total), stretch_of(part)):
                    columns = sound.batches[_BATCH_ROWS]
                    if not self._has_epochs:
                        columns[_BATCH_ROWS.index(wire.BATCH_LEADER_EPOCH)] = -1
                    rows = columns.T.tolist()
                    found += [_batch(part.path, *row) for row in rows]
        return [one for one in found if piece.base <= one.base and one.last <= piece.last]

    def records(self, copy: str, piece: CopyPiece) -> Records | None:
        """Return digests of a batch's records, None where they cannot be decoded.

        Raises:
            FileChangedError: a file has become shorter since the batch was read.
            OSError: a file cannot be read.
        """
        del copy
        found: dict[int, bytes] = {}
        for part in piece.where:
            with self._open(part.path) as read_into:
                rest = shifted(counted(read_into, self._total), part.position)
                for chunk in self._bodies.read(rest, size_bytes=part.end_position - part.position):
                    records = self._records.of(chunk)
                    if records is None:
                        return None
                    found.update(records)
        return found

    @property
    def bytes_read(self) -> int:
        """How many bytes were read so far."""
        return self._total[0]


def counted(read_into: ReadInto, total: list[int]) -> ReadInto:
    """Read as ``read_into`` does, and add the bytes read to the first of ``total``."""

    def read(position: int, view: memoryview) -> int:
        length = read_into(position, view)
        total[0] += length
        return length

    return read


def _batch(
    path: str, position: int, size: int, base: int, last: int, epoch: int, magic: int, crc: int
) -> CopyPiece:
    stored = magic, size, crc
    where = (BatchAt(path, position, position + size),)
    return CopyPiece(base, last, epoch, epoch, (base, last, epoch, *stored), stored, where)


class RecordDigests:
    """Makes a digest of each record of one chunk after another (``wire.record_form``)."""

    def __init__(self) -> None:
        self._decompressor = Decompressor(_MOST_BATCH_BYTES)
        self._failure = new_failure()
        self._form = np.zeros(record_form.FORM_SLOTS, dtype=np.int64)
        self._out = np.empty(_OUT_BYTES, dtype=np.uint8)

    def of(self, chunk: Chunk) -> dict[int, bytes] | None:
        """Return a digest for each record, by its offset; None: a batch cannot be decoded."""
        if chunk.data is None:
            return None if chunk.batches.shape[1] or chunk.end_reason else {}
        found: dict[int, bytes] = {}
        for formed in self.forms(chunk):
            if formed is None:
                return None
            for record in formed_records(formed):
                digest = hashlib.blake2b(
                    formed[record.start : record.end], digest_size=_DIGEST_BYTES
                )
                found[record.offset] = digest.digest()
        return found

    def forms(self, chunk: Chunk) -> Iterator[bytes | None]:
        """Yield the records of each batch of a chunk in one form; None: it cannot be decoded."""
        if chunk.data is None:
            yield from [None] * chunk.batches.shape[1]
            return
        batches = np.ascontiguousarray(chunk.batches)
        starts, ends = record_sections(batches, chunk.data_position)
        for batch in range(batches.shape[1]):
            one = np.ascontiguousarray(batches[:, [batch]])
            stored = chunk.data[starts[batch] : ends[batch]]
            try:
                if one[wire.BATCH_ATTRIBUTES, 0] & layout.CODEC_MASK:
                    stored = decompressed_records(self._decompressor, stored, one[:, 0])
            except DecompressionError:
                yield None
                continue
            yield self._formed(stored, one)

    def _formed(self, data: wire.Bytes, batch: wire.Batches) -> bytes | None:
        """Return the records of a batch in one form, None where they cannot be decoded."""
        form = self._form
        form[:] = 0
        form[record_form.LEFT] = -1
        starts, ends = np.array([0]), np.array([len(data)])
        formed = bytearray()
        while True:
            status = record_form.form_batches(
                data, starts, ends, 1, batch, self._out, form, self._failure
            )
            formed += self._out[: int(form[record_form.USED])].tobytes()
            form[record_form.USED] = 0
            if status == record_form.WRITTEN:
                return bytes(formed)
            if status == record_form.FAILED:
                return None
            if len(self._out) < form[record_form.NEEDED]:
                self._out = np.empty(int(form[record_form.NEEDED]), dtype=np.uint8)


class FormedRecord(NamedTuple):
    """Where a record lies in what ``wire.record_form`` gives: its key and value with their lengths.

    ``start`` is that of its offset, ``end`` behind its headers.
    """

    offset: int
    start: int
    key: int
    value: int
    end: int


def formed_records(formed: bytes) -> Iterator[FormedRecord]:
    """Yield the records of ``formed``."""
    at = 0
    while at < len(formed):
        start, key = at, at + 8
        value = _behind(formed, key)
        at = _behind(formed, value)
        (headers,) = _INT32.unpack_from(formed, at)
        at += 4
        for _ in range(2 * headers):
            at = _behind(formed, at)
        offset = int.from_bytes(formed[start:key], "big", signed=True)
        yield FormedRecord(offset, start, key, value, at)


def digest64(data: bytes) -> int:
    """Return a digest of 64 bits."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def key_digest(formed: bytes, record: FormedRecord) -> int:
    """Return a digest of 64 bits of a record's key; 0: it has none."""
    key = formed[record.key : record.value]
    if key == _NULL:
        return 0
    return digest64(key) or 1


def has_value(formed: bytes, record: FormedRecord) -> bool:
    """Tell whether a record has a value, be it empty."""
    return not formed.startswith(_NULL, record.value)


def _behind(formed: bytes, at: int) -> int:
    (length,) = _INT32.unpack_from(formed, at)
    return at + 4 + max(int(length), 0)
