"""Where a search begins by index files: never behind its record, or the files are refused."""

import random

import numpy as np
import pytest

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.broker_rules.checked_lookup import CheckedLookup
from kafka_segments.kafka.index.segment.index_ends import IndexFiles
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.verbs.find.search.first_record import FirstRecordFinder
from support.logs.drawn_logs import BASE, Counted, Files, drawn_log, index_files, recovered
from support.logs.log_reading import reader_of
from support.model.plain_decoder import PlainRecord, plain_records

MANY = 200  # batches


def lookup(log: bytes, files: Files) -> CheckedLookup:
    indexes = (None if data is None else Counted(data).file() for data in files.values())
    return CheckedLookup(Counted(log).file(), IndexFiles(*indexes), base_offset=BASE)


def found_from(start: int, log: bytes, least_timestamp_ms: int, least_offset: int) -> int | None:
    """Return the offset of the record that a search from a byte on finds."""
    found = FirstRecordFinder().find(
        reader_of(log),
        start=start,
        end=len(log),
        least_timestamp_ms=least_timestamp_ms,
        least_offset=least_offset,
    )
    return None if found is None else found.offset


def first_of(records: list[PlainRecord], least_timestamp_ms: int, least_offset: int) -> int | None:
    """Return the offset of the record that a loop over all records finds."""
    return next(
        (
            one.offset
            for one in records
            if one.timestamp >= least_timestamp_ms and one.offset >= least_offset
        ),
        None,
    )


def asked(records: list[PlainRecord], draw: random.Random) -> list[tuple[int, int]]:
    """Draw timestamps and offsets around those of records."""
    times = [one.timestamp + step for one in records for step in (-1, 0, 1)]
    offsets = [BASE, *(one.offset + step for one in records for step in (0, 1))]
    return [
        *((draw.choice(times), BASE) for _ in range(30)),
        *((draw.choice(times), draw.choice(offsets)) for _ in range(10)),
        *((-(2**63), draw.choice(offsets)) for _ in range(10)),
    ]


@pytest.mark.drawn
def test_a_search_from_there_finds_what_a_loop_over_all_records_finds(seed: int) -> None:
    draw = random.Random(seed)
    skipped = 0
    for _ in range(20):
        log = drawn_log(draw, MANY)
        records = list(plain_records(log))
        searched = lookup(log, index_files(recovered(log)))
        for time, offset in asked(records, draw):
            start = searched.start(least_timestamp_ms=time, least_offset=offset)
            assert found_from(start, log, time, offset) == first_of(records, time, offset)
            skipped += start
    assert skipped > 1_000_000


def test_zeros_that_a_broker_has_preallocated_are_no_entries() -> None:
    log = drawn_log(random.Random(3), 3_000)
    files = index_files(recovered(log))
    longer = {name: data and data + bytes(24_000) for name, data in files.items()}
    asked = [one.timestamp for one in plain_records(log)]

    found, expected = lookup(log, longer), lookup(log, files)

    assert [found.start(least_timestamp_ms=time, least_offset=BASE) for time in asked] == [
        expected.start(least_timestamp_ms=time, least_offset=BASE) for time in asked
    ]


def test_index_files_larger_than_any_broker_writes_are_refused() -> None:
    log = drawn_log(random.Random(3), 40)
    entries = np.array([(BASE + n, n) for n in range(1, 2_100_000)], dtype=np.int64)
    files = {
        **index_files(recovered(log)),
        ".index": encode_offset_index(entries, base_offset=BASE),
    }

    with pytest.raises(CorruptIndexError, match=r"the \.index has 2099999 entries"):
        lookup(log, files)


@pytest.mark.slow
@pytest.mark.drawn
def test_a_changed_bit_is_noticed_or_does_no_harm(seed: int) -> None:
    draw = random.Random(seed)
    refused = 0
    for _ in range(150):
        log = drawn_log(draw, MANY)
        records, files = list(plain_records(log)), index_files(recovered(log))
        name = draw.choice([".index", ".timeindex"])
        data = bytearray(files[name] or b"")
        bit = draw.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        for time, offset in asked(records, draw):
            try:
                start = lookup(log, {**files, name: bytes(data)}).start(
                    least_timestamp_ms=time, least_offset=offset
                )
            except CorruptIndexError:
                refused += 1
                continue
            assert found_from(start, log, time, offset) == first_of(records, time, offset), (
                name,
                bit,
            )
    assert refused > 500
