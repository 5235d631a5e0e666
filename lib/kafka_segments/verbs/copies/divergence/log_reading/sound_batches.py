"""Read the sound batches of a segment, also those behind damage."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import FileChangedError
from kafka_segments.files.segments.chunks import ChunkOptions, ChunkReader
from kafka_segments.kafka.index.segment.offset_ranges import find_header
from kafka_segments.kafka.index.segment.splitting import shifted
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.reading import ReadInto
from kafka_segments.verbs.copies.divergence.decide.copies import (
    UNBOUNDED,
    CopyDamage,
    CopyDamageKind,
)
from kafka_segments.verbs.copies.divergence.log_reading.fitting_batches import fitting

_WINDOW_BYTES = 4 * 1024 * 1024
_REACH = 2**31  # offsets that a segment can hold, as Kafka rolls it
_MOST_DAMAGES = 1000  # of a segment; what is behind counts to the last
_ZEROS = "zeros to the end of the file, and another segment follows"
_MOST_RESUMED = 256  # times that a segment is read on behind damage


class Stretch(NamedTuple):
    """Bytes of a segment, from ``position`` to before ``end``.

    Attributes:
        low: its batches have no offsets below this.
        limit: nor at or above this, because the next segment begins there.
        is_last: no segment follows.
    """

    position: int
    end: int
    low: int
    limit: int = UNBOUNDED
    is_last: bool = True


class Sound(NamedTuple):
    """Some sound batches (``wire.batches``), in order.

    ``next_offset`` follows the batch in front of them; -1: damage lies between.
    """

    batches: wire.Batches
    next_offset: int


class SoundBatches:
    """Reads one stretch after another, with buffers that are made once.

    1. A batch whose checksum or size is wrong is damage. The walk goes on at the next place that
       may be a header, so that a bad batch hides no other.
    2. So is a batch whose magic no format has, and one whose offsets do not fit its segment or the
       batches around it: the checksum covers neither.
    3. At the end of a log's last segment, a batch without all of its bytes is torn, and zeros are
       what preallocation leaves. In any other segment both are damage.

    ``damages`` are those of the stretch that was read last.
    """

    def __init__(self, *, check_crc: bool = True) -> None:
        self._chunks = ChunkReader(ChunkOptions(needs_body=False, check_crc=check_crc))
        self._window = np.empty(0, dtype=np.uint8)
        self.damages: list[CopyDamage] = []

    def read(self, read_into: ReadInto, stretch: Stretch) -> Iterator[Sound]:
        """Yield the sound batches of a stretch; their positions are those of the file.

        Raises:
            FileChangedError: the file ended before the stretch does.
            OSError: whatever ``read_into`` raises.
        """
        reach = min(stretch.limit, stretch.low + _REACH)
        stretch = stretch._replace(limit=reach)
        found = _Found(stretch)
        self.damages = found.damages
        start, resumed = stretch.position, 0
        while True:
            end = None
            rest = shifted(read_into, start)
            for chunk in self._chunks.read(rest, size_bytes=stretch.end - start):
                if chunk.end_reason is not None:
                    end = start + chunk.end_position, chunk.end_reason
                else:
                    batches = np.ascontiguousarray(chunk.batches)
                    batches[wire.BATCH_POSITION] += start
                    yield from found.sound(batches)
            yield from found.rest()
            if end is None:
                if (
                    found.end < stretch.end and not stretch.is_last
                ):  # a roll trims preallocated ones
                    found.open(found.end, _ZEROS, CopyDamageKind.ROT)
                found.close(stretch.limit)
                return
            found.open(*end, CopyDamageKind.ROT)
            behind = stretch._replace(position=end[0], low=found.next_offset)
            at = self._resume_at(read_into, behind)
            if at is None or resumed == _MOST_RESUMED:
                is_torn = stretch.is_last and at is None and _is_cut_off(read_into, behind)
                found.close(stretch.limit, is_torn=is_torn)
                return
            start, resumed = at, resumed + 1

    def _resume_at(self, read_into: ReadInto, stretch: Stretch) -> int | None:
        """Return where to go on behind the bad batch that a stretch begins with; None: nowhere.

        1. A size that is wrong can lead across sound batches: the next one begins with the offset
           behind the last one that the bad batch says.
        2. It is behind the batch if the batch's size leads to a header or to the end: a compressed
           message can contain what looks like a batch.
        3. Else it is at the first bytes that may begin one.
        """
        if not len(self._window):
            self._window = np.empty(_WINDOW_BYTES, dtype=np.uint8)
        position = stretch.position + _size_at(read_into, stretch)
        if stretch.position + layout.MIN_BATCH_BYTES <= position <= stretch.end:
            follower = self._follower_inside(read_into, stretch, position)
            if follower is not None:
                return follower
            if position == stretch.end or self._is_header(read_into, stretch, position):
                return position
        return self._find(read_into, stretch, stretch.end)

    def _follower_inside(self, read_into: ReadInto, stretch: Stretch, end: int) -> int | None:
        """Return where the batch begins that follows a bad batch v2 by its offsets, before ``end``.

        A message v0 or v1 holds messages itself, and is left out.
        """
        if stretch.end - stretch.position < layout.HEADER_BYTES:
            return None
        header = np.empty(layout.HEADER_BYTES, dtype=np.uint8)
        _read_all(read_into, stretch, stretch.position, header)
        if header[layout.MAGIC] != layout.MAGIC_V2:
            return None
        base, delta = (
            int.from_bytes(header[at : at + width].tobytes(), "big", signed=True)
            for at, width in ((layout.BASE_OFFSET, 8), (layout.LAST_OFFSET_DELTA, 4))
        )
        following = base + delta + 1
        if not stretch.low < following < stretch.limit:
            return None
        one = stretch._replace(low=following, limit=following + 1)
        return self._find(read_into, one, end)

    def _find(self, read_into: ReadInto, stretch: Stretch, end: int) -> int | None:
        """Return the first place behind the start of a stretch that may begin a batch."""
        position = stretch.position + 1
        while end - position >= layout.HEADER_BYTES:
            length = min(len(self._window), end - position)
            at = self._header_in(read_into, stretch, position, length)
            if at >= 0:
                return position + at
            position += length - layout.HEADER_BYTES + 1
        return None

    def _is_header(self, read_into: ReadInto, stretch: Stretch, position: int) -> bool:
        if stretch.end - position < layout.HEADER_BYTES:
            return False
        return self._header_in(read_into, stretch, position, layout.HEADER_BYTES) == 0

    def _header_in(self, read_into: ReadInto, stretch: Stretch, position: int, length: int) -> int:
        """Return the first place among some bytes that may begin a batch; -1: there is none."""
        piece = self._window[:length]
        _read_all(read_into, stretch, position, piece)
        left = stretch.end - position
        return int(find_header(piece, length, stretch.low, stretch.limit - 1, left))


def _read_all(read_into: ReadInto, stretch: Stretch, position: int, piece: wire.Bytes) -> None:
    read = read_into(position, memoryview(piece))
    if read < len(piece):
        raise FileChangedError(position + read, stretch.end)


class _Found:
    """What is found in one stretch so far."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self._broken: tuple[int, str, CopyDamageKind] | None = None
        self._waiting: wire.Batches | None = None
        self.damages: list[CopyDamage] = []
        self.next_offset = stretch.low
        self.end = stretch.position

    def sound(self, batches: wire.Batches) -> Iterator[Sound]:
        """Yield those of some batches that fit their place.

        The last one waits for the next if it leaves a gap: that shows which of them is wrong.
        """
        if self._waiting is not None:
            batches = np.concatenate((self._waiting, batches), axis=1)
            self._waiting = None
        if self._leaves_gap(batches):
            self._waiting = batches[:, -1:].copy()
            batches = batches[:, :-1]
        yield from self._fitting(batches)

    def rest(self) -> Iterator[Sound]:
        """Yield the batch that waits, if there is one and it fits: no batch follows it."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            yield from self._fitting(waiting)

    def _leaves_gap(self, batches: wire.Batches) -> bool:
        """Tell whether the last of some batches leaves a gap behind the one in front of it."""
        if not batches.shape[1]:
            return False
        before = (
            self.next_offset if batches.shape[1] == 1 else batches[wire.BATCH_LAST_OFFSET, -2] + 1
        )
        return bool(batches[wire.BATCH_BASE_OFFSET, -1] > before)

    def _fitting(self, batches: wire.Batches) -> Iterator[Sound]:
        if batches.shape[1]:
            self.end = int(batches[wire.BATCH_POSITION, -1] + batches[wire.BATCH_SIZE_BYTES, -1])
        low, limit = self._stretch.low, self._stretch.limit
        good = fitting(batches, low, limit, self.next_offset)
        first = 0
        for bad in [*np.flatnonzero(~good).tolist(), batches.shape[1]]:
            if bad > first:
                yield self._sound(batches[:, first:bad])
            if bad < batches.shape[1]:
                self._open_unfit(batches[:, bad])
            first = bad + 1

    def open(self, position: int, reason: str, kind: CopyDamageKind) -> None:
        """Note that what stands at ``position`` is not a sound batch that belongs there."""
        if self._broken is None:
            self._broken = position, reason, kind

    def close(self, until: int, *, is_torn: bool = False) -> None:
        """Note that the damage, if there is any, ends where offset ``until`` begins."""
        if self._broken is not None:
            position, reason, kind = self._broken
            kind = CopyDamageKind.TORN if is_torn else kind
            if len(self.damages) < _MOST_DAMAGES:
                self.damages.append(CopyDamage(kind, self.next_offset, until, position, reason))
            else:
                self.damages[-1] = self.damages[-1]._replace(until=until)
            self._broken = None

    def _sound(self, batches: wire.Batches) -> Sound:
        next_offset = self.next_offset if self._broken is None else -1
        self.close(int(batches[wire.BATCH_BASE_OFFSET, 0]))
        self.next_offset = int(batches[wire.BATCH_LAST_OFFSET, -1]) + 1
        return Sound(batches, next_offset)

    def _open_unfit(self, batch: npt.NDArray[np.int64]) -> None:
        """Note a batch with a right checksum that does not fit its place."""
        position, base, last, magic = batch[
            [
                *(wire.BATCH_POSITION, wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET),
                wire.BATCH_MAGIC,
            ]
        ].tolist()
        if 0 <= magic <= layout.MAGIC_V2:
            span = f"{self.next_offset} to below {self._stretch.limit}"
            reason = f"offsets {base} to {last}, {span} expected"
            self.open(position, reason, CopyDamageKind.MISPLACED)
        else:
            reason = f"magic is {magic}, 0 to {layout.MAGIC_V2} expected"
            self.open(position, reason, CopyDamageKind.ROT)


def _is_cut_off(read_into: ReadInto, stretch: Stretch) -> bool:
    """Tell whether a stretch begins with a batch whose size exceeds the bytes that are left."""
    left = stretch.end - stretch.position
    return left <= layout.UP_TO_MAGIC or _size_at(read_into, stretch) > left


def _size_at(read_into: ReadInto, stretch: Stretch) -> int:
    """Return the size in the header at the beginning of a stretch, which can be any number."""
    size = bytearray(4)
    read_into(stretch.position + layout.LENGTH, memoryview(size))
    return layout.LOG_OVERHEAD + int.from_bytes(size, "big", signed=True)
