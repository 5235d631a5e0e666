"""Batches of producers in runs: what the walk tells of them, against a row for each batch."""

import random
import struct
from unittest import mock

import numpy as np
import pytest

from kafka_segments.kafka.index.segment import segment_walker
from kafka_segments.kafka.index.segment.producer_batches import (
    ABORT,
    BATCH_COLUMNS,
    COMMIT,
    DATA,
    TRANSACTIONAL_DATA,
)
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.summarizer import Summarizer
from support.logs.log_reading import recovered
from support.logs.producer_logs import FIRST_MS, producer_log
from support.logs.strategies import CONTROL, TRANSACTIONAL, v2_batch

HEADER = struct.Struct(">qiibIhiqqqhii")


def _row(log: bytes, position: int) -> tuple[list[int], int]:
    """Read the batch at a position plainly: its row of ``producer_batches``, and its size."""
    fields = HEADER.unpack_from(log, position)
    first, length, _, _, _, attributes, delta, _, timestamp, producer, epoch, sequence, _ = fields
    kind, coordinator = TRANSACTIONAL_DATA if attributes & TRANSACTIONAL else DATA, -1
    end = position + 12 + length
    if attributes & CONTROL:
        (is_commit,) = struct.unpack_from(">h", log, end - 10)
        (coordinator,) = struct.unpack_from(">i", log, end - 5)
        kind = COMMIT if is_commit else ABORT
    last = sequence if sequence < 0 else (sequence + delta) % 2**31
    row = [position, producer, epoch, first, first + delta, last, timestamp, kind, coordinator]
    return row, 12 + length


def plainly(log: bytes) -> ProducerSummary:
    """Summarise the producers of a log from a row for each batch, in the order of the batches."""
    rows, position = [], 0
    while position < len(log):
        row, size_bytes = _row(log, position)
        position += size_bytes
        if row[1] >= 0:
            rows.append(row)
    summarizer = Summarizer()
    summarizer.add(np.array(rows, dtype=np.int64).reshape(-1, BATCH_COLUMNS))
    return summarizer.summary()


@pytest.mark.parametrize("seed", range(120))
def test_producers_in_runs_are_those_of_a_row_for_each_batch(seed: int) -> None:
    draw = random.Random(seed)
    log = producer_log(draw)

    with mock.patch.object(segment_walker, "_BUFFER_BYTES", draw.choice([700, 5_000, 2**20])):
        found = recovered(log, base_offset=0)

    assert found.damage is None
    expected = plainly(log)
    np.testing.assert_array_equal(found.producers.producers, expected.producers)
    np.testing.assert_array_equal(found.producers.steps, expected.steps)


def test_many_producers_in_turn_get_two_rows_each() -> None:
    rows = []
    log = b"".join(
        v2_batch(number, [(FIRST_MS, None, b"x")], producer_id=number % 100, producer_epoch=0)
        for number in range(10_000)
    )
    take = Summarizer.add

    def counted(summarizer: Summarizer, batches: np.ndarray) -> None:
        rows.append(len(batches))
        take(summarizer, batches)

    with mock.patch.object(Summarizer, "add", counted):
        recovered(log, base_offset=0)

    assert sum(rows) == 201, "and the batch that the run follows"
