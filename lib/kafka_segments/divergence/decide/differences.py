"""Name how copies differ in one island of a log."""

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_segments.divergence.decide.copies import (
    Copy,
    CopyDamage,
    CopyDamageKind,
    CopyPiece,
    DifferenceKind,
    Divergence,
    is_compacted,
)
from kafka_segments.divergence.decide.forks import not_truncated
from kafka_segments.divergence.decide.islands import Held, Island
from kafka_segments.divergence.decide.lost_keys import Question, Questions

if TYPE_CHECKING:
    from kafka_segments.divergence.decide.logs import CopyReader

Told = set[tuple[str, int]]
"""Copies and the numbers of their damages."""
_OF_DAMAGE = {
    CopyDamageKind.ROT: DifferenceKind.ROT,
    CopyDamageKind.MISPLACED: DifferenceKind.MISPLACED,
    CopyDamageKind.UNREAD: DifferenceKind.UNREAD,
}


class Differences:
    """Names one island after another, ascending.

    Args:
        copies: those of one side of a fork, or all.
        log: all copies of the log.
        load: reads batches and records.
        told: gets the damages that islands have named: copies and numbers.
        questions: gets what copies lack below their ends.
    """

    def __init__(
        self,
        copies: Sequence[Copy],
        log: Sequence[Copy],
        load: "CopyReader",
        told: Told,
        questions: Questions,
    ) -> None:
        self._copies = copies
        self._log = log
        self._load = load
        self._told = told
        self._questions = questions
        marks = [copy.high_watermark for copy in copies if copy.high_watermark is not None]
        self._committed = max(marks, default=None)
        self._untils = {copy.name: [one.until for one in copy.damages] for copy in copies}
        self.batches: Held = {}

    def note_batches(self, batches: Held) -> None:
        """Take the batches around the next islands, equal ones too."""
        self.batches = batches

    def of(self, island: Island) -> Iterator[Divergence]:
        """Yield what differs in an island."""
        if len(island.variants) > 1:
            yield from self._variants(island)
        for copy in self._copies:
            if copy.name not in island.held and copy.start <= island.last:
                yield from self._lacking(copy, island)

    def is_fork(self, island: Island) -> bool:
        """Tell whether copies hold batches of other leaders in an island."""
        if len(island.variants) == 1:
            return False
        if _is_one_batch(island):
            return not _is_moved(island) and not self._wrong_epochs(island)
        pieces = [piece for found in island.held.values() for piece in found]
        firsts = {found[0].first_epoch for found in island.held.values()}
        return len(firsts) > 1 and all(piece.first_epoch >= 0 for piece in pieces)

    def _damages_of(self, copy: Copy, island: Island) -> list[CopyDamage]:
        """Return the damages that cover an island, and note that they were named."""
        first = bisect_right(self._untils[copy.name], island.base)
        found: list[CopyDamage] = []
        for number in range(first, len(copy.damages)):
            damage = copy.damages[number]
            if damage.offset > island.last:
                break
            if damage.kind != CopyDamageKind.TORN:
                self._told.add((copy.name, number))
                found.append(damage)
        return found

    # A copy holds nothing there.

    def _lacking(self, copy: Copy, island: Island) -> Iterator[Divergence]:
        base, until = island.base, island.last + 1
        holders = tuple(island.held)
        right = holders if len(island.variants) == 1 else ()
        damages = self._damages_of(copy, island)
        is_cleaned = is_compacted(self._log, base)
        if base < copy.end:
            self._ask(copy.name, island, is_cleaned=is_cleaned and not damages)
        if damages:
            yield _damaged(copy, damages[0], base, until, right)
        elif base >= copy.end:
            yield from self._beyond_end(copy, island)
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

    def _beyond_end(self, copy: Copy, island: Island) -> Iterator[Divergence]:
        base, until = island.base, island.last + 1
        pieces = [piece for found in island.held.values() for piece in found]
        holders = tuple(island.held)
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

    def _ask(self, name: str, island: Island, *, is_cleaned: bool) -> None:
        """Note that a copy lacks records of an island."""
        held = {other: pieces for other, pieces in island.held.items() if other != name}
        question = Question(island.base, held, is_cleaned)
        self._questions.setdefault(name, []).append(question)

    # Copies hold other things there.

    def _variants(self, island: Island) -> Iterator[Divergence]:
        if not _is_one_batch(island):
            yield from self._other_records(island)
        elif _is_moved(island):
            wrong = _outvoted(island)
            yield self._header_rot(island, wrong, "the same batch at another base offset")
        else:
            wrong = self._wrong_epochs(island)
            yield self._header_rot(island, wrong, "the same batch with another leader epoch")

    def _wrong_epochs(self, island: Island) -> tuple[str, ...]:
        """Return the copies in which one batch has a wrong leader epoch; empty: not known which."""
        by_name = {name: found[0] for name, found in island.held.items()}
        wrong = (
            tuple(
                name
                for name, piece in by_name.items()
                if self._contradicts(self._copy(name), piece)
            )
            or tuple(name for name, piece in by_name.items() if self._is_out_of_order(name, piece))
            or tuple(name for name in _outvoted(island) if self._is_unheard_of(by_name[name]))
        )
        return wrong if len(wrong) < len(by_name) else ()

    def _header_rot(self, island: Island, wrong: tuple[str, ...], detail: str) -> Divergence:
        right = tuple(name for name in island.held if name not in wrong)
        copies = wrong or tuple(island.held)
        return Divergence(
            DifferenceKind.ROT,
            True,
            island.base,
            island.last + 1,
            copies,
            right if wrong else (),
            detail=detail,
        )

    def _copy(self, name: str) -> Copy:
        return next(copy for copy in self._copies if copy.name == name)

    def _contradicts(self, copy: Copy, piece: CopyPiece) -> bool:
        epoch = copy.epoch_at(piece.base)
        return epoch is not None and epoch != piece.first_epoch

    def _is_out_of_order(self, name: str, piece: CopyPiece) -> bool:
        around = self.batches.get(name, [])
        known = [one for one in around if one.first_epoch >= 0]  # messages v0 and v1 have none
        before = [one.first_epoch for one in known if one.last < piece.base][-1:]
        behind = [one.first_epoch for one in known if one.base > piece.last][:1]
        is_below = any(epoch > piece.first_epoch for epoch in before)
        return is_below or any(epoch < piece.first_epoch for epoch in behind)

    def _is_unheard_of(self, piece: CopyPiece) -> bool:
        """Tell whether no checkpoint knows the epoch of a batch."""
        known = {epoch for copy in self._copies for epoch, _ in copy.epochs}
        return piece.first_epoch not in known

    def _other_records(self, island: Island) -> Iterator[Divergence]:
        variants = list(island.variants.values())
        records = [self._records(island, names[0]) for names in variants]
        base, until = island.base, island.last + 1
        if all(found is not None for found in records):
            known = [found for found in records if found is not None]
            everything = {offset: digest for found in known for offset, digest in found.items()}
            if all(everything[at] == digest for found in known for at, digest in found.items()):
                yield self._same_records(island, known)
                return
        wrong = _outvoted(island)
        right = tuple(name for name in island.held if name not in wrong) if wrong else ()
        detail = "other records under the same leader epoch, checksums are right"
        yield Divergence(
            DifferenceKind.CONFLICT,
            True,
            base,
            until,
            wrong or tuple(island.held),
            right,
            detail=detail,
        )

    def _same_records(
        self, island: Island, records: Sequence[Mapping[int, Hashable]]
    ) -> Divergence:
        """Tell of variants, by the records of each: where two have one, it is the same."""
        base, until = island.base, island.last + 1
        everything = {offset for found in records for offset in found}
        fewer = tuple(
            name
            for names, found in zip(island.variants.values(), records, strict=True)
            if len(found) < len(everything)
            for name in names
        )
        if not fewer:
            return Divergence(DifferenceKind.RECOMPRESSED, False, base, until, tuple(island.held))
        is_cleaned = is_compacted(self._log, base)
        for name in fewer:
            self._ask(name, island, is_cleaned=is_cleaned)
        if is_cleaned:
            return Divergence(DifferenceKind.COMPACTION, False, base, until, fewer)
        whole = tuple(name for name in island.held if name not in fewer)
        missing = len(everything) - min(map(len, records))
        detail = f"{missing} records of their batches are missing"
        return Divergence(DifferenceKind.LOST, True, base, until, fewer, whole, detail=detail)

    def _records(self, island: Island, name: str) -> Mapping[int, Hashable] | None:
        found: dict[int, Hashable] = {}
        for piece in island.held[name]:
            records = self._load.records(name, piece)
            if records is None:
                return None
            found.update(records)
        return found


def untold_damages(log: Sequence[Copy], told: Told) -> Iterator[Divergence]:
    """Yield the damage that no island named: no copy of its side holds what was there."""
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


def _is_one_batch(island: Island) -> bool:
    """Tell whether magic, size and checksum are the same: they cover neither offset nor epoch."""
    pieces = [piece for found in island.held.values() for piece in found]
    is_single = len(pieces) == len(island.held)
    return is_single and len({piece.stored for piece in pieces}) == 1


def _is_moved(island: Island) -> bool:
    return len({(found[0].base, found[0].last) for found in island.held.values()}) > 1


def _outvoted(island: Island) -> tuple[str, ...]:
    """Return the copies that differ from the majority; empty: there is no majority."""
    most = max(island.variants.values(), key=len)
    if 2 * len(most) <= len(island.held):
        return ()
    return tuple(name for name in island.held if name not in most)
