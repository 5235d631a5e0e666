"""The sparse index of every N-th message: its entries, and the two-phase seek."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import OffsetGoesBackError, OffsetNotFoundError, OffsetOverflowError
from kafka_segments.kafka.broker_rules.lookups import OffsetsFrom, Seek, seek
from kafka_segments.kafka.index.formats.every_n_index import (
    EveryNIndexBuilder,
    EveryNRule,
    encode_every_n_index,
)
from kafka_segments.kafka.index.segment.offset_index import decode_offset_index, lookup_offset
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from support.kafka.kafka_referee import Referee
from support.logs.log_reading import record_times
from support.logs.strategies import MAX_INT32, DatedLog, dated_logs, example_e1
from support.model.plain_decoder import plain_records

rules = st.sampled_from(EveryNRule)


def built(records: list[tuple[int, int]], n: int, rule: EveryNRule) -> Entries:
    builder = EveryNIndexBuilder(n, rule)
    rows = np.array(records, dtype=np.int64).reshape(-1, 2)
    builder.add(rows[:3, 0], rows[:3, 1])
    builder.add(rows[3:, 0], rows[3:, 1])
    return builder.entries()


def of_log(log: bytes, n: int, rule: EveryNRule) -> Entries:
    builder = EveryNIndexBuilder(n, rule)
    for part in record_times(log):
        builder.add(part.offset, part.position)
    return builder.entries()


def offsets_of(log: bytes) -> OffsetsFrom:
    def offsets_from(position: int) -> Iterator[int]:
        return (r.offset for r in plain_records(log) if r.batch_position >= position)

    return offsets_from


def never(position: int) -> Iterator[int]:
    raise AssertionError(f"the log was read from {position} on")


class Untouched:
    """An index that must not be consulted."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the index was consulted: {name}")

    def __getitem__(self, key: object) -> object:
        raise AssertionError("the index was consulted")


def pairs(entries: Entries) -> list[tuple[int, int]]:
    return [tuple(row) for row in entries.tolist()]


def test_the_articles_example() -> None:
    records = [(offset, offset) for offset in range(8)]

    entries = built(records, 4, EveryNRule.BY_OFFSET)
    found = seek(
        entries, 6, base_offset=0, tail=8, offsets_from=lambda start: iter(range(start, 8))
    )

    assert pairs(entries) == [(0, 0), (4, 4)]
    assert found == Seek(start_offset=4, start_position=4, scanned=3)


def test_by_offset_takes_multiples_by_ordinal_every_nth_record() -> None:
    records = [(1001, 0), (1002, 0), (1004, 80), (1007, 80), (1008, 160), (1009, 160)]

    assert pairs(built(records, 4, EveryNRule.BY_OFFSET)) == [(1004, 80), (1008, 160)]
    assert pairs(built(records, 4, EveryNRule.BY_ORDINAL)) == [(1001, 0), (1008, 160)]


def test_the_file_is_laid_out_as_an_offset_index() -> None:
    entries = built([(1000, 0), (1004, 80)], 4, EveryNRule.BY_OFFSET)

    data = encode_every_n_index(entries, base_offset=1000)

    assert data.hex(" ", 4) == "00000000 00000000 00000004 00000050"
    assert (decode_offset_index(data, base_offset=1000) == entries).all()


@given(dated_logs(), st.integers(1, 5))
def test_by_ordinal_has_an_entry_every_n_records(drawn: DatedLog, n: int) -> None:
    plain = [(r.offset, r.batch_position) for r in plain_records(drawn.log)]

    entries = of_log(drawn.log, n, EveryNRule.BY_ORDINAL)

    assert pairs(entries) == plain[::n]
    assert len(entries) == math.ceil(len(plain) / n)


