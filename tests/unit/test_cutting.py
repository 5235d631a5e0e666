"""Cutting a log at known points: the greedy rules at their edges, and bounds between points."""

import numpy as np
import pytest

from kafka_segments.decide.cutting import Points, cut

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
