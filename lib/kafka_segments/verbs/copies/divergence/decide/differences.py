"""Name how copies differ in one overlap of a log."""

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_segments.verbs.copies.divergence.decide.compaction import Compaction
from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyDamage,
    CopyDamageKind,
    DifferenceKind,
    Divergence,
)
from kafka_segments.verbs.copies.divergence.decide.forks import not_truncated
from kafka_segments.verbs.copies.divergence.decide.keyed import Question, Questions
from kafka_segments.verbs.copies.divergence.decide.one_batch import (
    header_rot,
    is_moved,
    is_one_batch,
    outvoted,
    wrong_epochs,
)
from kafka_segments.verbs.copies.divergence.decide.overlaps import Overlap, PiecesByCopy
from kafka_segments.verbs.copies.divergence.decide.record_fields import (
    HeldRecords,
    OtherFields,
    other_fields,
)

if TYPE_CHECKING:
    from kafka_segments.verbs.copies.divergence.decide.copy_reader import CopyReader

Told = set[tuple[str, int]]
"""Copies and the numbers of their damages."""
_OF_DAMAGE = {
    CopyDamageKind.ROT: DifferenceKind.ROT,
    CopyDamageKind.MISPLACED: DifferenceKind.MISPLACED,
    CopyDamageKind.UNREAD: DifferenceKind.UNREAD,
}


