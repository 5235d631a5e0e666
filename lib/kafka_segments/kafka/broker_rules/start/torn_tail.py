"""Tell a torn tail from damage with sound batches behind it.

A write that a crash cut short leaves a batch without its end, or zeros, or a page of zeros inside
the last batch. Behind damage of another kind the log goes on: there is a batch whose checksum fits
and whose offsets go on from the last sound one. A broker cuts off either; it loses more by the
second.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import FileChangedError
from kafka_segments.kafka.broker_rules.start.node import sum_or_none
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.batches import Bytes
from kafka_segments.kafka.wire.crc import crc32c
from kafka_segments.kafka.wire.reading import ReadInto

_WINDOW_BYTES = 4 * 1024 * 1024
_MOST_BATCH_BYTES = 256 * 1024 * 1024
_MOST_HEADERS = 1_000_000
_OFFSETS_AHEAD = 2**31
_LEAST_LENGTH = layout.HEADER_BYTES - layout.LOG_OVERHEAD


class Tail(NamedTuple):
    """What stands behind the last sound batch of a segment.

    ``records``: how many records the torn batches claim. ``sound_at``: where a sound batch begins
    again; None: nowhere.
    """

    records: int
    sound_at: int | None


def read_tail(read_into: ReadInto, *, start: int, end: int, next_offset: int) -> Tail:
    """Read what stands behind the last sound batch, from ``start`` to the end of the file.

    Raises:
        FileChangedError: the file ended before ``end``.
        OSError: whatever ``read_into`` raises.
    """
    sound = _sound_batches(read_into, start, end, next_offset)
    records = records_by_headers(read_into, start=start, end=end, next_offset=next_offset)
    return Tail(records or 0, next(sound, None))


def records_by_headers(
    read_into: ReadInto, *, start: int, end: int, next_offset: int | None = None
) -> int | None:
    """Return how many records the headers from ``start`` on tell of; None: there are none.

    Headers are followed from one to the next as long as they are of batches v2 of a possible size,
    and no further than a million. Of the last batch, a part may be missing. None stands, too, for a
    header that cannot be true, as in damage.

    Args:
        read_into: reads the file.
        start: where the first header may begin.
        end: where the file ends.
        next_offset: headers with offsets that do not go on from here are none, as behind a torn
            write; None: any offset counts, as behind damage of other kinds.

    Raises:
        FileChangedError: the file ended before ``end``.
        OSError: whatever ``read_into`` raises.
    """
    claims: list[_Claim] = []
    position = start
    for _ in range(_MOST_HEADERS):
        if end - position < layout.HEADER_BYTES:
            break
        header = _read(read_into, position, layout.HEADER_BYTES, end)
        length, count = _int(header, layout.LENGTH, 4), _int(header, layout.RECORD_COUNT, 4)
        if header[layout.MAGIC] != layout.MAGIC_V2 or length < _LEAST_LENGTH or count < 0:
            break
        offset = _int(header, layout.BASE_OFFSET, 8)
        if next_offset is not None and not 0 <= offset - next_offset < _OFFSETS_AHEAD:
            break
        claims.append(_Claim(offset, _int(header, layout.LAST_OFFSET_DELTA, 4) + 1, count))
        position += layout.LOG_OVERHEAD + length
    if not claims:
        return None
    return sum_or_none(_believed(*pair) for pair in zip_longest(claims, claims[1:]))


class _Claim(NamedTuple):
    """What a header says: its first offset, how many offsets and how many records it has."""

    offset: int
    offsets: int
    records: int


def _believed(claim: _Claim, after: _Claim | None) -> int | None:
    """Return how many records a batch has, by a header that may be the damage; None: not known.

    A batch has no more records than offsets. Where it claims more, its offsets count if the next
    batch goes on from them.
    """
    if claim.records <= claim.offsets:
        return claim.records
    goes_on = after is not None and after.offset == claim.offset + claim.offsets
    return claim.offsets if goes_on else None


def _sound_batches(read_into: ReadInto, start: int, end: int, next_offset: int) -> Iterator[int]:
    """Yield where sound batches begin whose offsets go on from the last sound one's."""
    for position in range(start, end, _WINDOW_BYTES):
        length = min(_WINDOW_BYTES + layout.HEADER_BYTES, end - position)
        window = _read(read_into, position, length, end)
        for at in _candidates(window, next_offset):
            if _is_sound(read_into, position + at, window[at:], end):
                yield position + at


def _candidates(window: Bytes, next_offset: int) -> list[int]:
    """Return where a header may begin, by its magic, its length and its offset."""
    last = len(window) - layout.HEADER_BYTES
    magics = window[layout.MAGIC : last + layout.MAGIC + 1] if last >= 0 else window[:0]
    starts = np.flatnonzero(magics == layout.MAGIC_V2)
    fields = window[starts[:, None] + np.arange(layout.LENGTH + 4)]
    offsets = np.ascontiguousarray(fields[:, : layout.LENGTH]).view(">i8").ravel()
    lengths = np.ascontiguousarray(fields[:, layout.LENGTH :]).view(">i4").ravel()
    goes_on = (offsets >= next_offset) & (offsets - next_offset < _OFFSETS_AHEAD)
    has_size = (lengths >= _LEAST_LENGTH) & (lengths <= _MOST_BATCH_BYTES)
    found: list[int] = starts[goes_on & has_size].tolist()
    return found


def _is_sound(read_into: ReadInto, position: int, header: Bytes, end: int) -> bool:
    size = layout.LOG_OVERHEAD + _int(header, layout.LENGTH, 4)
    if position + size > end:
        return False
    batch = _read(read_into, position, size, end)
    return crc32c(batch[layout.CRC_FROM :]) == _int(batch, layout.CRC, 4, signed=False)


def _int(data: Bytes, at: int, size: int, *, signed: bool = True) -> int:
    return int.from_bytes(data[at : at + size].tobytes(), "big", signed=signed)


def _read(read_into: ReadInto, position: int, length: int, end: int) -> Bytes:
    data = np.empty(length, dtype=np.uint8)
    if read_into(position, memoryview(data)) < length:
        raise FileChangedError(position, end)
    return data
