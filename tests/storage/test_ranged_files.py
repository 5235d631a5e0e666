"""An object's index files are read by ranges: their ends once, the rest where it is asked for."""

from contextlib import ExitStack

import pytest

from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.files.storage.ranged_files import CountedRanges

DATA = bytes(n % 251 for n in range(10_000))
END = 4_080


@pytest.mark.parametrize(
    ("position", "length", "requests"),
    [
        (len(DATA) - END, END, 0),
        (len(DATA) - END, 8, 0),
        (len(DATA) - 16, 8, 0),
        (len(DATA) - END - 8, 16, 1),
        (0, 8, 1),
    ],
)
def test_what_came_with_the_end_is_not_asked_for_again(object_store, position, length, requests):
    log = "ranged/t-0/00000000000000000000.log"
    object_store.files.create_dir("ranged")
    object_store.put(log, b"")
    object_store.put(log.replace(".log", ".index"), DATA)
    ranges = CountedRanges()

    with open_segment(place(f"s3://{log}"), reads_ahead=False) as segment, ExitStack() as files:
        found = ranges.index_files(place(f"s3://{log}"), segment, files)
        assert found.time_index is None
        assert found.offset_index is not None
        object_store.requests.clear()
        read = found.offset_index.read(position, length)

    assert found.offset_index.size_bytes == len(DATA)
    assert read == DATA[position : position + length]
    assert len(object_store.requests) == requests
    assert ranges.bytes_read == length
