"""Many small logs are handed on together: what handing on costs is not paid for each of them."""

from pathlib import Path

import pyarrow as pa

from kafka_segments.verbs.copies.divergence import tasks_by_log
from kafka_segments.verbs.copies.divergence.log_reading.tasks import digest_segments
from support.logs.strategies import v2_batch

_LOGS = 400


def test_digests_of_small_segments_come_in_one_batch(tmp_path: Path) -> None:
    segment = v2_batch(0, [(1, b"key", b"value")], leader_epoch=0)
    rows = []
    for number in range(_LOGS):
        path = tmp_path / f"orders-{number}" / f"{0:020d}.log"
        path.parent.mkdir()
        path.write_bytes(segment)
        rows.append(
            {
                "copy": "a",
                "topic": "orders",
                "partition": number,
                "path": str(path),
                "segment_base": 0,
                "next_base": None,
                "size_bytes": len(segment),
            }
        )

    batches = list(digest_segments(pa.Table.from_pylist(rows).to_batches(), check_crc=True))

    assert [batch.num_rows for batch in batches] == [_LOGS]
    assert batches[0]["partition"].to_pylist() == list(range(_LOGS))
    assert {len(ranges) for ranges in batches[0]["ranges"].to_pylist()} == {1}


def test_logs_with_many_parts_become_objects_few_at_a_time() -> None:
    most = tasks_by_log._MOST_PARTS
    counts = [most, 1, None, 0, *[1] * 2_000, most + 1, most + 1, 1]
    parts = pa.array(
        [None if count is None else [0] * count for count in counts], pa.list_(pa.int8())
    )

    pieces = list(tasks_by_log._pieces(pa.record_batch([parts], ["parts"])))

    assert [piece.num_rows for piece in pieces] == [1, 1_000, 1_000, 3, 1, 1, 1]
    assert pa.Table.from_batches(pieces)["parts"].combine_chunks() == parts
