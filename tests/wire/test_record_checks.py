"""The check of a batch's records at the edges of its rules (DefaultRecord.readFrom)."""

import numpy as np
import pytest

from kafka_segments.kafka.wire.failures import FAILURE_SLOTS, OK, describe
from kafka_segments.kafka.wire.records import check_records
from support.logs.strategies import v2_record, varint

PLAIN = v2_record(timestamp_delta=0, offset_delta=0, key=b"k", value=None)
WITH_HEADERS = v2_record(
    timestamp_delta=-1, offset_delta=300, key=None, value=b"v", headers=[("h", b"x"), ("", None)]
)
START = 3  # where the records begin in the buffer
ENDLESS = b"\x80" * 10


def _check(records: bytes, count: int) -> str:
    """Say what is wrong with records, empty where nothing is."""
    data = np.frombuffer(b"\xff" * START + records + b"\x00" * 20, dtype=np.uint8)
    failure = np.zeros(FAILURE_SLOTS, dtype=np.int64)
    if check_records(data, START, START + len(records), count, failure) == OK:
        return ""
    return describe(failure, section="records", start=START)


def _record(body: bytes) -> bytes:
    return varint(len(body)) + body


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """What is compiled at the first batch that is checked."""
    _check(PLAIN, 1)


@pytest.mark.parametrize(
    ("records", "count"), [(b"", 0), (PLAIN, 1), (WITH_HEADERS, 1), (WITH_HEADERS + PLAIN, 2)]
)
def test_records_that_fill_their_bytes_are_sound(records: bytes, count: int) -> None:
    assert _check(records, count) == ""


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        (varint(1) + b"\x00\x00", ""),
        (varint(2) + b"\x00\x00", "header count is 2, the record has room for 1 (at byte 6"),
        (varint(2) + b"\x00\x00\x00", "header count is 2, the record has room for 1 (at byte 6"),
        (varint(1) + b"\x02a\x02x", ""),
        (varint(1) + b"\x02a\x04x", "a header says 2 bytes, 1 are left in its record (at byte 9"),
        (varint(1) + b"\x02a" + ENDLESS, "a varint has no end after 5 bytes (at byte 9"),
        (varint(0) + b"\x00", "a record says 7 bytes, its fields take 6 (at byte 0"),
        (varint(1) + b"\x00\x00\x00", "a record says 9 bytes, its fields take 8 (at byte 0"),
        (ENDLESS, "a varint has no end after 5 bytes (at byte 6"),
    ],
)
def test_headers_have_room_for_what_they_say(fields: bytes, wrong: str) -> None:
    found = _check(_record(b"\x00\x00\x00\x01\x01" + fields), 1)

    assert found == (wrong and f"{wrong} of the records)")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b"\x00" + ENDLESS, "a varint has no end after 10 bytes (at byte 2"),
        (b"\x00\x00" + ENDLESS, "a varint has no end after 5 bytes (at byte 3"),
        (b"\x00\x00\x00" + ENDLESS, "a varint has no end after 5 bytes (at byte 4"),
        (b"\x00\x00\x00\x01" + ENDLESS, "a varint has no end after 5 bytes (at byte 5"),
        (b"\x00\x00\x00\x04kk\x01\x00", ""),
        (b"\x00\x00\x00\x0akk\x01\x00", "a key says 5 bytes, 4 are left in its record (at byte 4"),
        (b"\x00\x00\x00\x01\x04vv\x00", ""),
        (b"\x00\x00\x00\x01\x02v", "a varint reaches past the end (at byte 7"),
        (b"\x00\x00\x00\x01\x08vvv", "a value says 4 bytes, 3 are left in its record (at byte 5"),
    ],
)
def test_keys_and_values_have_room_for_what_they_say(body: bytes, wrong: str) -> None:
    found = _check(_record(body), 1)

    assert found == (wrong and f"{wrong} of the records)")
