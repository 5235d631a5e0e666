"""Tell what compaction took of a copy from what was lost below the cleaner's offset, by keys.

The cleaner takes a record for a later one of its key, and a tombstone once it is old. It takes
markers, what was aborted, and records without a key. What else a copy lacks was lost.

Source: Cleaner.shouldRetainRecord, Cleaner.buildOffsetMapForSegment (4.3.1).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyDamageKind,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.forks import forked_at
from kafka_segments.verbs.copies.divergence.decide.keyed import Keyed, Keys, Question, Questions

_MOST_ROWS = 1000  # of a copy; what is behind counts to the last


class Missing(NamedTuple):
    """A record that a copy lacks.

    Attributes:
        record: the record.
        holders: the copies that hold it.
        seen_until: up to this offset one of them shows whether its key has come again.
        is_cleaned: it counts as lost if nothing explains it; else it explains others only.
    """

    record: Keyed
    holders: tuple[str, ...]
    seen_until: int
    is_cleaned: bool = True


class Lost(NamedTuple):
    """A record that a copy lost.

    Attributes:
        offset: of the record.
        gap: equal of those between which the copy holds nothing.
        holders: the copies that hold it.
        is_certain: no tombstone can have been there. Else the holders may have been away while a
            tombstone came and went.
    """

    offset: int
    gap: int
    holders: tuple[str, ...]
    is_certain: bool


def lost_keys(
    copies: Sequence[Copy], questions: Questions, rows: Sequence[Divergence], keys: Keys
) -> Iterator[Divergence]:
    """Yield a row of kind ``LOST`` for each gap of a copy in which the last record of a key was.

    Args:
        copies: all copies of the log.
        questions: what the copies lack.
        rows: what was found so far; of these the forks count.
        keys: reads keys.
    """
    by_name = {copy.name: copy for copy in copies}
    for name, asked in questions.items():
        first = next((at for at, one in enumerate(asked) if one.is_cleaned), None)
        copy = by_name[name]
        if first is None or copy.is_tiered:  # what is tiered is never compacted
            continue
        missing = _missing(asked[first:], copy, by_name, rows, keys)
        own = (one for one in keys.own(name, asked[first].base) if one.offset >= asked[first].base)
        yield from _rows(copy, lost_records(own, missing, copy.end))


def _missing(
    asked: Iterable[Question],
    copy: Copy,
    by_name: Mapping[str, Copy],
    rows: Sequence[Divergence],
    keys: Keys,
) -> Iterator[Missing]:
    """Yield what others hold where a copy lacks something, each offset once, ascending."""
    for question in asked:
        streams = []
        for names, pieces in _variants(question.held):
            seen = max(_seen_until(by_name[name], copy, question.base, rows) for name in names)
            records = (one for piece in pieces for one in keys.held(piece))
            streams.append([Missing(one, names, seen, question.is_cleaned) for one in records])
        in_order = merge(*streams, key=lambda one: one.record.offset)
        for offset, same in groupby(in_order, key=lambda one: one.record.offset):
            found = list(same)
            if copy.start <= offset < copy.end:
                holders = tuple(name for one in found for name in one.holders)
                seen_until = max(one.seen_until for one in found)
                yield found[0]._replace(holders=holders, seen_until=seen_until)


def _variants(
    held: Mapping[str, Sequence[CopyPiece]],
) -> Iterator[tuple[tuple[str, ...], Sequence[CopyPiece]]]:
    """Yield what copies hold, with the names of those that hold the same."""
    names: dict[tuple[object, ...], list[str]] = {}
    for name, pieces in held.items():
        names.setdefault(tuple(piece.content for piece in pieces), []).append(name)
    for same in names.values():
        yield tuple(same), held[same[0]]


def _seen_until(holder: Copy, copy: Copy, base: int, rows: Sequence[Divergence]) -> int:
    """Return the offset up to which a copy shows what was in the log of another."""
    damaged = (
        damage.offset
        for damage in holder.damages
        if damage.until > base and damage.kind != CopyDamageKind.TORN
    )
    fork = forked_at(rows, holder.name, copy.name)
    return min(holder.end, *damaged, holder.end if fork is None else fork)


def lost_records(own: Iterable[Keyed], missing: Iterable[Missing], end: int) -> list[Lost]:
    """Return which of the records that a copy lacks nothing explains, ascending.

    1. A later record of the key explains what is missing: in the copy, or in another one below the
       end of this. If the copy lacks that as well, it is asked for itself.
    2. A tombstone that is missing was old enough, and explains those of its key in front of it.
    3. So does one that no copy has any more. It can lie where no copy holds a record, and where the
       holders of what is missing do not show what was there: behind their ends.
    4. Records of transactions count once a marker commits them.

    Args:
        own: what the copy holds, ascending.
        missing: what others hold, ascending; what ``own`` has too is not missing.
        end: the offset behind the copy's last batch.
    """
    search = _Search()
    left = iter(missing)
    ahead = next(left, None)
    for one in own:
        while ahead is not None and ahead.record.offset < one.offset:
            search.miss(ahead)
            ahead = next(left, None)
        if ahead is not None and ahead.record.offset == one.offset:
            ahead = next(left, None)
        search.hold(one)
        if ahead is None and search.is_done:
            return []
    while ahead is not None:
        search.miss(ahead)
        ahead = next(left, None)
    return search.lost(end)


class _Gap(NamedTuple):
    """Where a record is missing: what is held in front of it, and the record."""

    held_before: int
    missing: Missing


class _Search:
    """Takes records by ascending offsets, and strikes out what later ones explain."""

    def __init__(self) -> None:
        self._open: dict[int, _Gap] = {}
        self._pending: dict[int, dict[int, tuple[int, _Gap | None]]] = {}
        self._held_before = -1
        self._next = -1
        self._unseen_until = -1

    @property
    def is_done(self) -> bool:
        """Tell whether what comes now changes nothing, if nothing more is missing."""
        waits = (gap for changes in self._pending.values() for _, gap in changes.values())
        return not self._open and all(gap is None for gap in waits)

    def hold(self, record: Keyed) -> None:
        """Take a record that the copy holds."""
        self._take(record, None)
        self._held_before = record.offset

    def miss(self, missing: Missing) -> None:
        """Take a record that the copy lacks."""
        is_asked = missing.is_cleaned and missing.record.has_value
        self._take(missing.record, _Gap(self._held_before, missing) if is_asked else None)

    def lost(self, end: int) -> list[Lost]:
        """Return what nothing has explained up to the end of the log."""
        if self._next < end:
            self._unseen_until = end
        return [
            Lost(
                missing.record.offset,
                held_before,
                missing.holders,
                self._unseen_until <= missing.record.offset,
            )
            for held_before, missing in sorted(
                self._open.values(), key=lambda gap: gap.missing.record.offset
            )
            if missing.seen_until >= self._unseen_until
        ]

    def _take(self, record: Keyed, gap: _Gap | None) -> None:
        if 0 <= self._next < record.offset:
            self._unseen_until = record.offset
        self._next = record.offset + 1
        if record.is_commit is not None:
            self._end(record)
        elif record.key is None:
            self._open.clear()
            self._pending.clear()
        elif record.key and record.producer_id is not None:
            changes = self._pending.setdefault(record.producer_id, {})
            changes[record.key] = record.offset, gap
        elif record.key:
            self._change(record.key, record.offset, gap)

    def _end(self, marker: Keyed) -> None:
        changes = self._pending.pop(-1 if marker.producer_id is None else marker.producer_id, {})
        if marker.is_commit:
            for key, (offset, gap) in changes.items():
                self._change(key, offset, gap)

    def _change(self, key: int, offset: int, gap: _Gap | None) -> None:
        """Let the record at ``offset`` be the last of its key, if none behind it is."""
        known = self._open.get(key)
        if known is not None and known.missing.record.offset > offset:
            return
        for changes in self._pending.values():
            if key in changes and changes[key][0] < offset:
                del changes[key]
        if gap is None:
            self._open.pop(key, None)
        else:
            self._open[key] = gap


def _rows(copy: Copy, lost: Sequence[Lost]) -> Iterator[Divergence]:
    gaps = [list(same) for _, same in groupby(lost, key=lambda one: (one.gap, one.is_certain))]
    few, many = gaps[: _MOST_ROWS - 1], gaps[_MOST_ROWS - 1 :]
    if many:
        few.append([one for gap in many for one in gap])
    for gap in few:
        holders = [name for name in gap[0].holders if all(name in one.holders for one in gap)]
        is_certain = all(one.is_certain for one in gap)
        detail = f"{len(gap)} keys had their last records here, and no tombstone is there"
        if not is_certain:
            detail += (
                "; or a copy that holds them was away for longer than delete.retention.ms, and"
                " missed a tombstone"
            )
        yield Divergence(
            DifferenceKind.LOST,
            True,
            gap[0].offset,
            gap[-1].offset + 1,
            (copy.name,),
            tuple(holders) if is_certain else (),
            detail=detail,
        )
