"""Read the keys of records of copies, to tell compaction from loss."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece
from kafka_segments.verbs.copies.divergence.decide.keyed import Keyed, OfTransaction
from kafka_segments.verbs.copies.divergence.log_reading.batch_facts import batch_facts, is_control
from kafka_segments.verbs.copies.divergence.log_reading.log_files import (
    Open,
    WholeSegment,
    counted,
    open_file,
    stretch_of,
)
from kafka_segments.verbs.copies.divergence.log_reading.record_reading import (
    RecordReader,
    formed_records,
    has_value,
    key_digest,
)
from kafka_segments.verbs.copies.divergence.log_reading.sound_batches import SoundBatches


class KeyedLogs:
    """Reads what ``decide.lost_keys`` asks for.

    ``segments``: of each copy, by its name, in any order.
    """

    def __init__(
        self,
        segments: Mapping[str, Sequence[WholeSegment]],
        *,
        check_crc: bool = True,
        open_log: Open = open_file,
    ) -> None:
        self._segments = segments
        self._check_crc = check_crc
        self._open = open_log
        self._total = [0]
        self._pieces = self._reader()

    def own(self, copy: str, offset: int) -> Iterator[Keyed]:
        """Yield what a copy holds from the segment of an offset on.

        Raises:
            FileChangedError: a file has become shorter since it was listed.
            OSError: a file cannot be read.
        """
        reader = self._reader()  # its buffers are in use while others are read
        for segment in sorted(self._segments[copy], key=lambda one: one.base_offset):
            if segment.next_base is None or segment.next_base > offset:
                yield from reader.read(segment.as_piece())

    def held(self, piece: CopyPiece) -> list[Keyed]:
        """Return what the copy of a piece holds in it.

        Raises:
            FileChangedError: a file has become shorter since the piece was read.
            OSError: a file cannot be read.
        """
        return list(self._pieces.read(piece))

    def of_transactions(self, copy: str) -> list[OfTransaction]:
        """Return the batches of transactions, and the markers, that a copy holds, by their headers.

        Raises:
            FileChangedError: a file has become shorter since it was listed.
            OSError: a file cannot be read.
        """
        sound = SoundBatches(check_crc=False)
        found: list[OfTransaction] = []
        for segment in sorted(self._segments[copy], key=lambda one: one.base_offset):
            with self._open(segment.path) as read_into:
                read = counted(read_into, self._total)
                for one in sound.read(read, stretch_of(segment)):
                    found += _of_transactions(one.batches)
        return found

    @property
    def bytes_read(self) -> int:
        """How many bytes were read so far."""
        return self._total[0]

    def _reader(self) -> "_KeyReader":
        return _KeyReader(self._open, self._total, check_crc=self._check_crc)


class _KeyReader:
    """Reads one piece after another, with buffers that are made once."""

    def __init__(self, open_log: Open, total: list[int], *, check_crc: bool) -> None:
        self._open = open_log
        self._total = total
        self._sound = SoundBatches(check_crc=check_crc)
        self._bodies = ChunkReader(ChunkOptions(needs_body=True, check_crc=False))
        self._records = RecordReader()

    def read(self, piece: CopyPiece) -> Iterator[Keyed]:
        """Yield the records and markers of a piece's sound batches, ascending."""
        for part in piece.where:
            with self._open(part.path) as read_into:
                if piece.stored is not None:  # a batch alone, which is known to be sound
                    yield from self._between(read_into, part.position, part.end_position)
                    continue
                for sound in self._sound.read(counted(read_into, self._total), stretch_of(part)):
                    for position, end in _runs(sound.batches):
                        yield from self._between(read_into, position, end)

    def _between(self, read_into: ReadInto, position: int, end: int) -> Iterator[Keyed]:
        rest = shifted(counted(read_into, self._total), position)
        for chunk in self._bodies.read(rest, size_bytes=end - position):
            yield from self._keyed(chunk)

    def _keyed(self, chunk: Chunk) -> Iterator[Keyed]:
        for batch, formed in enumerate(self._records.forms(chunk)):
            base, count = chunk.batches[
                [wire.BATCH_BASE_OFFSET, wire.BATCH_RECORD_COUNT], batch
            ].tolist()
            facts = batch_facts(chunk, batch)
            if is_control(chunk, batch):
                if count:  # an empty one is of a transaction that is cleaned away: it ends nothing
                    yield Keyed(base, producer_id=facts.producer_id, is_commit=facts.is_commit)
            elif formed is None:
                yield Keyed(base, None)
            else:
                for record in formed_records(formed):
                    yield Keyed(
                        record.offset,
                        key_digest(formed, record),
                        has_value(formed, record),
                        facts.producer_id,
                    )


def _runs(batches: wire.Batches) -> Iterator[tuple[int, int]]:
    """Yield where batches that follow one another begin and end, in bytes."""
    starts = batches[wire.BATCH_POSITION]
    ends = starts + batches[wire.BATCH_SIZE_BYTES]
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    firsts, behind = [0, *breaks.tolist()], [*breaks.tolist(), len(starts)]
    for first, last in zip(firsts, behind, strict=True):
        yield int(starts[first]), int(ends[last - 1])


def _of_transactions(batches: wire.Batches) -> Iterator[OfTransaction]:
    attributes, producers = batches[[wire.BATCH_ATTRIBUTES, wire.BATCH_PRODUCER_ID]]
    is_of_one = (producers >= 0) & (attributes & (layout.TRANSACTIONAL | layout.CONTROL) != 0)
    rows = batches[[wire.BATCH_BASE_OFFSET, wire.BATCH_PRODUCER_ID, wire.BATCH_ATTRIBUTES]]
    for base, producer, flags in rows[:, is_of_one].T.tolist():
        yield OfTransaction(base, producer, bool(flags & layout.CONTROL))
