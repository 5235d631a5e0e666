"""Size limits of index files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.limits import (
    index_limits,
    most_offset_entries,
    sufficient_index_bytes,
)
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.settings import Settings
from support.kafka.kafka_referee import Referee
from support.logs.log_reading import reader_of
from support.logs.strategies import DatedLog, dated_logs, example_e1

DEFAULT_INTERVAL = 4096


def test_the_defaults() -> None:
    limits = index_limits(10_485_760)

    assert limits.max_offset_entries == 1_310_720
    assert limits.max_time_entries == 873_813
    assert limits.preallocated_offset_index_bytes == 10_485_760
    assert limits.preallocated_time_index_bytes == 10_485_756
    assert not limits.is_offset_index_full(1_310_719)
    assert limits.is_offset_index_full(1_310_720)
    assert not limits.is_time_index_full(873_811)
    assert limits.is_time_index_full(873_812)


@pytest.mark.parametrize(
    ("log_bytes", "most"),
    [(0, 0), (1, 0), (4097, 0), (4098, 1), (2**30, 262_080), (2**31 - 1, 524_160)],
)
def test_the_most_entries_of_a_log(log_bytes: int, most: int) -> None:
    assert most_offset_entries(log_bytes, DEFAULT_INTERVAL) == most


@given(dated_logs(), st.sampled_from([0, 60, 100]))
def test_sufficient_bytes_suffice_for_recovery(drawn: DatedLog, interval_bytes: int) -> None:
    size = len(drawn.log)
    options = RecoveryOptions(
        index_interval_bytes=interval_bytes,
        segment_index_bytes=sufficient_index_bytes(size, interval_bytes),
    )

    found = SegmentRecoverer(options).recover(
        reader_of(drawn.log), size_bytes=size, base_offset=drawn.base_offset
    )

    assert found.damage is None
    assert found.offset_entries is not None
    assert len(found.offset_entries) <= most_offset_entries(size, interval_bytes)


@pytest.mark.parametrize(("segment_index_bytes", "opens"), [(4, False), (11, False), (12, True)])
def test_settings_take_what_kafka_takes_though_no_segment_opens_with_it(
    referee: Referee, tmp_path: Path, segment_index_bytes: int, opens: bool
) -> None:
    (tmp_path / f"{0:020d}.log").touch()

    (found,) = referee.recover(tmp_path, segment_index_bytes=segment_index_bytes)

    assert ("threw" not in found) == opens
    assert ("Invalid max index size" in found.get("message", "")) != opens
    settings = Settings.load(None, [f"segment_index_bytes={segment_index_bytes}"])
    assert settings.segment_index_bytes == segment_index_bytes
    with pytest.raises(UsageError):
        Settings.load(None, ["segment_index_bytes=3"])


@pytest.mark.parametrize("segment_index_bytes", [36, 40, 47, 48, 1000])
def test_limits_are_kafkas(referee: Referee, tmp_path: Path, segment_index_bytes: int) -> None:
    base_offset, log = example_e1()
    (tmp_path / f"{base_offset:020d}.log").write_bytes(log)
    referee.recover(tmp_path, 200, segment_index_bytes)
    limits = index_limits(segment_index_bytes)

    (kafkas,) = referee.truncate(tmp_path, base_offset, [1010], segment_index_bytes)

    entries = bytes.fromhex(kafkas["offset_index"].pop("entries"))
    assert kafkas["offset_index"] == {
        "file_bytes": limits.preallocated_offset_index_bytes,
        "max_entries": limits.max_offset_entries,
        "is_full": limits.is_offset_index_full(len(entries) // 8),
    }
    entries = bytes.fromhex(kafkas["time_index"].pop("entries"))
    assert kafkas["time_index"] == {
        "file_bytes": limits.preallocated_time_index_bytes,
        "max_entries": limits.max_time_entries,
        "is_full": limits.is_time_index_full(len(entries) // 12),
    }
