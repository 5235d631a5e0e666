"""The steps of a segment whose transactions begin below those before them."""

import numpy as np
import pytest

from kafka_segments.kafka.index.segment.producer_batches import (
    BATCH_COLUMNS,
    COMMIT,
    DATA,
    FIRST_OFFSET,
    KIND,
    LAST_OFFSET,
    PRODUCER_ID,
    TRANSACTIONAL_DATA,
)
from kafka_segments.kafka.index.segment.producer_summary import BEGIN, CHECK, STEP_KIND, STEP_OFFSET
from kafka_segments.kafka.index.segment.summarizer import Summarizer

PRODUCER = 7


def _steps(*batches: tuple[int, int]) -> list[tuple[int, int]]:
    """Give the (kind, offset) of the steps of one producer's batches of (kind, offset)."""
    rows = np.zeros((len(batches), BATCH_COLUMNS), dtype=np.int64)
    rows[:, PRODUCER_ID] = PRODUCER
    rows[:, KIND] = [kind for kind, _ in batches]
    rows[:, FIRST_OFFSET] = rows[:, LAST_OFFSET] = [offset for _, offset in batches]
    summarizer = Summarizer()
    summarizer.add(rows)
    steps = summarizer.summary().steps
    return [(int(step[STEP_KIND]), int(step[STEP_OFFSET])) for step in steps]


def test_a_transaction_begun_above_all_others_and_committed_leaves_no_step() -> None:
    transactions = [(TRANSACTIONAL_DATA, 1), (COMMIT, 2), (TRANSACTIONAL_DATA, 3), (COMMIT, 4)]

    assert _steps((DATA, 0), *transactions) == [(CHECK, 0)]


@pytest.mark.parametrize("again", [3, 9])
def test_from_the_first_one_that_does_not_rise_each_begin_and_marker_is_a_step(again: int) -> None:
    before = [(DATA, 0), (TRANSACTIONAL_DATA, 4), (COMMIT, 5), (TRANSACTIONAL_DATA, 9), (COMMIT, 8)]
    later = [(TRANSACTIONAL_DATA, 20), (COMMIT, 21)]

    found = _steps(*before, (TRANSACTIONAL_DATA, again), (COMMIT, 10), *later)

    assert found == [(CHECK, 0), (BEGIN, again), (COMMIT, 10), (BEGIN, 20), (COMMIT, 21)]