class Differences:
    """Names one overlap after another, ascending.

    Args:
        copies: those of one side of a fork, or all.
        compaction: tells what compaction may have taken.
        load: reads batches and records.
        told: gets the damages that overlaps have named: copies and numbers.
        questions: gets what copies lack below their ends.
    """

    def __init__(
        self,
        copies: Sequence[Copy],
        compaction: Compaction,
        load: "CopyReader",
        told: Told,
        questions: Questions,
    ) -> None:
        self._copies = copies
        self._compaction = compaction
        self._load = load
        self._told = told
        self._questions = questions
        marks = [copy.high_watermark for copy in copies if copy.high_watermark is not None]
        self._committed = max(marks, default=None)
        self._untils = {copy.name: [one.until for one in copy.damages] for copy in copies}
        self._conflict_ends: dict[str, int] = {}
        self.batches: PiecesByCopy = {}

    def note_batches(self, batches: PiecesByCopy) -> None:
        """Take the batches around the next overlaps, equal ones too."""
        self.batches = batches

    def of(self, overlap: Overlap) -> Iterator[Divergence]:
        """Yield what differs in an overlap."""
        if len(overlap.held) < len(self._copies) and self._goes_on_wrong(overlap):
            right = tuple(copy.name for copy in self._copies if copy.name not in overlap.held)
            yield self._conflict(overlap, tuple(overlap.held), right)
            return
        if len(overlap.variants) > 1:
            yield from self._variants(overlap)
        for copy in self._copies:
            if copy.name not in overlap.held and copy.start <= overlap.last:
                yield from self._lacking(copy, overlap)

    def behind_all(self) -> Iterator[Divergence]:
        """Yield what no copy holds: from the end of the longest one to the high watermark."""
        end = max(copy.end for copy in self._copies)
        if self._committed is None or self._committed <= end:
            return
        noted = [one.name for one in self._copies if one.high_watermark == self._committed]
        detail = (
            f"no copy goes on behind {end}, and {', '.join(noted)} notes the high watermark"
            f" {self._committed}: what lies between was committed"
        )
        names = tuple(copy.name for copy in self._copies)
        yield Divergence(DifferenceKind.BEHIND, True, end, self._committed, names, detail=detail)

    def is_fork(self, overlap: Overlap) -> bool:
        """Tell whether copies hold batches of other leaders in an overlap.

        Behind a conflict they do not: its batches are of one leader, at other offsets.
        """
        is_conflict = any(self._is_in_conflict(name, overlap) for name in overlap.held)
        if len(overlap.variants) == 1 or is_conflict:
            return False
        if is_one_batch(overlap):
            return not is_moved(overlap) and not wrong_epochs(overlap, self._copies, self.batches)
        pieces = [piece for found in overlap.held.values() for piece in found]
        firsts = {found[0].first_epoch for found in overlap.held.values()}
        return len(firsts) > 1 and all(piece.first_epoch >= 0 for piece in pieces)

    def _damages_of(self, copy: Copy, overlap: Overlap) -> list[CopyDamage]:
        """Return the damages that cover an overlap, and note that they were named."""
        first = bisect_right(self._untils[copy.name], overlap.base)
        found: list[CopyDamage] = []
        for number in range(first, len(copy.damages)):
            damage = copy.damages[number]
            if damage.offset > overlap.last:
                break
            if damage.kind != CopyDamageKind.TORN:
                self._told.add((copy.name, number))
                found.append(damage)
        return found

    # A copy holds nothing there.

    def _lacking(self, copy: Copy, overlap: Overlap) -> Iterator[Divergence]:
        base, until = overlap.base, overlap.last + 1
        holders = tuple(overlap.held)
        right = holders if len(overlap.variants) == 1 else ()
        damages = self._damages_of(copy, overlap)
        is_cleaned = self._compaction.may_have_taken(copy.name, base)
        if base < copy.end:
            self._ask(copy.name, overlap, is_cleaned=is_cleaned and not damages)
        if damages:
            yield _damaged(copy, damages[0], base, until, right)
        elif base >= copy.end:
            yield from self._beyond_end(copy, overlap)
        elif is_cleaned:
            yield Divergence(DifferenceKind.COMPACTION, False, base, until, (copy.name,))
        else:
            yield Divergence(
                DifferenceKind.LOST,
                True,
                base,
                until,
                (copy.name,),
                right,
                detail=f"{copy.name} goes on behind these offsets and has none of them",
            )

    def _beyond_end(self, copy: Copy, overlap: Overlap) -> Iterator[Divergence]:
        base, until = overlap.base, overlap.last + 1
        pieces = [piece for found in overlap.held.values() for piece in found]
        holders = tuple(overlap.held)
        epoch = min(piece.first_epoch for piece in pieces)
        if epoch >= 0 and copy.leads_from(base, epoch):
            yield not_truncated(copy, epoch, base, until, holders)
            return
        ends = f"{copy.name} ends at {copy.end}"
        for damage in copy.damages:
            if damage.kind == CopyDamageKind.TORN:
                ends += f", {damage.segment} is torn at byte {damage.position}: {damage.reason}"
        if copy.is_tiered:
            detail = f"{ends}; what follows is not in tiered storage yet"
            yield Divergence(
                DifferenceKind.BEHIND, False, base, until, (copy.name,), holders, detail=detail
            )
            return
        committed = until if self._committed is None else min(max(self._committed, base), until)
        if base < committed:
            yield Divergence(
                DifferenceKind.BEHIND, True, base, committed, (copy.name,), holders, detail=ends
            )
        if committed < until:
            detail = f"{ends}; not below a high watermark, so not yet replicated"
            yield Divergence(
                DifferenceKind.BEHIND, False, committed, until, (copy.name,), holders, detail=detail
            )

    def _ask(self, name: str, overlap: Overlap, *, is_cleaned: bool) -> None:
        """Note that a copy lacks records of an overlap."""
        held = {other: pieces for other, pieces in overlap.held.items() if other != name}
        question = Question(overlap.base, held, is_cleaned)
        self._questions.setdefault(name, []).append(question)

    # Copies hold other things there.

    def _variants(self, overlap: Overlap) -> Iterator[Divergence]:
        if not is_one_batch(overlap):
            yield from self._other_records(overlap)
        elif is_moved(overlap):
            yield header_rot(overlap, outvoted(overlap), "the same batch at another base offset")
        else:
            wrong = wrong_epochs(overlap, self._copies, self.batches)
            yield header_rot(overlap, wrong, "the same batch with another leader epoch")

    def _other_records(self, overlap: Overlap) -> Iterator[Divergence]:
        variants = list(overlap.variants.values())
        records = [self._records(overlap, names[0]) for names in variants]
        if all(found is not None for found in records):
            known = [found for found in records if found is not None]
            contents = [found.contents for found in known]
            everything = {offset: digest for found in contents for offset, digest in found.items()}
            if all(everything[at] == digest for found in contents for at, digest in found.items()):
                others = other_fields(list(zip(variants, known, strict=True)))
                if others is not None:
                    yield _with_other_fields(overlap, others)
                for row in self._same_records(overlap, contents):
                    if others is None or row.kind != DifferenceKind.RECOMPRESSED:
                        yield row
                return
        wrong = outvoted(overlap)
        right = tuple(name for name in overlap.held if name not in wrong) if wrong else ()
        yield self._conflict(overlap, wrong or tuple(overlap.held), right)

    def _conflict(
        self, overlap: Overlap, names: tuple[str, ...], right: tuple[str, ...]
    ) -> Divergence:
        self._conflict_ends |= dict.fromkeys(names, overlap.last + 1)
        detail = "other records under the same leader epoch, checksums are right"
        return Divergence(
            DifferenceKind.CONFLICT,
            True,
            overlap.base,
            overlap.last + 1,
            names,
            right,
            detail=detail,
        )

    def _is_in_conflict(self, name: str, overlap: Overlap) -> bool:
        """Tell whether a conflict of a copy reaches an overlap."""
        return self._conflict_ends.get(name) == overlap.base

    def _goes_on_wrong(self, overlap: Overlap) -> bool:
        """Tell whether those that hold an overlap alone do so because their batches have moved."""
        return all(self._is_in_conflict(name, overlap) for name in overlap.held)

    def _same_records(
        self, overlap: Overlap, records: Sequence[Mapping[int, Hashable]]
    ) -> Iterator[Divergence]:
        """Tell of variants, by the records of each: where two have one, it is the same."""
        base, until = overlap.base, overlap.last + 1
        everything = {offset for found in records for offset in found}
        fewer = tuple(
            name
            for names, found in zip(overlap.variants.values(), records, strict=True)
            if len(found) < len(everything)
            for name in names
        )
        if not fewer:
            yield Divergence(DifferenceKind.RECOMPRESSED, False, base, until, tuple(overlap.held))
            return
        cleaned = {name for name in fewer if self._compaction.may_have_taken(name, overlap.last)}
        for name in fewer:
            self._ask(name, overlap, is_cleaned=name in cleaned)
        if cleaned:
            names = tuple(name for name in fewer if name in cleaned)
            yield Divergence(DifferenceKind.COMPACTION, False, base, until, names)
        lost = tuple(name for name in fewer if name not in cleaned)
        if lost:
            whole = tuple(name for name in overlap.held if name not in fewer)
            missing = len(everything) - min(map(len, records))
            detail = f"{missing} records of their batches are missing"
            yield Divergence(DifferenceKind.LOST, True, base, until, lost, whole, detail=detail)

    def _records(self, overlap: Overlap, name: str) -> HeldRecords | None:
        found = HeldRecords.none()
        for piece in overlap.held[name]:
            records = self._load.records(name, piece)
            if records is None:
                return None
            found.add(records)
        return found


