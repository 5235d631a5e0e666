"""Compare the copies of one log: digests of ranges first, records only where these differ."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyPiece,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.copy_reader import CopyReader
from kafka_segments.verbs.copies.divergence.decide.differences import (
    Differences,
    Told,
    damages_without_overlap,
)
from kafka_segments.verbs.copies.divergence.decide.epochs import wrong_epochs
from kafka_segments.verbs.copies.divergence.decide.forks import Behind, fork_at
from kafka_segments.verbs.copies.divergence.decide.keyed import Keys, Questions
from kafka_segments.verbs.copies.divergence.decide.lost_keys import lost_keys
from kafka_segments.verbs.copies.divergence.decide.lost_markers import lost_markers
from kafka_segments.verbs.copies.divergence.decide.merging import merged, with_equal
from kafka_segments.verbs.copies.divergence.decide.overlaps import (
    Overlap,
    PiecesByCopy,
    overlaps_of,
    unequal,
)


def compare_log(
    copies: Sequence[Copy],
    ranges: Sequence[Mapping[str, CopyPiece]],
    load: CopyReader,
    keys: Keys,
    *,
    check_keys: bool = False,
) -> list[Divergence]:
    """Return where the copies of a log agree, and how they differ elsewhere.

    1. What lies in front of a copy's log start is no part of it.
    2. For ranges that one copy holds and others lack, digests are enough. Batches are read only
       where copies hold different things, and records only where batches of one epoch differ.
    3. Behind a fork the copies of each side are compared with each other; a side can fork again.
    4. Leader-epoch checkpoints are held against batches and against each other.
    5. Markers of transactions that a copy lacks below the cleaner's offset are lost if it still
       holds batches of the transaction.
    6. With ``check_keys``, what else a copy lacks there is looked for by keys. So it is where no
       checkpoint says up to where the log was compacted.

    Args:
        copies: all copies of the log.
        ranges: the ranges that differ, ascending, each as the pieces of the copies that hold some.
        load: reads batches and records.
        keys: reads keys, and batches of transactions.
        check_keys: else records that are missing below the cleaner's offset count as compacted.

    Returns:
        Ranges of offsets, ascending; those of kind ``EQUAL`` are alike in all copies.
    """
    told: Told = set()
    questions: Questions = {}
    compaction = Compaction(copies, keys)
    log = _Log(compaction, load, told, questions)
    found = [*_starts(copies), *_compared(copies, ranges, log)]
    found += damages_without_overlap(copies, told)
    found += wrong_epochs(copies, found, compaction)
    found += lost_markers(copies, questions, load, keys)
    if check_keys or compaction.is_inferred:
        found += lost_keys(copies, questions, found, keys)
    return with_equal(copies, merged(found))


class _Log(NamedTuple):
    """What is the same on all sides of a log's forks."""

    compaction: Compaction
    load: CopyReader
    told: Told
    questions: Questions


def _compared(
    copies: Sequence[Copy], ranges: Sequence[Mapping[str, CopyPiece]], log: _Log
) -> Iterator[Divergence]:
    differences = Differences(copies, log.compaction, log.load, log.told, log.questions)
    for overlap in _batch_overlaps(copies, ranges, log.load, differences):
        if not differences.is_fork(overlap):
            yield from differences.of(overlap)
            continue
        fork = fork_at(copies, overlap, Behind(ranges, differences.batches))
        yield from fork.rows
        for side in fork.sides:
            yield from _compared(side, _unequal_ranges(side, ranges), log)
        return
    yield from differences.behind_all()


def _unequal_ranges(
    side: Sequence[Copy], ranges: Sequence[Mapping[str, CopyPiece]]
) -> list[Mapping[str, CopyPiece]]:
    """Return the ranges in which the copies of a side differ."""
    unequal_ranges: list[Mapping[str, CopyPiece]] = []
    for found in ranges:
        held = {copy.name: found[copy.name] for copy in side if copy.name in found}
        contents = {piece.content for piece in held.values()}
        if len(held) < len(side) or len(contents) > 1:
            unequal_ranges.append(held)
    return unequal_ranges


def _starts(copies: Sequence[Copy]) -> Iterator[Divergence]:
    """Yield how logs begin later than others; what disks lack of a tiered one is in the tier."""
    is_tiered = any(copy.is_tiered for copy in copies)
    first = min(copy.start for copy in copies)
    for copy in copies:
        taken = max(copy.start if is_tiered else copy.cut_at, first)
        if first < taken:
            yield Divergence(DifferenceKind.LATER_START, False, first, taken, (copy.name,))
        if taken < copy.start:
            right = tuple(other.name for other in copies if other.start <= taken)
            detail = (
                f"{copy.name} begins at {copy.start}, its leader epochs at {copy.epochs[0][1]}:"
                " where retention or DeleteRecords moves a log start, these move with it"
            )
            yield Divergence(
                DifferenceKind.LOST, True, taken, copy.start, (copy.name,), right, detail=detail
            )


def _batch_overlaps(
    copies: Sequence[Copy],
    ranges: Sequence[Mapping[str, CopyPiece]],
    load: CopyReader,
    differences: "Differences",
) -> Iterator[Overlap]:
    """Yield overlaps of ranges where digests are enough, else overlaps of their batches."""
    starts = {copy.name: copy.start for copy in copies}
    cuts = {offset for copy in copies for offset in _cuts(copy)}
    held: PiecesByCopy = {copy.name: [] for copy in copies}
    for found in ranges:
        for name, piece in found.items():
            if piece.last >= starts[name]:
                held[name].append(piece)
    for overlap in overlaps_of(held):
        is_cut = any(overlap.base < offset <= overlap.last for offset in cuts)
        if len(overlap.variants) == 1 and not is_cut:
            yield overlap
            continue
        batches: PiecesByCopy = {name: [] for name in held}
        for name, pieces in overlap.held.items():
            for piece in pieces:
                batches[name] += [
                    batch for batch in load.batches(name, piece) if batch.last >= starts[name]
                ]
        differences.note_batches(batches)
        yield from overlaps_of(unequal(batches, copies))


def _cuts(copy: Copy) -> Iterator[int]:
    """Yield the offsets at which something changes for a copy."""
    yield copy.start
    yield copy.end
    if copy.high_watermark is not None:
        yield copy.high_watermark
    if copy.cleaner_offset is not None:
        yield copy.cleaner_offset
    for _, start in copy.epochs:
        yield start
    for damage in copy.damages:
        yield from (damage.offset, damage.until)
