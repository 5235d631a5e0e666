"""Cutting a log at known points: the greedy rules at their edges, and bounds between points."""

import numpy as np
import pyarrow as pa
import pytest

from kafka_segments.verbs.judge.roll.decide.cutting import Points, cut

DAY_MS = 86_400_000


def _points(positions: list[int], timestamps: list[int], *, is_in_order: bool = True) -> Points:
    places = np.array(positions, np.int64)
    return Points(
        places,
        np.array(timestamps, np.int64),
        gap_bytes=int(np.diff(places).max(initial=0)),
        batch_count=50,
        segments_today=1,
        is_in_order=is_in_order,
    )


@pytest.mark.parametrize(
    ("segment_bytes", "segment_ms", "expected"),
    [
        (400, DAY_MS, (1, 1, 1)),  # equality does not roll
        (399, DAY_MS, (2, 2, 2)),
        (100, DAY_MS, (4, 4, 4)),
        (400, 3, (1, 1, 1)),
        (400, 2, (2, 2, 2)),
        (50, DAY_MS, (4, 4, 20)),  # finer than the index: bounded by bytes
    ],
)
def test_a_cut_is_known_but_for_what_lies_between_two_points(
    segment_bytes: int, segment_ms: int, expected: tuple[int, int, int]
) -> None:
    points = _points([0, 100, 200, 300, 400], [1, 2, 3, 4, 4])

    found = cut(
        points, segment_bytes=segment_bytes, segment_ms=segment_ms, index_interval_bytes=4096
    )

    assert (found["segments"], found["segments_least"], found["segments_most"]) == expected


def test_an_empty_log_has_one_segment() -> None:
    found = cut(_points([0], [-1]), segment_bytes=100, segment_ms=1, index_interval_bytes=0)

    assert (found["segments"], found["files"], found["memory_maps"]) == (1, 3, 2)
    assert (found["retention_overshoot_bytes"], found["cut_error_bytes"]) == (0, 0)


def test_without_order_only_bytes_and_batches_bound() -> None:
    points = _points([0, 100, 200], [-1, -1, -1], is_in_order=False)

    found = cut(points, segment_bytes=100, segment_ms=1, index_interval_bytes=0)

    assert (found["segments_least"], found["segments_most"]) == (2, 50)


def test_absurd_timestamps_and_limits_do_not_wrap() -> None:
    largest = 2**63 - 1
    points = _points([0, 100, 200], [0, largest, largest])

    found = cut(points, segment_bytes=1_000, segment_ms=largest, index_interval_bytes=0)

    assert found["segments"] == 1
    assert found["retention_overshoot_ms"] == largest


def test_all_that_is_told_of_a_cut_log() -> None:
    points = _points([0, 100, 200, 300, 450], [10, 20, 30, 40, 50])

    found = cut(points, segment_bytes=250, segment_ms=DAY_MS, index_interval_bytes=50)

    assert found == {
        "segments_today": 1,
        "segments": 2,
        "segments_least": 2,
        "segments_most": 2,
        "files": 7,  # the second has a snapshot
        "memory_maps": 4,
        "index_bytes": 20 * 3 + 12 * 2,  # one in (50 + 75) bytes
        "index_bytes_least": 0,
        "index_bytes_most": 20 * 8 + 12 * 2,  # one in 51 bytes
        "retention_overshoot_bytes": 250,
        "retention_overshoot_ms": 20,
        "cut_error_bytes": 150,
        "is_in_order": True,
    }


def test_a_walk_takes_the_largest_and_the_longest_of_its_segments() -> None:
    points = _points([0, 100, 200, 220, 230, 240], [0, 1, 2, 500, 900, 1_000])

    found = cut(points, segment_bytes=200, segment_ms=500, index_interval_bytes=4096)

    assert found["segments"] == 3
    assert (found["retention_overshoot_bytes"], found["retention_overshoot_ms"]) == (200, 500)


def test_a_segment_that_is_cut_by_time_is_as_large_as_its_own_bytes() -> None:
    points = _points([0, 100, 200, 300], [0, 10, 20, 30])

    found = cut(points, segment_bytes=10**6, segment_ms=10, index_interval_bytes=4096)

    assert (found["segments"], found["retention_overshoot_bytes"]) == (3, 100)


@pytest.mark.parametrize(
    ("segment_bytes", "segment_ms", "most"),
    [
        (100, 10**6, 5),  # two segments together have more than 100 bytes: at most 4 cuts
        (150, 10**6, 3),
        (201, 10**6, 1),
        (10**6, 99, 4),  # 301 ms: a cut each 100
        (10**6, 100, 3),
        (10**6, 300, 2),
        (10**6, 301, 1),
    ],
)
def test_between_two_points_a_cut_takes_bytes_or_time(
    segment_bytes: int, segment_ms: int, most: int
) -> None:
    points = _points([0, 200], [0, 301])

    found = cut(
        points, segment_bytes=segment_bytes, segment_ms=segment_ms, index_interval_bytes=4096
    )

    assert found["segments_most"] == most
    assert found["segments_least"] == -(-200 // max(segment_bytes, 200))


def test_more_entries_are_left_than_two_a_segment_may_lack() -> None:
    points = _points(list(range(0, 10_001, 100)), [1] * 101)

    found = cut(points, segment_bytes=5_000, segment_ms=DAY_MS, index_interval_bytes=100)

    assert found["segments"] == 2
    assert found["index_bytes_least"] == 8 * (10_000 // 200 - 4)
    assert found["index_bytes_most"] == 20 * 50 + 24  # no more than batches
    assert found["index_bytes"] == 20 * 50 + 24


def test_a_first_point_without_timestamp_is_never_timed_out() -> None:
    points = _points([0, 100, 200, 300], [-1, 5, 50, 500])

    assert cut(points, segment_bytes=10**6, segment_ms=1, index_interval_bytes=0)["segments"] == 1
    late = _points(list(range(0, 70_000, 100)), [*[0] * 600, *[2] * 100])
    assert cut(late, segment_bytes=10**6, segment_ms=1, index_interval_bytes=0)["segments"] == 3


def test_points_come_of_a_tables_rows() -> None:
    rows = {
        "position": [0, 100, 100, 300],
        "base_offset": [0, 7, 0, 7],
        "timestamp_ms": [1, 3, 2, 4],
        "gap_bytes": [0, 0, 100, 200],
        "batch_count": [None] * 4,
        "segments_today": [2] * 4,
        "is_in_order": [True] * 4,
    }

    points = Points.of(pa.table(rows).take([3, 1, 0, 2]))

    assert points.positions.tolist() == [0, 100, 300]
    assert points.timestamps.tolist() == [1, 3, 4]
    assert (points.gap_bytes, points.batch_count, points.segments_today) == (200, 0, 2)
    assert points.is_in_order
