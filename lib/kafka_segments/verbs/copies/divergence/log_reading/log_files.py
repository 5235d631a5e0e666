"""Read batches and records of copies from their files, where digests of ranges differ."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.tier.tiered_names import parse_object_name
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.copies.divergence.decide.copies import UNBOUNDED, CopyPiece
from kafka_segments.verbs.copies.divergence.decide.joined_ranges import Part
from kafka_segments.verbs.copies.divergence.decide.record_fields import HeldRecords
from kafka_segments.verbs.copies.divergence.log_reading.record_reading import (
    MOST_BATCH_BYTES,
    RecordReader,
)
from kafka_segments.verbs.copies.divergence.log_reading.sound_batches import SoundBatches, Stretch

_BATCH_ROWS = [
    *(wire.BATCH_POSITION, wire.BATCH_SIZE_BYTES, wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET),
    *(wire.BATCH_LEADER_EPOCH, wire.BATCH_MAGIC, wire.BATCH_CRC),
    *(wire.BATCH_ATTRIBUTES, wire.BATCH_PRODUCER_ID),
]
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
    """Reads what ``decide.logs`` asks for.

    With ``are_apart`` copies are of several clusters: what each has of its own, as leader epochs
    and producers, is left out.
    """

    def __init__(
        self, *, check_crc: bool = True, are_apart: bool = False, open_log: Open = open_file
    ) -> None:
        self._open = open_log
        self._are_apart = are_apart
        self._sound = SoundBatches(check_crc=check_crc)
        bodies = ChunkOptions(needs_body=True, max_batch_bytes=MOST_BATCH_BYTES)
        self._bodies = ChunkReader(bodies)
        self._records = RecordReader()
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
                    if self._are_apart:
                        columns[_BATCH_ROWS.index(wire.BATCH_LEADER_EPOCH)] = -1
                    rows = columns.T.tolist()
                    found += [_batch(part.path, row) for row in rows]
        return [one for one in found if piece.base <= one.base and one.last <= piece.last]

    def records(self, copy: str, piece: CopyPiece) -> HeldRecords | None:
        """Return the records of a batch, None where they cannot be decoded.

        Raises:
            FileChangedError: a file has become shorter since the batch was read.
            OSError: a file cannot be read.
        """
        del copy
        found = HeldRecords.none()
        for part in piece.where:
            with self._open(part.path) as read_into:
                rest = shifted(counted(read_into, self._total), part.position)
                for chunk in self._bodies.read(rest, size_bytes=part.end_position - part.position):
                    records = self._records.of(chunk, are_apart=self._are_apart)
                    if records is None:
                        return None
                    found.add(records)
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


def _batch(path: str, row: Sequence[int]) -> CopyPiece:
    """Return a batch, of its values of ``_BATCH_ROWS``."""
    position, size, base, last, epoch, magic, crc, attributes, producer = row
    stored = magic, size, crc
    where = (BatchAt(path, position, position + size),)
    ends = producer if producer >= 0 and attributes & layout.CONTROL else None
    content = (base, last, epoch, *stored)
    return CopyPiece(base, last, epoch, epoch, content, stored, where, ends)
