"""What is known of a partition's copies, and what is said of them."""

from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

UNBOUNDED = 2**63 - 1
"""An offset that no batch of a range has: what is behind the last segment has no end."""
_LEAST_QUORUM = 3
BY_HEADERS = "by headers alone: whether the records behind them are sound is not known"
"""What ranges that are equal get to hear where only headers were read."""


class Match(StrEnum):
    """Which logs of different copies are compared with each other."""

    BOTH = "both"
    """Those of one name; topic ids that differ are a finding."""
    NAME = "name"
    """Those of one name, whatever their topic ids: another cluster keeps the offsets."""
    ID = "id"
    """Those of one topic id, whatever their names."""


class CopyDamageKind(StrEnum):
    """What is wrong with bytes that are not a sound batch that belongs there."""

    ROT = "rot"
    """A checksum or a size is wrong."""
    MISPLACED = "misplaced"
    """The batch is sound, but its offsets are not of this place."""
    TORN = "torn"
    """Nothing stands behind: a write that was not finished."""
    UNREAD = "unread"
    """The file could not be read on."""


class CopyDamage(NamedTuple):
    """Damage of a copy: bytes at ``position`` of file ``segment``, where ``offset`` is expected.

    It takes the offsets from ``offset`` to before ``until``.
    """

    kind: CopyDamageKind
    offset: int
    until: int
    position: int
    reason: str
    segment: str = ""


class HeldEpoch(NamedTuple):
    """A leader epoch that batches have, and the offsets ``first`` and ``last`` of some of them."""

    epoch: int
    first: int
    last: int


class Copy(NamedTuple):
    """One copy of a partition's log.

    Attributes:
        name: as the user calls it.
        start: its log start offset: the greatest of the checkpoint's and the first base offset.
        end: offset behind its last sound batch, or the base offset of an empty last segment.
        high_watermark: as its checkpoint says; None: not known.
        epochs: leader epochs and their first offsets, as its checkpoint says, ascending.
        cleaner_offset: up to where its log was compacted, as its checkpoint says; None: it does not
            name the log, or is not at hand.
        gaps: places inside its segments where offsets are missing, or a batch lacks records.
        damages: what cannot be read, in the order of the log.
        is_tiered: its segments lie in tiered storage, which gets a log's last segments later.
        held_epochs: those of its batches, ascending: of the first and the last one in each range.
        is_start_noted: its log start can lie elsewhere than where its first segment begins: a
            checkpoint says so, or is not at hand.
        has_cleaner_checkpoint: ``cleaner-offset-checkpoint`` is at hand, whether it names the log
            or not.
        is_compact: whether the topic's cleanup.policy compacts it; None: it is not known.
    """

    name: str
    start: int
    end: int
    high_watermark: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()
    cleaner_offset: int | None = None
    gaps: int = 0
    damages: tuple[CopyDamage, ...] = ()
    is_tiered: bool = False
    held_epochs: tuple[HeldEpoch, ...] = ()
    is_start_noted: bool = True
    has_cleaner_checkpoint: bool = False
    is_compact: bool | None = None

    @property
    def cut_at(self) -> int:
        """Return the offset up to which the front of its log was taken, as far as that is known.

        Where a log start moves, the first leader epoch moves with it: UnifiedLog.
        maybeIncrementLogStartOffset (4.3.1). One that still begins in front of the first segment
        tells that the broker did not take what was between.
        """
        if self.is_start_noted or not self.epochs:
            return self.start
        return min(self.start, self.epochs[0][1])

    def epoch_at(self, offset: int) -> int | None:
        """Return the leader epoch of an offset by the checkpoint; None: the checkpoint has none."""
        held = [epoch for epoch, start in self.epochs if start <= offset]
        return held[-1] if held else None

    def leads_from(self, offset: int, epoch: int) -> bool:
        """Tell whether its checkpoint has a newer epoch that begins at or before an offset."""
        latest, start = max(self.epochs, default=(-1, 0))
        return epoch < latest and start <= offset


