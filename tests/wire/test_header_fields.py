"""The checksum in a header, and from where it covers a batch, of each magic."""

import struct

import pytest

from kafka_segments.kafka.wire import batches as wire
from support.logs.log_reading import batches_of
from support.logs.strategies import v0_message, v1_message, v2_batch


@pytest.mark.parametrize(
    ("batch", "place"),
    [
        (v0_message(5, b"k", b"v"), 12),
        (v1_message(5, 10, b"k", b"v"), 12),
        (v2_batch(5, [(10, b"k", b"v")]), 17),
    ],
)
def test_the_checksum_of_a_header_is_the_stored_one(batch: bytes, place: int) -> None:
    before = v2_batch(3, [(9, None, b"before it")])

    found = batches_of(before + batch)

    assert found[wire.BATCH_CRC].tolist() == [
        struct.unpack_from(">I", before, 17)[0],
        struct.unpack_from(">I", batch, place)[0],
    ]
