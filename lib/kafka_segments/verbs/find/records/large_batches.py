"""The largest batches, and whose they are, held against ``max.message.bytes``.

A broker refuses a batch that is larger, as it stands on the wire, with RecordTooLargeException; one
that is there all the same was written under another setting, or by an older broker. Source:
UnifiedLog.append, LogConfig.maxMessageSize.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.kafka.wire import batches as wire

MAX_MESSAGE_BYTES = 1024 * 1024 + 12
_SPARE = 8


class LargeBatch(NamedTuple):
    """A batch by its bytes, the largest of its topic and producer.

    ``largest_record_bytes``: keys, values and headers with their lengths; None: not decoded.
    """

    size_bytes: int
    path: str
    topic: str
    partition: int
    position: int
    base_offset: int
    records: int
    producer_id: int
    limit_bytes: int
    largest_record_bytes: int | None = None

    @property
    def is_above(self) -> bool:
        """Tell whether it is larger than ``max.message.bytes``."""
        return self.size_bytes > self.limit_bytes


class LargestBatches:
    """The largest batch of each topic and producer, and how many batches are above the limit.

    Args:
        most: so many are kept, the largest ones.
        limits: ``max.message.bytes`` of topics that do not have ``default``.
        default: the limit of all others.
    """

    def __init__(
        self, most: int, limits: Mapping[str, int] | None = None, default: int = MAX_MESSAGE_BYTES
    ) -> None:
        self._most, self._limits, self._default = most, limits or {}, default
        self._largest: dict[tuple[str, int], LargeBatch] = {}
        self.above: Counter[str] = Counter()

    def anew(self) -> "LargestBatches":
        """Return an empty one with the same limits."""
        return LargestBatches(self._most, self._limits, self._default)

    def limit_of(self, topic: str) -> int:
        """Return a topic's ``max.message.bytes``."""
        return self._limits.get(topic, self._default)

    def note(
        self,
        batches: wire.Batches,
        segment: ListedSegment,
        start: int,
        largest_record: Callable[[int], int | None],
    ) -> None:
        """Note some batches of a segment.

        Args:
            batches: the batches.
            segment: the segment.
            start: the byte of the file that positions count from.
            largest_record: gives the bytes of the largest record of a batch, by its number.
        """
        sizes, producers = batches[wire.BATCH_SIZE_BYTES], batches[wire.BATCH_PRODUCER_ID]
        limit = self.limit_of(segment.topic)
        above = int(np.count_nonzero(sizes > limit))
        if above:
            self.above[segment.topic] += above
        descending = np.argsort(-sizes, kind="stable")
        _, first = np.unique(producers[descending], return_index=True)
        for at in descending[np.sort(first)][: self._most].tolist():
            if not self._is_wanted(segment.topic, int(producers[at]), int(sizes[at])):
                continue
            one = LargeBatch(
                int(sizes[at]),
                segment.path,
                segment.topic,
                segment.partition,
                start + int(batches[wire.BATCH_POSITION, at]),
                int(batches[wire.BATCH_BASE_OFFSET, at]),
                int(batches[wire.BATCH_RECORD_COUNT, at]),
                int(producers[at]),
                limit,
                largest_record(at),
            )
            self._largest[one.topic, one.producer_id] = one
        self._forget()

    def take(self, other: "LargestBatches") -> None:
        """Add what another one has noted."""
        self.above += other.above
        for key, one in other._largest.items():
            if one.size_bytes > self._size_of(key):
                self._largest[key] = one
        self._forget()

    def rows(self) -> list[LargeBatch]:
        """Return the largest ones, the largest first."""
        return sorted(self._largest.values(), reverse=True, key=_order)[: self._most]

    def _is_wanted(self, topic: str, producer_id: int, size_bytes: int) -> bool:
        key = topic, producer_id
        if key in self._largest or len(self._largest) < self._most:
            return size_bytes > self._size_of(key)
        return size_bytes > min(one.size_bytes for one in self._largest.values())

    def _size_of(self, key: tuple[str, int]) -> int:
        known = self._largest.get(key)
        return -1 if known is None else known.size_bytes

    def _forget(self) -> None:
        if len(self._largest) > _SPARE * self._most:
            self._largest = _by_key(self.rows())


def _order(one: LargeBatch) -> tuple[int, str, int, int]:
    return one.size_bytes, one.topic, one.partition, one.base_offset


def _by_key(rows: Iterable[LargeBatch]) -> dict[tuple[str, int], LargeBatch]:
    return {(one.topic, one.producer_id): one for one in rows}