def with_quorum_end(copies: Sequence[Copy]) -> list[Copy]:
    """Return copies of the metadata log with the high watermark that follows from their ends.

    No checkpoint has it: what most of the voters hold is committed. With fewer than three copies
    it is not known what the other voters hold.
    """
    if len(copies) < _LEAST_QUORUM:
        return list(copies)
    committed = sorted((copy.end for copy in copies), reverse=True)[len(copies) // 2]
    return [copy._replace(high_watermark=committed) for copy in copies]


def of_other_clusters(copies: Sequence[Copy]) -> list[Copy]:
    """Return copies of several clusters without their leader epochs and high watermarks.

    Each cluster has its own: what one has replicated need not be in another yet. A high watermark
    beyond the copy's own end stays: what lies between is lost there.
    """
    return [
        copy._replace(
            epochs=(),
            high_watermark=copy.high_watermark if (copy.high_watermark or 0) > copy.end else 0,
        )
        for copy in copies
    ]


class CopyPiece(NamedTuple):
    """Some batches of a copy that follow one another, or one batch.

    Attributes:
        base: first offset. last: last offset.
        content: equal in copies that hold the same bytes.
        stored: magic, size and checksum of a single batch; None: there are several.
        where: how to read it.
        ends: of a single batch that ends a transaction, the producer's id; None: it ends none.
    """

    base: int
    last: int
    first_epoch: int
    last_epoch: int
    content: Hashable
    stored: tuple[int, int, int] | None = None
    where: Any = None
    ends: int | None = None

    def without_epochs(self) -> "CopyPiece":
        """Return the same without its leader epochs."""
        return self._replace(first_epoch=-1, last_epoch=-1)


class DifferenceKind(StrEnum):
    """How copies differ."""

    EQUAL = "equal"
    LATER_START = "later start"
    """Retention or DeleteRecords came further: no fault."""
    COMPACTION = "compaction"
    """Other records survived: no fault."""
    RECOMPRESSED = "recompressed"
    """The same records in other bytes: no fault."""
    BEHIND = "behind"
    """Ends earlier; a fault below the high watermark."""
    AHEAD = "ahead"
    """Holds more of an epoch that ended earlier elsewhere: not yet truncated."""
    FORK = "fork"
    """Two leaders wrote other batches at the same offsets."""
    ROT = "bit rot"
    """Bytes changed on the disk."""
    MISPLACED = "misplaced"
    """Sound batches of another place, as in a segment that was exchanged."""
    LOST = "lost middle"
    """Offsets are missing that neither compaction nor retention explains."""
    EPOCHS = "epoch history"
    """A checkpoint says other leader epochs than batches or other copies do."""
    CONFLICT = "conflict"
    """Other records under the same epoch, all sound: no broker does that."""
    FIELDS = "other fields"
    """The same keys, values and headers with another timestamp, producer, sequence or flag."""
    TOPIC_ID = "topic id"
    """Another topic of the same name."""
    UNREAD = "unread"
    """Files that could not be read."""


DAMAGED = (DifferenceKind.ROT, DifferenceKind.MISPLACED, DifferenceKind.UNREAD)
"""The kinds of bytes that are not a sound batch that belongs there."""
CONTRADICTIONS = (DifferenceKind.CONFLICT, DifferenceKind.FIELDS)
"""The kinds of sound batches that contradict each other under one epoch."""
UNSOUND = (*DAMAGED, DifferenceKind.LOST, *CONTRADICTIONS)
"""The kinds at which a copy is wrong in their range: nothing is taken from it there."""


class Divergence(NamedTuple):
    """A range of offsets in which copies are alike, or differ in one way.

    Attributes:
        kind: how.
        is_finding: someone must look at it.
        from_offset: first offset. until_offset: behind the last one.
        copies: the copies that are wrong.
        right: the copies that are right; empty: not known which.
        epoch: in a fork, the last epoch that all sides share; None: not known.
        detail: what was found, in words.
    """

    kind: DifferenceKind
    is_finding: bool
    from_offset: int
    until_offset: int
    copies: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    epoch: int | None = None
    detail: str = ""

    @property
    def is_behind_all(self) -> bool:
        """Whether no copy holds the range, which lies behind the end of each."""
        return self.kind == DifferenceKind.BEHIND and not self.right
