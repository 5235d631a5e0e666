"""How far brokers of each release read in a batch where they look up a time."""

import gzip

import pytest

from kafka_segments.kafka.broker_rules.record_lookups import RecordLookup, record_lookup
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.verbs.find.search.first_record import FirstRecordFinder
from support.logs.log_reading import reader_of
from support.logs.strategies import v1_message, v2_batch, v2_record

GZIP = 1
VALUE = b"v" * 20
RECORDS = b"".join(
    v2_record(timestamp_delta=delta, offset_delta=delta, key=None, value=VALUE)
    for delta in range(3)
)
WHOLE = gzip.compress(RECORDS)
WRONG_CRC = WHOLE[:-8] + bytes(4) + WHOLE[-4:]
RECORD_BYTES = len(RECORDS) // 3 - 1  # as a record's own length counts


def _batch(payload: bytes, codec: int = GZIP) -> bytes:
    records = [(1000 + at, None, VALUE) for at in range(3)]
    return v2_batch(30, records, codec=codec, payload=payload, base_timestamp=1000)


def _found(log: bytes, lookup: RecordLookup, timestamp_ms: int) -> int | None:
    found = FirstRecordFinder(lookup).find(
        reader_of(log), start=0, end=len(log), least_timestamp_ms=timestamp_ms, least_offset=0
    )
    return found and found.offset


@pytest.mark.parametrize(
    ("release", "streams"),
    [
        ((3, 9, 2), False), ((4, 1, 2), False), ((4, 2), False), ((4, 2, 1), False),
        ((4, 2, 2), True), ((4, 3), False), ((4, 3, 1), False), ((4, 4), True), ((4, 4, 1), True),
    ],
)  # fmt: skip
def test_a_release_reads_a_compressed_batch_as_a_whole_or_up_to_the_record(
    release: tuple[int, ...], streams: bool
) -> None:
    lookup = record_lookup(release, most_record_bytes=7)

    assert lookup == RecordLookup(streams, 7 if streams else None)


@pytest.mark.parametrize(
    ("log", "most"),
    [
        (("c", 1, "own"), 10), (("c", 1, "t"), 20), (("c", 2, "t"), 30), (("c", 2, "own"), 10),
        (("other", 1, "own"), None),
    ],
)  # fmt: skip
def test_the_limit_of_the_topic_counts_then_of_its_broker_then_of_the_cluster(
    log: tuple[str, int, str], most: int | None
) -> None:
    limits = {("c", "topic", "own"): 10, ("c", "broker", "1"): 20, ("c", "broker", ""): 30}

    assert RecordLookup(True, limits=limits).of_log(*log).most_record_bytes == most
    assert RecordLookup(True, 7).of_log(*log) == RecordLookup(True, 7)


def test_damage_behind_the_record_ends_a_lookup_that_reads_all_and_no_other() -> None:
    damaged = _batch(gzip.compress(RECORDS[: -len(RECORDS) // 3]))  # the last record is missing

    assert _found(_batch(WHOLE), RecordLookup(), 1001) == 31
    assert _found(damaged, RecordLookup(streams=True), 1001) == 31
    with pytest.raises(DecompressionError):
        _found(damaged, RecordLookup(), 1001)
    with pytest.raises(DecompressionError):
        _found(damaged, RecordLookup(streams=True), 1002)


def test_with_the_last_record_what_lies_behind_it_is_read_too() -> None:
    more = _batch(gzip.compress(RECORDS + b"\x00"))

    assert _found(more, RecordLookup(streams=True), 1001) == 31
    with pytest.raises(DecompressionError):
        _found(more, RecordLookup(streams=True), 1002)


def test_a_batch_that_is_not_compressed_is_read_up_to_the_record_in_every_release() -> None:
    damaged = _batch(RECORDS[:-4], codec=0)

    assert _found(damaged, RecordLookup(), 1001) == 31
    with pytest.raises(DecompressionError):
        _found(damaged, RecordLookup(), 1002)


def test_a_record_larger_than_the_setting_ends_a_lookup_in_a_compressed_batch() -> None:
    limit = RecordLookup(streams=True, most_record_bytes=RECORD_BYTES)
    less = RecordLookup(streams=True, most_record_bytes=RECORD_BYTES - 1)
    wrapper = v1_message(5, 9, None, gzip.compress(v1_message(0, 9, None, VALUE)), attributes=GZIP)
    inner_bytes = len(v1_message(0, 9, None, VALUE)) - 12

    assert _found(_batch(WHOLE), limit, 1002) == 32
    assert _found(_batch(RECORDS, codec=0), less, 1002) == 32
    assert _found(wrapper, RecordLookup(True, inner_bytes), 9) == 5
    for log, lookup in ((_batch(WHOLE), less), (wrapper, RecordLookup(True, inner_bytes - 1))):
        with pytest.raises(DecompressionError, match=r"exceeds max\.decompressed\.message\.bytes"):
            _found(log, lookup, 9)


def test_a_wrong_checksum_behind_all_records_is_not_met() -> None:
    assert _found(_batch(WRONG_CRC), RecordLookup(streams=True), 1000) == 30
    with pytest.raises(DecompressionError):
        _found(_batch(WRONG_CRC), RecordLookup(), 1000)
