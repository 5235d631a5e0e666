"""What one segment does to the producer state, whatever the state was before it.

A segment is summarised without the segments before it. What depends on them is kept as a step, and
``ProducerState.apply`` decides it later. Two tables of int64:

``producers``, a row a producer in the order of their first batches, columns below: where its
entry stands at the end, and whether it still remembers the batch it had before the segment.

``steps``, what transactions need, in order:

1. the first batch of a producer, if it is data outside a transaction: a transaction left open
   by an earlier segment makes the broker refuse the log there (CHECK);
2. the begin of a transaction that is still open at the end, that is aborted, or whose producer
   had no batch before it in the segment: an earlier segment may have begun it (BEGIN);
3. the marker of such a transaction, and the one that is its producer's first batch (COMMIT, ABORT);
4. the begin and the marker of the transaction that is the oldest of another producer at an abort:
   it is the last stable offset of the index entry;
5. from the first transaction on whose first offset is not above all before it, every begin and
   marker: offsets that go back can make the broker refuse the log.

6. last, where offsets go back in the segment, the first batch that does: a CHECK of no producer.
   It tells a load that the order of the batches is not that of their offsets.

A transaction begun and committed within the segment leaves nothing. Source:
ProducerAppendInfo.append, ProducerStateManager.update, lastStableOffset, completeTxn.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.index.segment.producer_batches import DATA, TRANSACTIONAL_DATA

Table = npt.NDArray[np.int64]

# Columns of ``producers``.
PRODUCER_ID = 0
HAS_EPOCH = 1  # 0: nothing but markers that compaction emptied
EPOCH = 2
KEEPS_BATCH = 3  # 1: the batch remembered from before stays, if the epoch is the same
HAS_BATCH = 4  # 1: the next three are the newest batch
LAST_SEQUENCE = 5
LAST_OFFSET = 6
OFFSET_DELTA = 7
TIMESTAMP = 8  # ms
HAS_MARKER = 9  # 1: the next is known
COORDINATOR_EPOCH = 10
PRODUCER_COLUMNS = 11

# Columns of ``steps``.
STEP_KIND = 0
STEP_PRODUCER_ID = 1
STEP_OFFSET = 2  # BEGIN: first offset; COMMIT, ABORT: the marker's
STEP_POSITION = 3  # of the batch in the file
STEP_COLUMNS = 4

# Values of STEP_KIND: those of ``producer_batches``, and
BEGIN = TRANSACTIONAL_DATA
CHECK = DATA

NO_PRODUCER = -1


class ProducerSummary(NamedTuple):
    """The tables ``producers`` and ``steps`` of one segment."""

    producers: Table
    steps: Table

    def has_transactions(self) -> bool:
        """Tell whether a step is more than the first batch of a producer without transactions."""
        return len(self.steps) > 0 and bool((self.steps[:, STEP_KIND] != CHECK).any())

    def goes_back(self) -> bool:
        """Tell whether an offset goes back somewhere in the segment."""
        return bool((self.steps[:, STEP_PRODUCER_ID] == NO_PRODUCER).any())

    def gone_back(self, position: int, offset: int) -> "ProducerSummary":
        """Note the first batch whose offsets go back."""
        step = np.array([[CHECK, NO_PRODUCER, offset, position]], dtype=np.int64)
        return self._replace(steps=np.concatenate((self.steps, step)))


_EMPTY = ProducerSummary(
    np.empty((0, PRODUCER_COLUMNS), dtype=np.int64), np.empty((0, STEP_COLUMNS), dtype=np.int64)
)


def empty_summary() -> ProducerSummary:
    """Return the summary of a segment without producers."""
    return _EMPTY
