"""Where the index entries of an active segment are counted: beside it, in the tables, or anew."""

from pathlib import Path

import pytest

from kafka_segments.verbs.judge.roll.decide.rules import IndexSource
from kafka_segments.verbs.judge.roll.index_entries import BuiltIndexes, EntryCounts, count_entries
from support.logs.strategies import v2_batch

BATCHES = [v2_batch(n, [(1000 + n, None, bytes(200))]) for n in range(20)]
OFFSETS, TIMES = 6, 7  # as recovery counts with an interval of 600 bytes: every third batch


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"".join(BATCHES))
    return path


def _count(log: Path, *, built_with: int | None = 600, interval: int = 600) -> EntryCounts:
    size = len(BATCHES[0]) * len(BATCHES)
    built = BuiltIndexes(str(log), 0, size, 1, 2, built_with)
    return count_entries(built, interval_bytes=interval)


def _write(log: Path, *, index: bytes, time_index: bytes) -> None:
    log.with_suffix(".index").write_bytes(index)
    log.with_suffix(".timeindex").write_bytes(time_index)


@pytest.mark.parametrize("padding", [0, 1, 1000])
@pytest.mark.parametrize("entries", [0, 1, 2, 9])
def test_files_beside_the_log_count_up_to_their_preallocated_zeros(log, entries, padding):
    index = b"".join(n.to_bytes(4) + (200 * n).to_bytes(4) for n in range(1, entries + 1))
    times = b"".join((n << 8).to_bytes(8) + bytes(4) for n in range(1, entries + 1))
    _write(log, index=index + bytes(8 * padding), time_index=times + bytes(12 * padding))

    assert _count(log) == (entries, entries, IndexSource.BESIDE)


def test_without_files_the_tables_count_where_they_have_the_topics_interval_else_the_log(log):
    assert _count(log) == (1, 2, IndexSource.BUILT)
    for built_with in (None, 4096):
        assert _count(log, built_with=built_with) == (OFFSETS, TIMES, IndexSource.RECOUNTED)


@pytest.mark.parametrize("spoil", ["short", "one", "folder", "cut log"])
def test_files_that_a_broker_would_not_take_are_not_counted(log, spoil):
    _write(log, index=bytes(8), time_index=bytes(12))
    if spoil == "short":
        log.with_suffix(".index").write_bytes(bytes(7))
    elif spoil == "one":
        log.with_suffix(".timeindex").unlink()
    elif spoil == "folder":
        log.with_suffix(".index").unlink()
        log.with_suffix(".index").mkdir()
    else:
        log.write_bytes(BATCHES[0])

    assert _count(log).source == IndexSource.BUILT
    expected = IndexSource.BUILT_OTHERWISE if spoil == "cut log" else IndexSource.RECOUNTED
    assert _count(log, built_with=4096).source == expected


def test_a_log_that_is_gone_or_lies_elsewhere_leaves_the_tables_and_says_so(tmp_path):
    for path in (tmp_path / "gone.log", Path("nowhere/x.log")):
        assert _count(path).source == IndexSource.BUILT
        assert _count(path, built_with=1) == (1, 2, IndexSource.BUILT_OTHERWISE)


def test_a_segment_that_no_broker_loads_has_no_entries(log):
    built = BuiltIndexes(str(log), 0, 1, None, None, 600)

    assert count_entries(built, interval_bytes=1) == (None, None, IndexSource.BUILT)


def test_what_a_first_look_did_not_count_is_counted_beside_the_log_or_in_it(log: Path) -> None:
    size = len(BATCHES[0]) * len(BATCHES)
    looked = BuiltIndexes(str(log), 0, size, None, None, None, is_counted=False)

    assert count_entries(looked, interval_bytes=600) == (OFFSETS, TIMES, IndexSource.RECOUNTED)
    _write(log, index=bytes(7) + b"\1", time_index=bytes(11) + b"\1")
    assert count_entries(looked, interval_bytes=600) == (1, 1, IndexSource.BESIDE)
    log.unlink()
    unread = count_entries(looked, interval_bytes=600)
    assert unread == (None, None, IndexSource.BUILT_OTHERWISE)