def damages_without_overlap(log: Sequence[Copy], told: Told) -> Iterator[Divergence]:
    """Yield the damage that no overlap named: no copy of its side holds what was there."""
    end = max(copy.end for copy in log)
    for copy in log:
        for number, damage in enumerate(copy.damages):
            is_told = (copy.name, number) in told
            if is_told or damage.kind == CopyDamageKind.TORN or damage.until <= copy.start:
                continue
            until = max(min(damage.until, end), damage.offset)
            yield _damaged(copy, damage, damage.offset, until, ())


def _damaged(
    copy: Copy, damage: CopyDamage, base: int, until: int, right: tuple[str, ...]
) -> Divergence:
    detail = f"{damage.segment} at byte {damage.position}: {damage.reason}"
    return Divergence(
        _OF_DAMAGE[damage.kind], True, base, until, (copy.name,), right, detail=detail
    )


def _with_other_fields(overlap: Overlap, found: OtherFields) -> Divergence:
    wrong = tuple(name for name in overlap.held if name in found.wrong)
    right = tuple(name for name in overlap.held if name in found.right)
    detail = f"the same keys, values and headers with another {', '.join(found.words)}"
    return Divergence(
        DifferenceKind.FIELDS, True, overlap.base, overlap.last + 1, wrong, right, detail=detail
    )
