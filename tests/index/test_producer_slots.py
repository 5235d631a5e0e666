"""Where the row of a producer is looked for: Fibonacci hashing, as in TAOCP 6.4."""

from math import isqrt

import numpy as np
import pytest

from kafka_segments.kafka.index.segment import producer_batches as batch
from kafka_segments.kafka.index.segment.producer_summary import PRODUCER_COLUMNS
from kafka_segments.kafka.index.segment.summarizer import Summarizer, _slot

GOLDEN = (isqrt(5 * 2**128) - 2**64) // 2  # 2**64 by the golden ratio


@pytest.mark.parametrize("bits", [3, 10, 20])
def test_a_producer_is_looked_for_by_the_upper_half_of_its_number_times_the_golden_ratio(
    bits: int,
) -> None:
    slots = np.full(1 << bits, -1, dtype=np.int64)
    producers = np.zeros((1, PRODUCER_COLUMNS), dtype=np.int64)

    for producer_id in (0, 1, 2, 7, 1000, 2**31, 2**40 + 1, 2**63 - 1):
        expected = (producer_id * GOLDEN % 2**64 >> 32) % (1 << bits)
        assert _slot(slots, producers, producer_id) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 13, 16, 17, 100])
def test_there_are_four_to_eight_slots_a_producer(count: int) -> None:
    rows = np.zeros((count, batch.BATCH_COLUMNS), dtype=np.int64)
    rows[:, batch.PRODUCER_ID] = np.arange(count)
    summarizer = Summarizer()

    summarizer.add(rows)

    assert 4 * count < len(summarizer._slots) <= 8 * count
    assert len(summarizer.summary().producers) == count
