"""Put the ranges of each copy together from the parts that its segments hold."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece


class Part(NamedTuple):
    """What one segment of a copy holds of a range: a column of ``index.offset_ranges``.

    ``segment_base`` and ``next_base`` are the segment's base offset and the next one's, None for
    the last.
    """

    copy: str
    path: str
    segment_base: int
    next_base: int | None
    range: int
    digest: int
    batches: int
    bytes: int
    base_offset: int
    last_offset: int
    first_epoch: int
    last_epoch: int
    position: int
    end_position: int


def ranges_of(parts: Iterable[Part]) -> list[dict[str, CopyPiece]]:
    """Return for each range, ascending, what each copy holds of it.

    The ``where`` of a piece are its parts, in the order of the log.
    """
    by_range: dict[int, dict[str, list[Part]]] = {}
    for part in parts:
        by_range.setdefault(part.range, {}).setdefault(part.copy, []).append(part)
    return [
        {copy: _piece(found) for copy, found in by_range[number].items()}
        for number in sorted(by_range)
    ]


def _piece(parts: Sequence[Part]) -> CopyPiece:
    ordered = sorted(parts, key=lambda part: (part.segment_base, part.position))
    digest = 0
    for part in ordered:
        digest ^= part.digest
    first, last = ordered[0], ordered[-1]
    content = (
        digest,
        sum(part.batches for part in ordered),
        sum(part.bytes for part in ordered),
    )
    return CopyPiece(
        min(part.base_offset for part in ordered),
        last.last_offset,
        first.first_epoch,
        last.last_epoch,
        content,
        where=tuple(ordered),
    )
