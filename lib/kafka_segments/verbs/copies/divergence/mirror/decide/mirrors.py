"""Match the records of a log with those of its mirror, whose offsets are its own.

Clients write a mirror: without the source's transaction markers, with markers of its own, and from
the offset on at which the mirroring began. The records are the same, in the same order.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.verbs.copies.divergence.mirror.decide.kinds import (
    KINDS,
    MirrorKind,
    kinds_of_mirror,
    kinds_of_source,
)
from kafka_segments.verbs.copies.divergence.mirror.decide.matching import best_matched
from kafka_segments.verbs.copies.divergence.mirror.decide.mirrored_log import Int64s, MirroredLog

FAULTS = (
    *(MirrorKind.TIMESTAMPS, MirrorKind.MISSING, MirrorKind.EXTRA),
    *(MirrorKind.DUPLICATED, MirrorKind.REORDERED),
)


class MirrorRange(NamedTuple):
    """Records that follow one another and match, or fail to match, in the same way.

    Attributes:
        kind: how.
        is_finding: someone must look at it.
        from_offset: first offset in the source. until_offset: behind the last one; equal to the
            first where the source has none of these records.
        mirror_from: likewise in the mirror. mirror_until: likewise.
        records: how many.
    """

    kind: MirrorKind
    is_finding: bool
    from_offset: int
    until_offset: int
    mirror_from: int
    mirror_until: int
    records: int


class OffsetSync(NamedTuple):
    """What a mirror maker noted: the record at ``source`` went to offset ``mirror``."""

    source: int
    mirror: int


def compare_mirror(source: MirroredLog, mirror: MirroredLog) -> list[MirrorRange]:
    """Return which records of a log its mirror holds, and how the rest differs.

    1. As many records as possible are matched with equal ones in the same order. Of equal ones
       those count first that have equal timestamps, too.
    2. Of the others, a record is reordered if the other log has an equal one without a match, and
       duplicated if all equal ones there have a match.
    3. The rest is missing or extra, unless a log start, a transaction or compaction explains it.
    4. Where both logs have timestamps of producers, those of matched records must be equal: a
       mirror takes them over. A broker's (LogAppendTime) is its own.

    Source: MirrorSourceTask.convertRecord (4.3.1).

    Returns:
        Ranges in the order of the logs; each record of both is in one.
    """
    here, there = best_matched(source, mirror)
    kinds = kinds_of_source(source, mirror, here, there)
    kinds_there = kinds_of_mirror(source, mirror, here, there)
    return list(_ranges(source, mirror, (here, there), (kinds, kinds_there)))


def wrong_syncs(
    source: MirroredLog, mirror: MirroredLog, syncs: Sequence[OffsetSync]
) -> list[OffsetSync]:
    """Return the syncs whose two offsets hold different records.

    A sync is not judged if one of its offsets is no longer there.
    """
    found = []
    for sync in syncs:
        digests = [
            _digest_at(log, offset)
            for log, offset in ((source, sync.source), (mirror, sync.mirror))
        ]
        if None not in digests and digests[0] != digests[1]:
            found.append(sync)
    return found


def _digest_at(log: MirroredLog, offset: int) -> int | None:
    at = int(np.searchsorted(log.offsets, offset))
    is_there = at < len(log.offsets) and log.offsets[at] == offset
    return int(log.digests[at]) if is_there else None


def _ranges(
    source: MirroredLog,
    mirror: MirroredLog,
    pairs: tuple[Int64s, Int64s],
    kinds: tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]],
) -> Iterator[MirrorRange]:
    """Yield the ranges: of each gap between matched records first those of the source."""
    here, there = pairs
    differs = source.timestamps[here] != mirror.timestamps[there]
    differs &= source.stamped[here] & mirror.stamped[there]
    is_break = (np.diff(here) != 1) | (np.diff(there) != 1) | (differs[1:] != differs[:-1])
    breaks = np.flatnonzero(is_break) + 1
    firsts = [0, *breaks.tolist()] if len(here) else []
    lasts = [*(breaks - 1).tolist(), len(here) - 1] if len(here) else []
    at = at_there = 0
    for first, last in zip(firsts, lasts, strict=True):
        gap = (at, int(here[first])), (at_there, int(there[first]))
        yield from _gap(source, mirror, kinds, gap)
        at, at_there = int(here[last]) + 1, int(there[last]) + 1
        kind = MirrorKind.TIMESTAMPS if differs[first] else MirrorKind.MIRRORED
        yield MirrorRange(
            kind,
            kind in FAULTS,
            int(source.offsets[here[first]]),
            int(source.offsets[here[last]]) + 1,
            int(mirror.offsets[there[first]]),
            int(mirror.offsets[there[last]]) + 1,
            last - first + 1,
        )
    gap = (at, len(source.offsets)), (at_there, len(mirror.offsets))
    yield from _gap(source, mirror, kinds, gap)


def _gap(
    source: MirroredLog,
    mirror: MirroredLog,
    kinds: tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]],
    gap: tuple[tuple[int, int], tuple[int, int]],
) -> Iterator[MirrorRange]:
    """Yield the ranges of records without a match, between two that have one."""
    here, there = gap
    ahead = _offset_at(source, here[1])
    for kind, first, last in _runs(kinds[0], *here):
        low, high = int(source.offsets[first]), int(source.offsets[last]) + 1
        place = _offset_at(mirror, there[0])
        yield MirrorRange(kind, kind in FAULTS, low, high, place, place, last - first + 1)
    for kind, first, last in _runs(kinds[1], *there):
        low, high = int(mirror.offsets[first]), int(mirror.offsets[last]) + 1
        yield MirrorRange(kind, kind in FAULTS, ahead, ahead, low, high, last - first + 1)


def _offset_at(log: MirroredLog, place: int) -> int:
    return int(log.offsets[place]) if place < len(log.offsets) else log.end


def _runs(kinds: npt.NDArray[Any], start: int, end: int) -> Iterator[tuple[MirrorKind, int, int]]:
    if start == end:
        return
    changes = (np.flatnonzero(np.diff(kinds[start:end])) + 1 + start).tolist()
    for first, behind in zip([start, *changes], [*changes, end], strict=True):
        yield KINDS[kinds[first]], first, behind - 1
