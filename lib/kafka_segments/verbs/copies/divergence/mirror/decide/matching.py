"""Match the records of a log with equal ones of its mirror, in order, as many as possible."""

from bisect import bisect_left

import numpy as np

from kafka_segments.verbs.copies.divergence.mirror.decide.mirrored_log import (
    Digests,
    Int64s,
    MirroredLog,
)


def best_matched(source: MirroredLog, mirror: MirroredLog) -> tuple[Int64s, Int64s]:
    """Return pairs of places of equal records; by equal timestamps if that matches no fewer."""
    stamped = matched(_with_timestamps(source), _with_timestamps(mirror))
    here, there = _filled(source.digests, mirror.digests, stamped)
    if len(here) == min(len(source.digests), len(mirror.digests)):
        return here, there
    alike = matched(source.digests, mirror.digests)
    return alike if len(alike[0]) > len(here) else (here, there)


def _with_timestamps(log: MirroredLog) -> Digests:
    """Return digests that tell the timestamps of producers apart, too."""
    stamps = log.timestamps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.where(log.stamped, log.digests ^ stamps, log.digests)


def _filled(
    source: Digests, mirror: Digests, pairs: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s]:
    """Add what matches between pairs, or in front of them or behind."""
    here, there = (
        np.concatenate(([-1], own, [len(log)]))
        for own, log in zip(pairs, (source, mirror), strict=True)
    )
    gaps = np.flatnonzero((np.diff(here) > 1) & (np.diff(there) > 1)).tolist()
    found = [pairs]
    for gap in gaps:
        first, behind = (here[gap] + 1, there[gap] + 1), (here[gap + 1], there[gap + 1])
        more = matched(source[first[0] : behind[0]], mirror[first[1] : behind[1]])
        found.append((more[0] + first[0], more[1] + first[1]))
    all_here = np.concatenate([own for own, _ in found])
    all_there = np.concatenate([own for _, own in found])
    return np.sort(all_here), np.sort(all_there)


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
