"""Match the records of a log with those of its mirror, whose offsets are its own.

Clients write a mirror: without the source's transaction markers, with markers of its own, and from
the offset on at which the mirroring began. The records are the same, in the same order.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class MirrorKind(StrEnum):
    """How records of a log and of its mirror match."""

    MIRRORED = "mirrored"
    """The same records in the same order."""
    BEHIND = "behind"
    """Not in the mirror yet."""
    LATER_START = "later start"
    """Retention came further in the other log."""
    ABORTED = "aborted"
    """Of transactions that were aborted: a mirror that reads committed records lacks them."""
    COMPACTION = "compaction"
    """A later record of the key is there."""
    MISSING = "missing"
    """Not in the mirror, which goes on behind them."""
    EXTRA = "extra"
    """In the mirror alone."""
    DUPLICATED = "duplicated"
    """Once more in the mirror."""
    REORDERED = "reordered"
    """In the mirror at another place."""


FAULTS = (MirrorKind.MISSING, MirrorKind.EXTRA, MirrorKind.DUPLICATED, MirrorKind.REORDERED)
_KINDS = tuple(MirrorKind)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}


class MirroredLog(NamedTuple):
    """The records of a log or of its mirror that clients wrote, in the order of their offsets.

    Attributes:
        start: log start offset. end: offset behind the last record or marker.
        offsets: of each record.
        digests: of its key, value and headers.
        keys: a digest of its key; 0: it has none.
        tombstones: whether it has a key and no value.
        aborted: whether its transaction was aborted.
        is_compacted: it has been compacted.
    """

    start: int
    end: int
    offsets: Int64s
    digests: Digests
    keys: Digests
    tombstones: Flags
    aborted: Flags
    is_compacted: bool = False


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

    1. As many records as possible are matched with equal ones in the same order.
    2. Of the others, a record is reordered if the other log has an equal one without a match, and
       duplicated if all equal ones there have a match.
    3. The rest is missing or extra, unless a log start, a transaction or compaction explains it.

    Returns:
        Ranges in the order of the logs; each record of both is in one.
    """
    here, there = matched(source.digests, mirror.digests)
    kinds = _kinds_of_source(source, mirror, here, there)
    kinds_there = _kinds_of_mirror(source, mirror, here, there)
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


def matched(source: Digests, mirror: Digests) -> tuple[Int64s, Int64s]:
    """Return pairs of places of equal digests, ascending in both logs, as many as possible.

    Among equal digests, the first of one log pairs with the first of the other, and so on.
    """
    few = min(len(source), len(mirror))
    differs = source[:few] != mirror[:few]
    alike = int(differs.argmax()) if differs.any() else few
    here, there = _paired(source[alike:], mirror[alike:])
    kept = _longest_ascent(there)
    ahead = np.arange(alike)
    return (
        np.concatenate((ahead, here[kept] + alike)),
        np.concatenate((ahead, there[kept] + alike)),
    )


def _paired(source: Digests, mirror: Digests) -> tuple[Int64s, Int64s]:
    """Pair the k-th place of a digest in one log with the k-th in the other; by source place."""
    _, ids = np.unique(np.concatenate((source, mirror)), return_inverse=True)
    found = []
    for part in (ids[: len(source)], ids[len(source) :]):
        order = np.argsort(part, kind="stable")
        grouped = part[order]
        starts = np.searchsorted(grouped, grouped)
        found.append((grouped * (len(ids) + 1) + np.arange(len(part)) - starts, order))
    _, first, second = np.intersect1d(
        found[0][0], found[1][0], assume_unique=True, return_indices=True
    )
    here, there = found[0][1][first], found[1][1][second]
    order = np.argsort(here)
    return here[order].astype(np.int64), there[order].astype(np.int64)


def _longest_ascent(values: Int64s) -> Int64s:
    """Return the places of a longest ascending subsequence."""
    if not len(values) or (np.diff(values) > 0).all():
        return np.arange(len(values))
    tails: list[int] = []
    places: list[int] = []
    before = np.empty(len(values), dtype=np.int64)
    for place, value in enumerate(values.tolist()):
        length = bisect_left(tails, value)
        before[place] = places[length - 1] if length else -1
        if length == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[length], places[length] = value, place
    found = []
    place = places[-1]
    while place >= 0:
        found.append(place)
        place = int(before[place])
    return np.array(found[::-1], dtype=np.int64)


