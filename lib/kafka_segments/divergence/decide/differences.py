"""Name the difference of one island of a log."""

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_segments.divergence.decide.copies import (
    Copy,
    Damage,
    DamageKind,
    Divergence,
    Kind,
    Piece,
)
from kafka_segments.divergence.decide.islands import Held, Island

if TYPE_CHECKING:
    from kafka_segments.divergence.decide.logs import Load

_OF_DAMAGE = {
    DamageKind.ROT: Kind.ROT,
    DamageKind.MISPLACED: Kind.MISPLACED,
    DamageKind.UNREAD: Kind.UNREAD,
}


class Differences:
    """Names one island after another, ascending; ``has_forked`` after the first fork."""

    def __init__(self, copies: Sequence[Copy], load: "Load") -> None:
        self._copies = copies
        self._load = load
        self._end = max(copy.end for copy in copies)
        marks = [copy.high_watermark for copy in copies if copy.high_watermark is not None]
        self._committed = max(marks, default=None)
        self._batches: Held = {}
        self._untils = {copy.name: [one.until for one in copy.damages] for copy in copies}
        self._told: set[tuple[str, int]] = set()
        self.has_forked = False

    def note_batches(self, batches: Held) -> None:
        """Take the batches around the islands to come, equal ones too."""
        self._batches = batches

    def of(self, island: Island) -> Iterator[Divergence]:
        """Yield what differs in an island."""
        if len(island.variants) > 1:
            yield from self._variants(island)
        for copy in self._copies:
            if copy.name not in island.held and copy.start <= island.last:
                yield from self._lacking(copy, island)

    def untold_damages(self) -> Iterator[Divergence]:
        """Yield the damage of which no island told: no copy holds what was there."""
        for copy in self._copies:
            for number, damage in enumerate(copy.damages):
                is_told = (copy.name, number) in self._told
                if is_told or damage.kind == DamageKind.TORN or damage.until <= copy.start:
                    continue
                until = max(min(damage.until, self._end), damage.offset)
                yield self._damaged(copy, damage, damage.offset, until, ())

    def _damages_of(self, copy: Copy, island: Island) -> list[Damage]:
        """Return the damages that cover an island; they count as told."""
        first = bisect_right(self._untils[copy.name], island.base)
        found: list[Damage] = []
        for number in range(first, len(copy.damages)):
            damage = copy.damages[number]
            if damage.offset > island.last:
                break
            if damage.kind != DamageKind.TORN:
                self._told.add((copy.name, number))
                found.append(damage)
        return found

    # A copy holds nothing there.

    def _lacking(self, copy: Copy, island: Island) -> Iterator[Divergence]:
        base, until = island.base, island.last + 1
        holders = tuple(island.held)
        right = holders if len(island.variants) == 1 else ()
        damages = self._damages_of(copy, island)
        if damages:
            yield self._damaged(copy, damages[0], base, until, right)
        elif base >= copy.end:
            yield from self._beyond_end(copy, island)
        elif self._is_compacted(base):
            yield Divergence(Kind.COMPACTION, False, base, until, (copy.name,))
        else:
            yield Divergence(
                Kind.LOST,
                True,
                base,
                until,
                (copy.name,),
                right,
                detail=f"{copy.name} goes on behind these offsets and has none of them",
            )

    def _beyond_end(self, copy: Copy, island: Island) -> Iterator[Divergence]:
        base, until = island.base, self._end if self.has_forked else island.last + 1
        pieces = [piece for found in island.held.values() for piece in found]
        holders = tuple(island.held)
        epoch = min(piece.first_epoch for piece in pieces)
        latest, start = max(copy.epochs, default=(-1, 0))
        if 0 <= epoch < latest and start <= base:
            detail = f"of epoch {epoch}, {copy.name} has epoch {latest} from {start} on"
            shared = copy.epoch_at(copy.end - 1)
            yield Divergence(Kind.AHEAD, True, base, until, holders, (copy.name,), shared, detail)
            return
        ends = f"{copy.name} ends at {copy.end}"
        for damage in copy.damages:
            if damage.kind == DamageKind.TORN:
                ends += f", {damage.segment} is torn at byte {damage.position}: {damage.reason}"
        if copy.is_tiered:
            detail = f"{ends}; what follows is not in tiered storage yet"
            yield Divergence(Kind.BEHIND, False, base, until, (copy.name,), holders, detail=detail)
            return
        committed = until if self._committed is None else min(max(self._committed, base), until)
        if base < committed:
            yield Divergence(Kind.BEHIND, True, base, committed, (copy.name,), holders, detail=ends)
        if committed < until:
            detail = f"{ends}; not below a high watermark, so not yet replicated"
            yield Divergence(
                Kind.BEHIND, False, committed, until, (copy.name,), holders, detail=detail
            )

    def _damaged(
        self, copy: Copy, damage: Damage, base: int, until: int, right: tuple[str, ...]
    ) -> Divergence:
        detail = f"{damage.segment} at byte {damage.position}: {damage.reason}"
        return Divergence(
            _OF_DAMAGE[damage.kind], True, base, until, (copy.name,), right, detail=detail
        )

    def _is_compacted(self, offset: int) -> bool:
        """Tell whether compaction may have taken what a copy lacks at an offset.

        A follower that was made anew gets a compacted log and has no checkpoint of its own, so
        that of any copy counts. Where none has one, what the batches tell counts.
        """
        cleaned = [c.cleaner_offset for c in self._copies if c.cleaner_offset is not None]
        if cleaned:
            return offset < max(cleaned)
        return any(copy.is_thinned for copy in self._copies)

    # Copies hold other things there.

    def _variants(self, island: Island) -> Iterator[Divergence]:
        pieces = [piece for found in island.held.values() for piece in found]
        is_single = all(len(found) == 1 for found in island.held.values())
        if is_single and len({piece.stored for piece in pieces}) == 1:
            yield from self._other_headers(island)
            return
        epochs = {
            tuple((piece.first_epoch, piece.last_epoch) for piece in found)
            for found in island.held.values()
        }
        is_known = all(piece.first_epoch >= 0 for piece in pieces)
        if is_known and len({spans[0][0] for spans in epochs}) > 1:
            yield self._fork(island)
        else:
            yield from self._other_records(island)

    def _fork(self, island: Island) -> Divergence:
        self.has_forked = True
        first = {name: found[0].first_epoch for name, found in island.held.items()}
        latest = max(first.values())
        right = tuple(name for name, epoch in first.items() if epoch == latest)
        wrong = tuple(name for name in first if name not in right)
        detail = ", ".join(f"{name} has epoch {epoch}" for name, epoch in first.items())
        return Divergence(
            Kind.FORK,
            True,
            island.base,
            self._end,
            wrong,
            right,
            self._epoch_before(island.base),
            detail,
        )

    def _epoch_before(self, offset: int) -> int | None:
        """Return the leader epoch of the last batch in front of an offset."""
        epochs = [
            piece.last_epoch
            for found in self._batches.values()
            for piece in found
            if piece.last < offset
        ]
        if epochs:
            return max(epochs)
        held = [copy.epoch_at(offset - 1) for copy in self._copies]
        return min((epoch for epoch in held if epoch is not None), default=None)

    def _other_headers(self, island: Island) -> Iterator[Divergence]:
        """The checksum is the same, and it covers neither the base offset nor the epoch."""
        by_name = {name: found[0] for name, found in island.held.items()}
        places = {(piece.base, piece.last) for piece in by_name.values()}
        if len(places) > 1:
            wrong = self._outvoted(island)
            yield self._header_rot(island, wrong, "the same batch at another base offset")
            return
        wrong = (
            tuple(
                name
                for name, piece in by_name.items()
                if self._contradicts(self._copy(name), piece)
            )
            or tuple(name for name, piece in by_name.items() if self._is_out_of_order(name, piece))
            or tuple(name for name in self._outvoted(island) if self._is_unheard_of(by_name[name]))
        )
        if 0 < len(wrong) < len(by_name):
            yield self._header_rot(island, wrong, "the same batch with another leader epoch")
        else:
            yield self._fork(island)

    def _header_rot(self, island: Island, wrong: tuple[str, ...], detail: str) -> Divergence:
        right = tuple(name for name in island.held if name not in wrong)
        copies = wrong or tuple(island.held)
        return Divergence(
            Kind.ROT,
            True,
            island.base,
            island.last + 1,
            copies,
            right if wrong else (),
            detail=detail,
        )

    def _copy(self, name: str) -> Copy:
        return next(copy for copy in self._copies if copy.name == name)

    def _contradicts(self, copy: Copy, piece: Piece) -> bool:
        epoch = copy.epoch_at(piece.base)
        return epoch is not None and epoch != piece.first_epoch

    def _is_out_of_order(self, name: str, piece: Piece) -> bool:
        around = self._batches.get(name, [])
        known = [one for one in around if one.first_epoch >= 0]  # messages v0 and v1 have none
        before = [one.first_epoch for one in known if one.last < piece.base][-1:]
        behind = [one.first_epoch for one in known if one.base > piece.last][:1]
        is_below = any(epoch > piece.first_epoch for epoch in before)
        return is_below or any(epoch < piece.first_epoch for epoch in behind)

    def _is_unheard_of(self, piece: Piece) -> bool:
        """Tell whether no checkpoint knows the epoch of a batch."""
        known = {epoch for copy in self._copies for epoch, _ in copy.epochs}
        return piece.first_epoch not in known

    def _outvoted(self, island: Island) -> tuple[str, ...]:
        """Return the copies that hold something else than most do; empty: there is no majority."""
        most = max(island.variants.values(), key=len)
        if 2 * len(most) <= len(island.held):
            return ()
        return tuple(name for name in island.held if name not in most)

    def _other_records(self, island: Island) -> Iterator[Divergence]:
        variants = list(island.variants.values())
        records = [self._records(island, names[0]) for names in variants]
        base, until = island.base, island.last + 1
        if all(found is not None for found in records):
            known = [found for found in records if found is not None]
            everything = {offset: digest for found in known for offset, digest in found.items()}
            if all(everything[at] == digest for found in known for at, digest in found.items()):
                yield self._same_records(island, [len(found) for found in known])
                return
        wrong = self._outvoted(island)
        right = tuple(name for name in island.held if name not in wrong) if wrong else ()
        detail = "other records under the same leader epoch, checksums are right"
        yield Divergence(
            Kind.CONFLICT, True, base, until, wrong or tuple(island.held), right, detail=detail
        )

    def _same_records(self, island: Island, counts: list[int]) -> Divergence:
        base, until = island.base, island.last + 1
        variants = list(island.variants.values())
        if len(set(counts)) == 1:
            return Divergence(Kind.RECOMPRESSED, False, base, until, tuple(island.held))
        fewer = [
            name
            for names, count in zip(variants, counts, strict=True)
            if count < max(counts)
            for name in names
        ]
        whole = tuple(name for name in island.held if name not in fewer)
        if self._is_compacted(base):
            return Divergence(Kind.COMPACTION, False, base, until, tuple(fewer))
        detail = f"{max(counts) - min(counts)} records of their batches are missing"
        return Divergence(Kind.LOST, True, base, until, tuple(fewer), whole, detail=detail)

    def _records(self, island: Island, name: str) -> Mapping[int, Hashable] | None:
        found: dict[int, Hashable] = {}
        for piece in island.held[name]:
            records = self._load.records(name, piece)
            if records is None:
                return None
            found.update(records)
        return found
