"""Merge neighbouring rows, and add rows for the ranges between them that are alike."""

from collections.abc import Iterable, Iterator, Sequence

from kafka_segments.verbs.copies.divergence.decide.copies import (
    DAMAGED,
    Copy,
    DifferenceKind,
    Divergence,
)

_SCATTERED = (DifferenceKind.COMPACTION, DifferenceKind.RECOMPRESSED)


def merged(found: Iterable[Divergence]) -> list[Divergence]:
    """Return the rows, ascending, with those merged that are about the same thing.

    Compaction leaves its traces all over a log: it becomes one row for the copies concerned. So
    does damage at one place.
    """
    rows: dict[object, list[Divergence]] = {}
    for row in sorted(found, key=lambda one: one.from_offset):
        same = rows.setdefault((row.kind, row.is_finding, row.copies, row.right, row.epoch), [])
        last = same[-1] if same else None
        if last is not None and _belong_together(last, row):
            until = max(last.until_offset, row.until_offset)
            same[-1] = last._replace(until_offset=until)
        else:
            same.append(row)
    everything = [row for same in rows.values() for row in same]
    return sorted(everything, key=lambda row: (row.from_offset, row.until_offset, row.kind))


def _belong_together(last: Divergence, row: Divergence) -> bool:
    if row.kind in _SCATTERED:
        return True
    if row.kind in DAMAGED:
        return row.detail == last.detail
    if row.kind == DifferenceKind.FIELDS and row.detail != last.detail:
        return False
    return row.from_offset <= last.until_offset


def with_equal(copies: Sequence[Copy], found: Sequence[Divergence]) -> list[Divergence]:
    """Add the ranges in which all copies are alike, from the latest log start on."""
    rows = [row for row in found if row.kind != DifferenceKind.LATER_START]
    names = tuple(copy.name for copy in copies)
    start, end = max(copy.start for copy in copies), max(copy.end for copy in copies)
    gaps = [
        Divergence(DifferenceKind.EQUAL, False, low, high, (), names)
        for low, high in _gaps(rows, start, end)
    ]
    return sorted([*found, *gaps], key=lambda row: (row.from_offset, row.until_offset))


def _gaps(rows: Iterable[Divergence], start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for row in sorted(rows, key=lambda one: one.from_offset):
        if row.from_offset > at:
            yield at, row.from_offset
        at = max(at, row.until_offset)
    if at < end:
        yield at, end