def _kinds_of_source(
    source: MirroredLog, mirror: MirroredLog, here: Int64s, there: Int64s
) -> npt.NDArray[np.int8]:
    count = len(source.offsets)
    kinds = np.full(count, _NUMBERS[MirrorKind.MISSING], dtype=np.int8)
    place = np.arange(count)
    if mirror.is_compacted:
        is_later = _has_later(source.keys, mirror.keys, _places_in(here, there, count))
        kinds[is_later | source.tombstones] = _NUMBERS[MirrorKind.COMPACTION]
    if mirror.start > 0 and len(here):
        kinds[place < here[0]] = _NUMBERS[MirrorKind.LATER_START]
    if len(here):
        kinds[place > here[-1]] = _NUMBERS[MirrorKind.BEHIND]
    elif not len(mirror.offsets):
        kinds[:] = _NUMBERS[MirrorKind.BEHIND]
    kinds[source.aborted] = _NUMBERS[MirrorKind.ABORTED]
    unmatched = np.delete(mirror.digests, there)
    kinds[np.isin(source.digests, unmatched)] = _NUMBERS[MirrorKind.REORDERED]
    kinds[here] = _NUMBERS[MirrorKind.MIRRORED]
    return kinds


def _kinds_of_mirror(
    source: MirroredLog, mirror: MirroredLog, here: Int64s, there: Int64s
) -> npt.NDArray[np.int8]:
    count = len(mirror.offsets)
    kinds = np.full(count, _NUMBERS[MirrorKind.EXTRA], dtype=np.int8)
    if source.is_compacted:
        is_later = _has_later(mirror.keys, source.keys, _places_in(there, here, count))
        kinds[is_later | mirror.tombstones] = _NUMBERS[MirrorKind.COMPACTION]
    if source.start > 0:
        first = there[0] if len(there) else count
        kinds[np.arange(count) < first] = _NUMBERS[MirrorKind.LATER_START]
    kinds[np.isin(mirror.digests, source.digests)] = _NUMBERS[MirrorKind.DUPLICATED]
    kinds[mirror.aborted] = _NUMBERS[MirrorKind.ABORTED]
    unmatched = np.delete(source.digests, here)
    kinds[np.isin(mirror.digests, unmatched)] = _NUMBERS[MirrorKind.REORDERED]
    kinds[there] = _NUMBERS[MirrorKind.MIRRORED]
    return kinds


def _places_in(own: Int64s, others: Int64s, count: int) -> Int64s:
    """Return for each of ``count`` records the place in the other log that follows it."""
    at = np.searchsorted(own, np.arange(count))
    behind = np.append(others, others[-1] + 1 if len(others) else 0)
    return behind[at].astype(np.int64)


def _has_later(keys: Digests, others: Digests, places: Int64s) -> Flags:
    """Return for each record whether the other log has its key from a place on."""
    values, first_from_end = np.unique(others[::-1], return_index=True)
    if not len(values):
        return np.zeros(len(keys), dtype=np.bool_)
    last = len(others) - 1 - first_from_end
    at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    found: Flags = (keys != 0) & (values[at] == keys) & (last[at] >= places)
    return found


def _ranges(
    source: MirroredLog,
    mirror: MirroredLog,
    pairs: tuple[Int64s, Int64s],
    kinds: tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]],
) -> Iterator[MirrorRange]:
    """Yield the ranges: of each gap between matched records first those of the source."""
    here, there = pairs
    breaks = np.flatnonzero((np.diff(here) != 1) | (np.diff(there) != 1)) + 1
    firsts = [0, *breaks.tolist()] if len(here) else []
    lasts = [*(breaks - 1).tolist(), len(here) - 1] if len(here) else []
    at = at_there = 0
    for first, last in zip(firsts, lasts, strict=True):
        gap = (at, int(here[first])), (at_there, int(there[first]))
        yield from _gap(source, mirror, kinds, gap)
        at, at_there = int(here[last]) + 1, int(there[last]) + 1
        yield MirrorRange(
            MirrorKind.MIRRORED,
            False,
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
        yield _KINDS[kinds[first]], first, behind - 1
