"""Where the headers of a segment are read without its records."""

from kafka_segments.kafka.index.segment.batch_reading import headers
from kafka_segments.kafka.wire import batches as wire
from support.logs.log_reading import reader_of
from support.logs.strategies import v2_batch


def test_headers_of_batches_are_read_however_large_their_records_are() -> None:
    large = v2_batch(5, [(10, None, bytes(100_000))])
    log = large + v2_batch(9, [(11, None, b"v")])

    found = [
        (int(offset), int(position))
        for batches in headers(reader_of(log), 0, len(log))
        for offset, position in zip(
            batches[wire.BATCH_BASE_OFFSET], batches[wire.BATCH_POSITION], strict=True
        )
    ]

    assert found == [(5, 0), (9, len(large))]
