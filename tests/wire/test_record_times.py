"""Offset and timestamp of every record, of every format, against the plain decoder."""

from hypothesis import given

from kafka_segments.kafka.wire.record_times import RecordTimesReader, Undecodable
from support.logs.log_reading import chunks, record_times
from support.logs.strategies import DatedLog, dated_logs, v2_batch
from support.model.plain_decoder import plain_records


def rows(log: bytes) -> list[tuple[int, int, int]]:
    return [row for part in record_times(log) for row in zip(*map(list, part), strict=True)]


@given(dated_logs())
def test_records_are_those_of_the_plain_decoder(drawn: DatedLog) -> None:
    plain = plain_records(drawn.log)
    expected = [(record.batch_position, record.offset, record.timestamp) for record in plain]

    assert rows(drawn.log) == expected
    assert [(offset, timestamp) for _, offset, timestamp in expected] == drawn.records


def test_a_batch_that_cannot_be_decoded_counts_as_one_record() -> None:
    good = v2_batch(5, [(1000, None, b"a"), (1001, None, b"b")])
    not_gzip = v2_batch(7, [(2000, None, b"c"), (2001, None, b"d")], codec=1, payload=b"no gzip")
    too_many = v2_batch(9, [(3000, None, b"e")], record_count=4)
    log = good + not_gzip + too_many + v2_batch(13, [(4000, None, b"f")])
    reader = RecordTimesReader(max_batch_bytes=1_000_000)

    parts = [
        part
        for chunk in chunks(log)
        for part in reader.read(chunk.batches, chunk.data, chunk.data_position)
    ]

    found = [(o, t) for part in parts for o, t in zip(part.offset, part.timestamp, strict=True)]
    assert found == [(5, 1000), (6, 1001), (7, 2001), (9, 3000), (13, 4000)]
    assert reader.undecodable is not None
    assert reader.undecodable.position == len(good)
    assert "gzip: no member begins" in reader.undecodable.reason


def test_a_batch_above_the_limit_is_not_read() -> None:
    log = v2_batch(5, [(1000, None, bytes(5_000)), (1001, None, b"b")])
    reader = RecordTimesReader(max_batch_bytes=1_000)
    chunk = next(chunks(log))

    (part,) = reader.read(chunk.batches, None, chunk.data_position)

    assert (list(part.offset), list(part.timestamp)) == ([5], [1001])
    reason = f"the batch has {len(log)} bytes, at most 1000 are read"
    assert reader.undecodable == Undecodable(0, reason)


def test_more_records_than_fit_the_columns_come_in_parts() -> None:
    values = [(1000 + i, None, None) for i in range(70_000)]
    log = v2_batch(0, values) + v2_batch(70_000, values)

    found = rows(log)

    assert [offset for _, offset, _ in found] == list(range(140_000))
