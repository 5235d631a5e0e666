"""Summaries of segments, folded, against a plain reading of all batches one after another."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kafka_segments.errors import InvalidTransactionError
from kafka_segments.kafka.index.log.producer_state import NewestBatch, ProducerEntry, ProducerState
from kafka_segments.kafka.index.segment import producer_batches
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.summarizer import Summarizer
from kafka_segments.kafka.index.segment.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
)

Batch = tuple[int, int, int, int, int, int, int, int, int]
DATA, OPEN, COMMIT, ABORT, EMPTY = (
    producer_batches.DATA,
    producer_batches.TRANSACTIONAL_DATA,
    producer_batches.COMMIT,
    producer_batches.ABORT,
    producer_batches.EMPTY_CONTROL,
)


class RefusedError(Exception):
    """Where a plain reading says that the broker refuses the log."""


@dataclass
class PlainReader:
    """Takes one batch after another as the semantics page says it (5.2), nothing left out."""

    producers: dict[int, dict] = field(default_factory=dict)
    ongoing: dict[int, int] = field(default_factory=dict)

    def read(self, segment: list[Batch]) -> list[AbortedTransaction]:
        aborted: list[AbortedTransaction] = []
        for position, producer_id, epoch, first, last, sequence, timestamp, kind, coord in segment:
            new = {"epoch": -1, "batches": [], "timestamp": -1, "coordinator": -1, "txn": None}
            producer = self.producers.setdefault(producer_id, new)
            if kind == EMPTY:
                continue
            if epoch != producer["epoch"]:
                producer["batches"], producer["epoch"] = [], epoch
            producer["timestamp"] = timestamp
            if kind in (DATA, OPEN):
                producer["batches"] = [*producer["batches"], (sequence, last, last - first)][-5:]
                if producer["txn"] is not None and kind == DATA:
                    raise RefusedError(position)
                if producer["txn"] is None and kind == OPEN:
                    producer["txn"] = first
                    self.ongoing[first] = producer_id
                continue
            producer["coordinator"] = coord
            began, producer["txn"] = producer["txn"], None
            if began is None:
                continue
            others = [offset for offset, other in self.ongoing.items() if other != producer_id]
            if kind == ABORT:
                if aborted and first <= aborted[-1].last_offset:
                    raise RefusedError(position)
                stable = min(others) if others else first + 1
                aborted.append(AbortedTransaction(producer_id, began, first, stable))
            if began not in self.ongoing:
                raise RefusedError(position)
            del self.ongoing[began]
        return aborted

    def state(self) -> ProducerState:
        return ProducerState(
            {
                producer_id: ProducerEntry(
                    producer["epoch"],
                    NewestBatch(*producer["batches"][-1]) if producer["batches"] else NewestBatch(),
                    producer["timestamp"],
                    producer["coordinator"],
                )
                for producer_id, producer in self.producers.items()
            },
            {
                producer_id: producer["txn"]
                for producer_id, producer in self.producers.items()
                if producer["txn"] is not None
            },
            self.ongoing,
        )


@st.composite
def logs(draw: st.DrawFn, *, is_sound: bool) -> list[Batch]:
    """Batches of a few producers; in sound logs offsets go up and no transaction is broken."""
    producers = draw(st.integers(1, 6))
    offset, batches = draw(st.sampled_from([0, 2**40])), []
    opened: set[int] = set()
    kinds = st.sampled_from([DATA, OPEN, OPEN, OPEN, COMMIT, ABORT, EMPTY])
    for position in range(draw(st.integers(0, 60))):
        producer_id = draw(st.integers(0, producers - 1)) * 2**31
        kind = draw(kinds)
        if is_sound and kind == DATA and producer_id in opened:
            kind = OPEN
        if kind == OPEN:
            opened.add(producer_id)
        if kind in (COMMIT, ABORT):
            opened.discard(producer_id)
        if not is_sound and draw(st.integers(0, 9)) == 0:
            offset -= draw(st.integers(1, 12))
        last = offset + (0 if kind in (COMMIT, ABORT) else draw(st.integers(0, 3)))
        epoch, sequence = draw(st.integers(0, 2)), draw(st.integers(-1, 9))
        coordinator = draw(st.integers(0, 3)) if kind in (COMMIT, ABORT) else -1
        batches.append(
            (position, producer_id, epoch, offset, last, sequence, position, kind, coordinator)
        )
        offset = last + 1 + draw(st.integers(0, 1))
    return batches


def summarized(segment: list[Batch], buffers: list[int]) -> ProducerSummary:
    summarizer = Summarizer()
    rows = np.array(segment, dtype=np.int64).reshape(-1, producer_batches.BATCH_COLUMNS)
    for part in np.split(rows, sorted(cut % (len(rows) + 1) for cut in buffers)):
        summarizer.add(part)
    return summarizer.summary()


places = st.lists(st.integers(0, 60), max_size=8)


@pytest.mark.slow
@settings(max_examples=300)
@given(log=logs(is_sound=True), cuts=places, buffers=places)
def test_folded_summaries_equal_a_plain_reading(
    log: list[Batch], cuts: list[int], buffers: list[int]
) -> None:
    _hold_against_a_plain_reading(log, cuts, buffers)


@settings(max_examples=100)
@given(log=logs(is_sound=False), cuts=places, buffers=places)
def test_the_fold_refuses_what_a_plain_reading_refuses(
    log: list[Batch], cuts: list[int], buffers: list[int]
) -> None:
    _hold_against_a_plain_reading(log, cuts, buffers)


def _hold_against_a_plain_reading(log: list[Batch], cuts: list[int], buffers: list[int]) -> None:
    ends = sorted({min(cut, len(log)) for cut in cuts} | {len(log)})
    plain, folded = PlainReader(), ProducerState()
    for start, end in zip([0, *ends], ends, strict=False):
        summary = summarized(log[start:end], buffers)
        before = folded.copy()
        try:
            aborted = plain.read(log[start:end])
        except RefusedError as refused:
            event("refused")
            try:
                folded.apply(summary)
            except InvalidTransactionError as error:
                assert error.position == refused.args[0]
                assert folded == before
                return
            raise AssertionError("the fold refuses nothing") from refused
        event(f"{len(aborted)} aborted")

        assert folded.apply(summary) == aborted
        assert folded == plain.state()
        assert list(folded.entries) == list(plain.producers)


def test_a_summary_keeps_nothing_of_transactions_that_are_committed() -> None:
    log = [(0, 5, 0, 0, 0, 0, 1, COMMIT, 1)]
    for number in range(1, 10_000):
        log.append((number, 5, 0, 2 * number, 2 * number, 0, 1, OPEN, -1))
        log.append((number, 5, 0, 2 * number + 1, 2 * number + 1, -1, 1, COMMIT, 1))

    summary = summarized(log, [])

    assert (len(summary.producers), len(summary.steps)) == (1, 1)


def test_thousands_of_producers_are_kept_apart() -> None:
    producer_ids = [number * 2**20 for number in range(20_000)]
    log = [(n, p, 0, n, n, 0, 1, OPEN, -1) for n, p in enumerate(producer_ids)]

    summary = summarized(log, [500, 7000, 7001])
    state = ProducerState()
    state.apply(summary)

    assert list(state.entries) == producer_ids
    assert list(state.open.values()) == list(range(20_000))


def test_the_offset_after_the_last_one_there_is_wraps_as_in_java() -> None:
    most = 2**63 - 1
    log = [(0, 5, 0, most - 1, most - 1, 0, 1, OPEN, -1), (1, 5, 0, most, most, -1, 1, ABORT, 1)]

    aborted = ProducerState().apply(summarized(log, []))

    assert aborted == [AbortedTransaction(5, most - 1, most, -(2**63))]
    assert decode_transaction_index(encode_transaction_index(aborted) or b"") == aborted
