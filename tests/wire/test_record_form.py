"""Records in the form that a digest is made of, written into outputs of any size."""

import struct

import numpy as np
import pytest

from kafka_segments.kafka.wire import record_form as forms
from kafka_segments.kafka.wire.filling import new_failure
from kafka_segments.kafka.wire.sections import record_sections
from support.logs.log_reading import batches_of
from support.logs.strategies import LOG_APPEND_TIME, v0_message, v1_message, v2_batch

BEYOND = 0xEE  # what lies behind an output
NULL = -1
EMPTY_HEADERS = [("", None)] * 40  # 2 bytes each in a record, 8 in the form
LOG = (
    v2_batch(5, [(10, b"key", b"value"), (11, None, bytes(300))])
    + v2_batch(9, [(12, None, b"")], headers=EMPTY_HEADERS)
    + v1_message(12, 13, b"k", None)
    + v2_batch(20, [(14, None, bytes(300))] * 6)
)


def _formed(
    offset: int, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> bytes:
    fields = [field for name, content in headers for field in (name.encode(), content)]
    written = struct.pack(">q", offset)
    for field in (key, value):
        written += struct.pack(">i", NULL if field is None else len(field)) + (field or b"")
    written += struct.pack(">i", len(headers))
    for field in fields:
        written += struct.pack(">i", NULL if field is None else len(field)) + (field or b"")
    return written


EXPECTED = (
    _formed(5, b"key", b"value", [])
    + _formed(6, None, bytes(300), [])
    + _formed(9, None, b"", EMPTY_HEADERS)
    + _formed(12, b"k", None, [])
    + b"".join(_formed(offset, None, bytes(300), []) for offset in range(20, 26))
)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """What is compiled at the first record that is written."""
    _written(v2_batch(0, [(1, b"k", b"v")]), room=100)


def _written(log: bytes, room: int, *, is_stamped: bool = False) -> tuple[bytes, int]:
    """Return the records of a log in their form, written into outputs of ``room``, and how many."""
    data = np.frombuffer(log, dtype=np.uint8)
    batches = batches_of(log)
    starts, ends = record_sections(batches, 0)
    form = np.zeros(forms.FORM_SLOTS, dtype=np.int64)
    form[forms.LEFT], form[forms.STAMPED] = -1, is_stamped
    written = b""
    while True:
        memory = np.full(room + 4_000, BEYOND, dtype=np.uint8)
        status = forms.form_batches(
            data, starts, ends, batches.shape[1], batches, memory[:room], form, new_failure()
        )
        assert (memory[room:] == BEYOND).all()
        written += memory[: form[forms.USED]].tobytes()
        if status == forms.WRITTEN:
            return written, int(form[forms.RECORDS])
        assert status == forms.NO_ROOM
        room = max(room, int(form[forms.NEEDED])) if not form[forms.USED] else room
        form[forms.USED] = 0


@pytest.mark.parametrize("room", [0, 1, 20, 27, 28, 48, 100, 339, 340, 341, 1500, 10_000])
def test_records_are_the_same_whatever_room_there_is_and_nothing_is_written_beyond_it(
    room: int,
) -> None:
    assert _written(LOG, room) == (EXPECTED, 10)


@pytest.mark.parametrize("room", [0, 35, 36, 400, 10_000])
def test_a_timestamp_stands_behind_the_offset_where_it_is_asked_for(room: int) -> None:
    log = (
        v2_batch(5, [(10, b"k", b"v"), (7, b"k", b"v")])
        + v2_batch(7, [(8, b"k", b"v")], flags=LOG_APPEND_TIME, max_timestamp=99)
        + v1_message(8, 13, b"k", b"v")
        + v0_message(9, b"k", b"v")
    )
    expected = b""
    for offset, timestamp in ((5, 10), (6, 7), (7, 99), (8, 13), (9, -1)):
        record = _formed(offset, b"k", b"v", [])
        expected += record[:8] + struct.pack(">q", timestamp) + record[8:]

    assert _written(log, room, is_stamped=True) == (expected, 5)
