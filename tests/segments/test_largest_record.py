"""The largest record of a segment, against a plain decoder."""

import random
import struct

import pytest

from kafka_segments.files.segments.largest_record import LargestRecordReader
from kafka_segments.kafka.wire import header_layout as layout
from support.logs.log_reading import reader_of
from support.logs.sound_logs import STYLES, sound_log
from support.logs.strategies import v2_batch, varint
from support.model.plain_decoder import PlainRecord, plain_records

TIME = 1_700_000_000_000


def _largest(log: bytes) -> int | None:
    return LargestRecordReader().read(reader_of(log), size_bytes=len(log))


def _plain_size(log: bytes, record: PlainRecord) -> int:
    """Give the bytes of a record by its fields; 0: of a control batch."""
    delta = 0
    if log[record.batch_position + layout.MAGIC] == layout.MAGIC_V2:
        (base,) = struct.unpack_from(">q", log, record.batch_position)
        if log[record.batch_position + layout.ATTRIBUTES] & layout.CONTROL:
            return 0
        delta = record.offset - base
    headers = [part for name, value in record.headers for part in (name.encode(), value)]
    fields = [record.key, record.value, *headers]
    lengths = sum(len(varint(-1 if field is None else len(field))) for field in fields)
    count = len(varint(len(record.headers)))
    return 1 + len(varint(delta)) + count + lengths + sum(len(field or b"") for field in fields)


@pytest.mark.parametrize("style", STYLES)
def test_of_drawn_logs_it_is_that_of_a_plain_decoder(style: str) -> None:
    rng = random.Random(f"largest {style}")
    seen: set[int] = set()
    for _ in range(12):
        for segment in sound_log(rng, style):
            sizes = [_plain_size(segment.log, record) for record in plain_records(segment.log)]
            seen.add(max(sizes, default=0))
            assert _largest(segment.log) == max(sizes, default=0)
    assert len(seen) > 1


def test_a_segment_without_records_has_none() -> None:
    assert _largest(b"") == 0


def test_where_a_record_cannot_be_decoded_it_is_not_known() -> None:
    sound = v2_batch(0, [(TIME, b"k", bytes(100))])
    spoilt = v2_batch(1, [(TIME, b"k", b"v")], payload=b"\x7f")

    assert _largest(sound) == 1 + 1 + 2 + 102 + 1
    assert _largest(sound + spoilt) is None
    assert _largest(sound + sound[:70]) is None
