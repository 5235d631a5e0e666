"""Formats of a segment counted batch by batch."""

import pytest

from kafka_segments.errors import FileChangedError
from kafka_segments.verbs.change.migrate.inventory.format_counter import FormatCount, FormatCounter
from support.logs.log_reading import reader_of
from support.logs.strategies import (
    GZIP,
    LOG_APPEND_TIME,
    gzip_wrapper,
    v0_message,
    v1_message,
    v2_batch,
)

PLAIN = v0_message(0, None, b"a")
APPENDED = v1_message(1, 5, None, b"b", attributes=LOG_APPEND_TIME)
SET = gzip_wrapper(
    [v1_message(0, 5, None, b"c"), v1_message(1, 5, None, b"d")], offset=3, timestamp=5
)
V2 = v2_batch(4, [(5, None, b"e")] * 3, codec=GZIP, flags=LOG_APPEND_TIME)
NOT_GZIP = v1_message(7, 5, None, b"no gzip", attributes=GZIP)
LARGE = v0_message(8, None, bytes(4 * 1024 * 1024), attributes=GZIP)


def _counted(log: bytes, *, decompresses: bool, size_bytes: int | None = None) -> list[FormatCount]:
    counter = FormatCounter(decompresses=decompresses, max_batch_bytes=4 * 1024 * 1024)
    return counter.count(reader_of(log), valid_bytes=len(log) if size_bytes is None else size_bytes)


@pytest.mark.parametrize("decompresses", [False, True])
def test_each_format_is_counted(decompresses: bool) -> None:
    in_sets = 4 if decompresses else None

    assert _counted(PLAIN + SET + APPENDED + V2 + SET + PLAIN, decompresses=decompresses) == [
        FormatCount(0, "none", "NoTimestampType", 2, 2, 2 * len(PLAIN)),
        FormatCount(1, "none", "LogAppendTime", 1, 1, len(APPENDED)),
        FormatCount(1, "gzip", "CreateTime", 2, in_sets, 2 * len(SET)),
        FormatCount(2, "gzip", "LogAppendTime", 1, 3, len(V2)),
    ]


@pytest.mark.parametrize("unknown", [NOT_GZIP, LARGE])
def test_a_set_that_cannot_be_opened_leaves_records_unknown(unknown: bytes) -> None:
    counted = _counted(SET + unknown + PLAIN, decompresses=True)

    assert sum(count.batch_count for count in counted) == 3
    assert sum(count.bytes for count in counted) == len(SET + unknown + PLAIN)
    assert None in [count.record_count for count in counted]


def test_an_empty_segment_has_no_formats_and_one_that_shrinks_is_an_error() -> None:
    assert _counted(b"", decompresses=True) == []
    with pytest.raises(FileChangedError):
        _counted(PLAIN, decompresses=True, size_bytes=100)