@given(dated_logs(), st.integers(1, 5))
def test_by_offset_has_an_entry_for_each_multiple(drawn: DatedLog, n: int) -> None:
    plain = [(r.offset, r.batch_position) for r in plain_records(drawn.log)]

    entries = of_log(drawn.log, n, EveryNRule.BY_OFFSET)

    assert pairs(entries) == [row for row in plain if row[0] % n == 0]


@given(dated_logs(), st.integers(1, 5), rules)
def test_a_seek_finds_every_record_and_nothing_else(
    drawn: DatedLog, n: int, rule: EveryNRule
) -> None:
    offsets = [offset for offset, _ in drawn.records]
    tail = offsets[-1] + 1 if offsets else drawn.base_offset
    entries = of_log(drawn.log, n, rule)
    is_bounded = rule is EveryNRule.BY_ORDINAL or offsets == list(range(drawn.base_offset, tail))

    for target in range(drawn.base_offset - 1, tail + 2):
        if target not in offsets:
            with pytest.raises(OffsetNotFoundError):
                sought(drawn, entries, target, tail)
            continue
        found = sought(drawn, entries, target, tail)
        assert found.start_offset <= target
        assert found.scanned <= n or not is_bounded


def sought(drawn: DatedLog, entries: Entries, target: int, tail: int) -> Seek:
    return seek(
        entries,
        target,
        base_offset=drawn.base_offset,
        tail=tail,
        offsets_from=offsets_of(drawn.log),
    )


@pytest.mark.parametrize("target", [8, 9, -1, -(2**63)])
def test_past_the_tail_or_negative_is_not_found_before_the_index_is_consulted(target: int) -> None:
    with pytest.raises(OffsetNotFoundError) as raised:
        seek(Untouched(), target, base_offset=0, tail=8, offsets_from=never)  # type: ignore[arg-type]

    assert str(raised.value) == f"offset not found: {target} is outside of 0 to 7"


@pytest.mark.parametrize("target", [-1, 0, 1])
def test_an_empty_log_has_no_offset(target: int) -> None:
    with pytest.raises(OffsetNotFoundError):
        seek(Untouched(), target, base_offset=0, tail=0, offsets_from=never)  # type: ignore[arg-type]


@pytest.mark.parametrize(("target", "scanned"), [(0, 1), (3, 4), (4, 1), (7, 4)])
def test_the_first_and_the_last_offset_are_found(target: int, scanned: int) -> None:
    entries = built([(offset, offset) for offset in range(8)], 4, EveryNRule.BY_OFFSET)

    found = seek(
        entries, target, base_offset=0, tail=8, offsets_from=lambda start: iter(range(start, 8))
    )

    assert found.scanned == scanned


def test_entries_must_rise() -> None:
    with pytest.raises(OffsetGoesBackError) as raised:
        built([(8, 0), (4, 80)], 4, EveryNRule.BY_OFFSET)

    assert str(raised.value) == "offset 4 after offset 8: entries must rise"


def test_an_offset_out_of_reach_is_an_error() -> None:
    far = np.array([(MAX_INT32 + 1, 0)], dtype=np.int64)

    with pytest.raises(OffsetOverflowError):
        encode_every_n_index(far, base_offset=0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_kafka_reads_the_file_as_an_offset_index(referee: Referee, tmp_path: Path, n: int) -> None:
    base_offset, log = example_e1()
    entries = of_log(log, n, EveryNRule.BY_OFFSET)
    data = encode_every_n_index(entries, base_offset=base_offset)
    (tmp_path / f"{base_offset:020d}.index").write_bytes(data)
    (tmp_path / f"{base_offset:020d}.timeindex").write_bytes(b"")
    targets = range(base_offset, base_offset + 12)

    found = referee.lookup(tmp_path, base_offset, offsets=targets)

    assert found["offset_index_sanity"] is None
    expected = [lookup_offset(entries, target, base_offset=base_offset) for target in targets]
    assert [tuple(entry) for entry in found["offsets"]] == expected
    for record in plain_records(log):
        assert expected[record.offset - base_offset].position <= record.batch_position
