"""Numbers at the ends of what Java's int holds."""

import pytest

from kafka_segments.kafka.messages.values import (
    read_compact_length,
    read_int8,
    read_unsigned_varint,
)

LEAST, GREATEST = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\xff\xff\xff\xff\x07", GREATEST),
        (b"\x80\x80\x80\x80\x08", LEAST),
        (b"\xff\xff\xff\xff\x0f", -1),
    ],
)
def test_a_varint_is_a_java_int_and_a_compact_length_one_less(data: bytes, number: int) -> None:
    assert read_unsigned_varint(data, 0) == (number, len(data))
    assert read_compact_length(data, 0) == (
        GREATEST if number == LEAST else number - 1,
        len(data),
    )


def test_an_int8_has_a_sign() -> None:
    found = [read_int8(bytes([byte]), 0) for byte in (0, 1, 127, 128, 255)]

    assert found == [(0, 1), (1, 1), (127, 1), (-128, 1), (-1, 1)]
