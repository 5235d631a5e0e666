"""The producer state of a log: what each producer sent last, which transactions are open.

``ProducerState.apply`` takes the summaries of segments one after another, in the order of their
base offsets; the result is that of reading all their batches. A segment that the broker refuses
changes nothing.

Source: ProducerStateManager, ProducerStateEntry, ProducerAppendInfo (2.0 and later);
UnifiedLog.loadProducersFromRecords, HashMap.computeIfAbsent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from kafka_segments.errors import InvalidTransactionError
from kafka_segments.kafka.index.segment import producer_summary as summary_of
from kafka_segments.kafka.index.segment.producer_batches import ABORT
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary, Table
from kafka_segments.kafka.index.segment.transaction_index import AbortedTransaction
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP

NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
_FIRST_BUCKETS = 16
_LEAST_OF_TREES = 64  # buckets; from there on a full one becomes a tree
_MOST_IN_BUCKET = 8
_Of = TypeVar("_Of")


class NewestBatch(NamedTuple):
    """The newest batch that an entry remembers."""

    last_sequence: int = NO_SEQUENCE
    last_offset: int = NO_OFFSET
    offset_delta: int = 0


class ProducerEntry(NamedTuple):
    """One producer; ``timestamp`` in ms. Its open transaction is in ``ProducerState.open``."""

    epoch: int = NO_EPOCH
    batch: NewestBatch = NewestBatch()
    timestamp: int = NO_TIMESTAMP
    coordinator_epoch: int = NO_EPOCH


@dataclass
class ProducerState:
    """Producers by id, in the order in which they came.

    ``open`` has the first offset of a producer's open transaction, ``ongoing`` the producer of a
    transaction by its first offset. They say the same unless offsets go back: there a second
    transaction can take the place of the first in ``ongoing``. ``unreplicated`` has the first
    offsets of those that ended in what was read again.
    """

    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)
    ongoing: dict[int, int] = field(default_factory=dict)
    unreplicated: tuple[int, ...] = ()

    def copy(self) -> "ProducerState":
        """Return an independent copy."""
        return replace(
            self, entries=dict(self.entries), open=dict(self.open), ongoing=dict(self.ongoing)
        )

    def apply(
        self, summary: ProducerSummary, *, is_reread: bool = False
    ) -> list[AbortedTransaction]:
        """Take the batches of the next segment; return the entries of its transaction index.

        ``is_reread``: the state is read again after a cut. No transaction index is written, whose
        entries would have to rise, and new producers come in the order of Kafka's HashMap: within
        a bucket the newest comes first. All transactions of the summary begin before the first of
        them ends: one that begins where another that ends there had begun is open and yet not
        ongoing.

        Raises:
            InvalidTransactionError: the broker refuses the log; the state is as before.
        """
        steps = _Steps(dict(self.open), dict(self.ongoing), is_reread=is_reread)
        aborted = steps.take(summary.steps)
        self.open, self.ongoing = steps.open, steps.ongoing
        self.unreplicated += steps.unreplicated()
        rows = {row[summary_of.PRODUCER_ID]: row for row in summary.producers.tolist()}
        for producer_id, row in _computed_order(rows) if is_reread else rows.items():
            before = self.entries.get(producer_id, ProducerEntry())
            self.entries[producer_id] = _entry_after(before, row)
        return aborted

    def without_expired(self, *, now_ms: int, expiration_ms: int) -> "ProducerState":
        """Drop producers that are silent for ``expiration_ms`` and have no open transaction.

        A broker does so whenever it reads a snapshot, where a transaction from an offset below 0
        on counts as none. Source: ProducerStateManager.readSnapshot, isProducerExpired.
        """
        opened = {producer_id: offset for producer_id, offset in self.open.items() if offset >= 0}
        kept = {
            producer_id: entry
            for producer_id, entry in in_hash_order(self.entries)  # as the file has them
            if producer_id in opened or _wrapped(now_ms - entry.timestamp) < expiration_ms
        }
        ongoing = {
            opened[producer_id]: producer_id for producer_id in kept if producer_id in opened
        }
        return ProducerState(kept, opened, ongoing)

    def first_unstable_offset(self) -> int | None:
        """Return the first offset that readers must wait for, None where there is none."""
        return min((*self.ongoing, *self.unreplicated), default=None)


def _wrapped(number: int) -> int:
    """Return a sum or difference as a Java long holds it: modulo 2**64, signed."""
    return (number + 2**63) % 2**64 - 2**63


def _entry_after(before: ProducerEntry, row: list[int]) -> ProducerEntry:
    if not row[summary_of.HAS_EPOCH]:
        return before
    batch = NewestBatch()
    if row[summary_of.HAS_BATCH]:
        batch = NewestBatch(
            row[summary_of.LAST_SEQUENCE],
            row[summary_of.LAST_OFFSET],
            row[summary_of.OFFSET_DELTA],
        )
    elif row[summary_of.KEEPS_BATCH] and row[summary_of.EPOCH] == before.epoch:
        batch = before.batch
    return ProducerEntry(
        epoch=row[summary_of.EPOCH],
        batch=batch,
        timestamp=row[summary_of.TIMESTAMP],
        coordinator_epoch=row[summary_of.COORDINATOR_EPOCH]
        if row[summary_of.HAS_MARKER]
        else before.coordinator_epoch,
    )


def in_hash_order(of_producers: Mapping[int, _Of]) -> list[tuple[int, _Of]]:
    """Return values by producer id in the order of a Java HashMap filled in their order."""
    return _by_bucket(of_producers, _buckets(of_producers))


def _by_bucket(of_producers: Mapping[int, _Of], buckets: int) -> list[tuple[int, _Of]]:
    return sorted(of_producers.items(), key=lambda entry: _hash(entry[0]) & (buckets - 1))


def _computed_order(rows: dict[int, list[int]]) -> list[tuple[int, list[int]]]:
    """Return the rows in the order of a HashMap that ``computeIfAbsent`` has filled.

    Within a bucket the newest key comes first. The map counts its keys before it adds one, and
    eight in a bucket are too many. Whether a batch follows the one that brought the last
    producer is told by the greatest last offset.
    """
    last_offsets = [row[summary_of.LAST_OFFSET] for row in rows.values()]
    goes_on = bool(rows) and last_offsets[-1] < max(last_offsets)
    buckets = _buckets(rows, most_in_bucket=_MOST_IN_BUCKET - 1, is_counted_at_end=goes_on)
    return _by_bucket(dict(reversed(rows.items())), buckets)


def _buckets(
    producer_ids: Iterable[int],
    *,
    most_in_bucket: int = _MOST_IN_BUCKET,
    is_counted_at_end: bool = True,
) -> int:
    """Count the buckets: twice as many where more than three quarters are full, or one is.

    One of few buckets is full with ``most_in_bucket``. ``is_counted_at_end``: keys are counted
    after the last one, too. Source: HashMap.putVal, computeIfAbsent, treeifyBin.
    """
    buckets = _FIRST_BUCKETS
    hashes: list[int] = []
    for producer_id in producer_ids:
        buckets *= 2 if 4 * len(hashes) > 3 * buckets else 1
        added = _hash(producer_id)
        hashes.append(added)
        if buckets < _LEAST_OF_TREES:
            mask = buckets - 1
            shared = sum(1 for other in hashes if (other ^ added) & mask == 0)
            buckets *= 2 if shared > most_in_bucket else 1
    is_grown = is_counted_at_end and 4 * len(hashes) > 3 * buckets
    return 2 * buckets if is_grown else buckets


def _hash(producer_id: int) -> int:
    folded = (producer_id ^ (producer_id >> 32)) & 0xFFFFFFFF
    return folded ^ (folded >> 16)


class _Steps:
    """The open transactions while the steps of a segment are taken."""

    def __init__(self, opened: dict[int, int], ongoing: dict[int, int], *, is_reread: bool) -> None:
        self._is_reread = is_reread
        self.open = opened
        self.ongoing = ongoing
        self._aborted: list[AbortedTransaction] = []
        self._ended: list[tuple[int, int, int]] = []  # of what is read again: they end at last

    def take(self, steps: Table) -> list[AbortedTransaction]:
        for kind, producer_id, offset, position in steps.tolist():
            if kind == summary_of.CHECK:
                if producer_id in self.open:
                    raise InvalidTransactionError(
                        position,
                        f"producer {producer_id} sends outside a transaction, and that from offset"
                        f" {self.open[producer_id]} on is open",
                    )
            elif kind == summary_of.BEGIN:
                if producer_id not in self.open:
                    self.open[producer_id] = offset
                    self.ongoing[offset] = producer_id
            elif producer_id in self.open:
                self._end(producer_id, offset, position, is_abort=kind == ABORT)
        for ended in self._ended:
            self._complete(*ended)
        return self._aborted

    def unreplicated(self) -> tuple[int, ...]:
        return tuple(first_offset for _, first_offset, _ in self._ended)

    def _end(self, producer_id: int, offset: int, position: int, *, is_abort: bool) -> None:
        first_offset = self.open.pop(producer_id)
        if is_abort:
            others = (first for first, other in self.ongoing.items() if other != producer_id)
            stable = min(others, default=_wrapped(offset + 1))
            goes_back = bool(self._aborted) and offset <= self._aborted[-1].last_offset
            if goes_back and not self._is_reread:
                raise InvalidTransactionError(
                    position,
                    f"the marker of producer {producer_id} has offset {offset}, the aborted"
                    f" transaction before it ends at {self._aborted[-1].last_offset}",
                )
            self._aborted.append(AbortedTransaction(producer_id, first_offset, offset, stable))
        if self._is_reread:
            self._ended.append((producer_id, first_offset, position))
        else:
            self._complete(producer_id, first_offset, position)

    def _complete(self, producer_id: int, first_offset: int, position: int) -> None:
        if self.ongoing.pop(first_offset, None) is None:
            raise InvalidTransactionError(
                position,
                f"producer {producer_id} ends its transaction from offset {first_offset} on, and"
                " another from the same offset on has ended already",
            )
