"""Say of each record of a log and of its mirror how it matches."""

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from kafka_segments.verbs.copies.divergence.mirror.decide.mirrored_log import (
    Digests,
    Flags,
    Int64s,
    MirroredLog,
)


class MirrorKind(StrEnum):
    """How records of a log and of its mirror match."""

    MIRRORED = "mirrored"
    """The same records in the same order."""
    TIMESTAMPS = "other timestamps"
    """The same records in the same order, to which their producers gave other timestamps."""
    BEHIND = "behind"
    """Not in the mirror yet."""
    LATER_START = "later start"
    """Retention came further in the other log."""
    ABORTED = "aborted"
    """Of transactions that were aborted: a mirror that reads committed records lacks them."""
    COMPACTION = "compaction"
    """Taken by the other log's cleaner: a later record of the key is there."""
    MISSING = "missing"
    """Not in the mirror, which goes on behind them."""
    EXTRA = "extra"
    """In the mirror alone."""
    DUPLICATED = "duplicated"
    """Once more in the mirror."""
    REORDERED = "reordered"
    """In the mirror at another place."""


KINDS = tuple(MirrorKind)
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def kinds_of_source(
    source: MirroredLog, mirror: MirroredLog, here: Int64s, there: Int64s
) -> npt.NDArray[np.int8]:
    """Return the number of each record's kind; ``here``, ``there``: places of matched records."""
    count = len(source.offsets)
    kinds = np.full(count, _NUMBERS[MirrorKind.MISSING], dtype=np.int8)
    place = np.arange(count)
    kinds[_is_cleaned(source, mirror, here, there)] = _NUMBERS[MirrorKind.COMPACTION]
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


def kinds_of_mirror(
    source: MirroredLog, mirror: MirroredLog, here: Int64s, there: Int64s
) -> npt.NDArray[np.int8]:
    """Return the number of each record's kind; ``here``, ``there``: places of matched records."""
    count = len(mirror.offsets)
    kinds = np.full(count, _NUMBERS[MirrorKind.EXTRA], dtype=np.int8)
    kinds[_is_cleaned(mirror, source, there, here)] = _NUMBERS[MirrorKind.COMPACTION]
    if source.start > 0:
        first = there[0] if len(there) else count
        kinds[np.arange(count) < first] = _NUMBERS[MirrorKind.LATER_START]
    kinds[np.isin(mirror.digests, source.digests)] = _NUMBERS[MirrorKind.DUPLICATED]
    kinds[mirror.aborted] = _NUMBERS[MirrorKind.ABORTED]
    unmatched = np.delete(source.digests, here)
    kinds[np.isin(mirror.digests, unmatched)] = _NUMBERS[MirrorKind.REORDERED]
    kinds[there] = _NUMBERS[MirrorKind.MIRRORED]
    return kinds


def _is_cleaned(log: MirroredLog, other: MirroredLog, own: Int64s, others: Int64s) -> Flags:
    """Tell of each record whether the other log's cleaner may have taken it.

    1. The other log lacks offsets between the records around it, below where it was compacted: the
       cleaner takes records, and leaves the offsets of others as they are.
    2. It has a later record of the key, or the record is a tombstone, or has no key.

    ``own``, ``others``: places of matched records, in the log and in the other one.
    """
    count = len(log.offsets)
    holes = other.holes[other.holes < other.compacted_until]
    if not len(holes):
        return np.zeros(count, dtype=np.bool_)
    following = np.searchsorted(own, np.arange(count))  # the next matched record
    ends = np.append(other.offsets[others], other.end)
    begins = np.concatenate(([other.start], other.offsets[others] + 1))
    is_hole = np.searchsorted(holes, ends) > np.searchsorted(holes, begins)
    behind = np.append(others, others[-1] + 1 if len(others) else 0)
    is_later = _has_later(log.keys, other.keys, behind[following])
    found: Flags = is_hole[following] & (is_later | log.tombstones | (log.keys == 0))
    return found


def _has_later(keys: Digests, others: Digests, places: Int64s) -> Flags:
    """Return for each record whether the other log has its key from a place on."""
    values, first_from_end = np.unique(others[::-1], return_index=True)
    if not len(values):
        return np.zeros(len(keys), dtype=np.bool_)
    last = len(others) - 1 - first_from_end
    at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    found: Flags = (keys != 0) & (values[at] == keys) & (last[at] >= places)
    return found
