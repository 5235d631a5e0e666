"""Opinions on entries at the edges of the rules, from a log in memory."""

from collections.abc import Iterator

import numpy as np
import pytest

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    IndexKind,
    IndexVerdict,
    LogFacts,
)
from kafka_segments.kafka.broker_rules.index_files.log_probe import LogProbe
from kafka_segments.kafka.broker_rules.index_files.time_entries import judge_time_entries
from kafka_segments.kafka.broker_rules.index_files.transactions import (
    hold_against_log,
    judge_txn_index,
)
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.transaction_index import (
    AbortedTransaction,
    encode_transaction_index,
)
from kafka_segments.kafka.wire.batches import Batches
from support.logs.log_reading import batches_of, recovered
from support.logs.strategies import gzip_wrapper, transaction_marker, v1_message, v2_batch


def _facts(log: bytes) -> LogFacts:
    found = recovered(log, base_offset=0)
    none = np.empty((0, 2), dtype=np.int64)
    return LogFacts(
        base_offset=0,
        next_offset=found.next_offset,
        valid_bytes=found.valid_bytes,
        max_timestamp=found.max_timestamp,
        index_interval_bytes=4096,
        offset_entries=none if found.offset_entries is None else found.offset_entries,
        time_entries=none if found.time_entries is None else found.time_entries,
    )


def _entries(*rows: tuple[int, int]) -> Entries:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_timestamp_may_be_that_of_1970(first: int) -> None:
    log = b"".join(v1_message(at, first + at, None, b"v") for at in range(3))

    opinion = judge_time_entries(
        _entries((first, 0), (first + 2, 2)), _facts(log), lambda: iter([batches_of(log)])
    )

    assert opinion.verdict == IndexVerdict.VALID


def test_a_timestamp_below_1970_is_out_of_order() -> None:
    log = v1_message(0, 5, None, b"v")

    opinion = judge_time_entries(_entries((-1, 0)), _facts(log), lambda: iter([batches_of(log)]))

    assert (opinion.verdict, opinion.kind) == (IndexVerdict.CORRUPT, IndexKind.OUT_OF_ORDER)


def test_only_a_compressed_message_holds_the_offsets_before_its_own() -> None:
    plain = v1_message(9, 50, None, b"v")
    inner = [v1_message(at, 50, None, b"v") for at in range(3)]
    held = []
    for message in (plain, gzip_wrapper(inner, offset=9, timestamp=50)):
        probe = LogProbe(np.empty(0, dtype=np.int64), np.array([7, 9]))
        probe.feed(batches_of(v1_message(5, 40, None, b"v") + message))
        held.append(probe.by_offsets.holds(np.array([7, 9])).tolist())

    assert held == [[False, True], [True, True]]


def test_a_transaction_that_began_earlier_than_its_entry_says_is_untrue() -> None:
    data = v2_batch(3, [(10, None, b"v")], producer_id=7, producer_epoch=0)
    log = data + transaction_marker(4, timestamp=11, producer_id=7, commit=False)
    found = encode_transaction_index([AbortedTransaction(7, 4, 4, 4)])

    def walk() -> Iterator[Batches]:
        yield batches_of(log)

    alone = judge_txn_index(found, _facts(log), walk)
    held = hold_against_log(alone, found, [AbortedTransaction(7, 3, 4, 4)])

    assert alone is not None
    assert alone.verdict == IndexVerdict.VALID
    assert held is not None
    assert (held.verdict, held.kind) == (IndexVerdict.CORRUPT, IndexKind.UNTRUE)
    assert held.message == "producer 7, offsets 4 to 4, but it began at 3"
