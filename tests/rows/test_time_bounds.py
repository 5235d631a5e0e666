"""Segments left out by their rebuilt time index: only where it tells all of the log."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.engine.rows.freshness import covers_end_of_log
from kafka_segments.engine.rows.time_bounds import proven_greatest_timestamp, without_older
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders.walk import ListedSegment, find_segments
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from support.logs.strategies import Segment, damaged, segments, v2_batch

RECOVERER = SegmentRecoverer(RecoveryOptions(index_interval_bytes=300))


def _write(folder: Path, base_offset: int, log: bytes) -> tuple[ListedSegment, IndexOutput]:
    """Write a segment and its rebuilt index files; gives what finds both."""
    found = RECOVERER.recover(
        lambda position, view: _copy(log, position, view),
        size_bytes=len(log),
        base_offset=base_offset,
    )
    source, indexes = folder / "logs", folder / "indexes"
    for root in (source, indexes):
        (root / "t-0").mkdir(parents=True, exist_ok=True)
    (source / "t-0" / f"{base_offset:020d}.log").write_bytes(log)
    if found.offset_entries is not None and found.time_entries is not None:
        stem = indexes / "t-0" / f"{base_offset:020d}"
        offsets = encode_offset_index(found.offset_entries, base_offset=base_offset)
        times = encode_time_index(found.time_entries, base_offset=base_offset)
        stem.with_suffix(".index").write_bytes(offsets)
        stem.with_suffix(".timeindex").write_bytes(times)
    (segment,) = find_segments([str(source)]).segments
    return segment, IndexOutput(str(indexes), "", {str(source): ""})


def _copy(log: bytes, position: int, view: memoryview) -> int:
    part = log[position : position + len(view)]
    view[: len(part)] = part
    return len(part)


def _log(*timestamps: int) -> bytes:
    return b"".join(
        v2_batch(1000 + n, [(timestamp, b"k", b"v" * 200)])
        for n, timestamp in enumerate(timestamps)
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], tuple[ListedSegment, IndexOutput]]:
    return lambda log: _write(tmp_path, 1000, log)


@given(data=st.data(), segment=segments(), spoil=st.booleans())
def test_what_is_proven_is_never_below_a_record_that_recovery_keeps(
    data: st.DataObject,
    segment: Segment,
    spoil: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base_offset, log = segment.base_offset, segment.log
    if spoil:
        log = data.draw(damaged(segment))
    folder = tmp_path_factory.mktemp("bounds")

    proven = proven_greatest_timestamp(*_write(folder, base_offset, log))

    valid = RECOVERER.recover(
        lambda position, view: _copy(log, position, view),
        size_bytes=len(log),
        base_offset=base_offset,
    )
    if proven is not None:
        assert proven >= valid.max_timestamp
    elif not spoil and valid.damage is None:
        pytest.fail("sound files of a sound segment prove its greatest timestamp")


def test_segments_that_end_before_the_bound_are_left_out(
    write: Callable[[bytes], tuple[ListedSegment, IndexOutput]],
) -> None:
    segment, output = write(_log(10, 40, 30, 20))

    assert without_older([segment], output, 41) == []
    assert without_older([segment], output, 40) == [segment]
    assert without_older([segment], output, -1) == [segment]


def test_a_log_that_went_on_since_is_not_left_out_whatever_its_mtime(
    write: Callable[[bytes], tuple[ListedSegment, IndexOutput]],
) -> None:
    segment, output = write(_log(10, 40, 30, 20))
    log = Path(segment.path)
    log.write_bytes(_log(10, 40, 30, 20, 99))
    os.utime(log, (1, 1))

    assert proven_greatest_timestamp(segment, output) is None


def test_files_of_another_log_prove_nothing(
    write: Callable[[bytes], tuple[ListedSegment, IndexOutput]],
) -> None:
    segment, output = write(_log(10, 40, 30, 20))
    Path(segment.path).write_bytes(_log(9, 9, 9, 9)[3:])

    assert proven_greatest_timestamp(segment, output) is None


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_file_proves_nothing(
    write: Callable[[bytes], tuple[ListedSegment, IndexOutput]], suffix: str
) -> None:
    segment, output = write(_log(10, 40, 30, 20))
    (Path(str(output.index_dir)) / "t-0" / f"{1000:020d}{suffix}").unlink()

    assert proven_greatest_timestamp(segment, output) is None


def test_a_padded_time_index_proves_nothing(
    write: Callable[[bytes], tuple[ListedSegment, IndexOutput]],
) -> None:
    segment, output = write(_log(10, 40, 30, 20))
    file = Path(str(output.index_dir)) / "t-0" / f"{1000:020d}.timeindex"
    file.write_bytes(file.read_bytes() + bytes(24))

    assert proven_greatest_timestamp(segment, output) is None


def test_an_empty_log_has_nothing_newer() -> None:
    assert covers_end_of_log(b"", last_offset=None, greatest_timestamp=-1)
    assert not covers_end_of_log(b"", last_offset=5, greatest_timestamp=-1)
