"""Which batches of transactions a pass of the cleaner may take out, as it comes by them.

Data of an aborted transaction go. A marker goes once no batch of its transaction is left: of an
aborted one, where the pass met none since the last marker of the producer; of a committed one, too.
Source: CleanedTransactionMetadata (4.3.1).
"""

import heapq
from collections.abc import Iterable

from kafka_segments.kafka.index.segment.producer_batches import ABORT, COMMIT, EMPTY_CONTROL
from kafka_segments.kafka.index.segment.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions at a batch of a pass; batches of transactions are to come in their order."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, int]] = []
        self._aborted: dict[int, bool] = {}
        self._committed: set[int] = set()

    def add(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take the aborted transactions that have data or a marker in the next segment."""
        for one in aborted:
            heapq.heappush(self._coming, (one.first_offset, one.producer_id))

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Come by a transactional batch of data; tell whether its transaction is aborted."""
        self._come_to(last_offset)
        if producer_id in self._aborted:
            self._aborted[producer_id] = True
            return True
        self._committed.add(producer_id)
        return False

    def may_go(self, producer_id: int, last_offset: int, kind: int) -> bool:
        """Come by a control batch of a kind of ``producer_batches``; tell whether it may go."""
        self._come_to(last_offset)
        if kind == ABORT:
            return not self._aborted.pop(producer_id, False)
        if kind == COMMIT:
            has_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_data
        return kind == EMPTY_CONTROL

    def _come_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, producer_id = heapq.heappop(self._coming)
            self._aborted.setdefault(producer_id, False)
