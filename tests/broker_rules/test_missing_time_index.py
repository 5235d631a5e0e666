"""A segment without its time index, by release and by KIP-33's texts."""

import pytest

from kafka_segments.kafka.broker_rules.missing_time_index import (
    Kip33Text,
    MissingTimeIndex,
    Release,
    kip33_largest_timestamp_needs_scan,
    kip33_missing_time_index,
    on_missing_time_index,
)
from kafka_segments.kafka.index.formats.kip33_index import WithoutTimestamps


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ((0, 9, 0), MissingTimeIndex.NOT_USED),
        ((0, 10, 0), MissingTimeIndex.NOT_USED),
        ((0, 10, 1), MissingTimeIndex.FULL_OF_ZEROS),
        ((0, 10, 2), MissingTimeIndex.EMPTY),
        ((2, 3, 0), MissingTimeIndex.EMPTY),
        ((4, 3, 1), MissingTimeIndex.EMPTY),
    ],
)
def test_after_a_clean_stop_it_is_not_rebuilt(release: Release, expected: MissingTimeIndex) -> None:
    for is_active in (False, True):
        found = on_missing_time_index(
            release, has_offset_index=True, is_active=is_active, is_clean=True
        )

        assert found == expected


@pytest.mark.parametrize("release", [(0, 10, 1), (0, 10, 2), (4, 3, 1)])
@pytest.mark.parametrize(
    ("has_offset_index", "is_active", "is_clean"),
    [(False, False, True), (False, True, True), (False, False, False), (True, True, False)],
)
def test_it_is_rebuilt_where_the_segment_is_recovered(
    release: Release, has_offset_index: bool, is_active: bool, is_clean: bool
) -> None:
    found = on_missing_time_index(
        release, has_offset_index=has_offset_index, is_active=is_active, is_clean=is_clean
    )

    assert found == MissingTimeIndex.RECOVERED


def test_a_hard_stop_leaves_a_closed_segment_below_the_recovery_point_alone() -> None:
    found = on_missing_time_index((4, 3, 1), has_offset_index=True, is_active=False, is_clean=False)

    assert found == MissingTimeIndex.EMPTY


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        (Kip33Text.STARTUP, WithoutTimestamps.MTIME_NEXT),
        (Kip33Text.MIGRATION, WithoutTimestamps.MTIME_FIRST),
    ],
)
def test_kip33_creates_an_entry_for_closed_segments_only(
    text: Kip33Text, closed: WithoutTimestamps
) -> None:
    assert kip33_missing_time_index(text, is_active=False) == closed
    assert kip33_missing_time_index(text, is_active=True) == WithoutTimestamps.EMPTY


@pytest.mark.parametrize(
    ("is_clean", "is_active", "scans"),
    [(True, True, False), (True, False, False), (False, True, True), (False, False, False)],
)
def test_kip33_scans_the_active_segment_after_a_hard_stop(
    is_clean: bool, is_active: bool, scans: bool
) -> None:
    assert kip33_largest_timestamp_needs_scan(is_clean=is_clean, is_active=is_active) == scans
