"""What a start does with one log, by the names and sizes of its files."""

from dataclasses import replace

import pytest

from kafka_segments.kafka.broker_rules.start.cuts import DamagedSegment, decide_findings
from kafka_segments.kafka.broker_rules.start.facts import SegmentEnd
from kafka_segments.kafka.broker_rules.start.log_start import FoundLog, decide_start
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind
from kafka_segments.kafka.text.names import FolderState, file_name
from kafka_segments.verbs.change.recovery.forecast.decide.kits import work_with_kit
from kafka_segments.verbs.change.recovery.forecast.decide.times import LogWork

_SUFFIXES = (".log", ".index", ".timeindex")


def _log(*bases: int, without: tuple[str, ...] = (), topic: str = "t", **facts) -> FoundLog:
    files = {file_name(base, suffix): 100 + base for base in bases for suffix in _SUFFIXES}
    files |= {file_name(base, ".snapshot"): 10 for base in bases[1:]}
    for name in without:
        del files[name]
    extra = facts.pop("extra", {})
    state = facts.pop("state", FolderState.LIVE)
    return FoundLog("/d", f"{topic}-0", topic, 0, state, {**files, **extra}, **facts)


@pytest.mark.parametrize(
    ("point", "expected"),
    [(None, (0, 10, 20)), (0, (0, 10, 20)), (9, (0, 10, 20)), (10, (10, 20)), (25, (20,))],
)
def test_a_hard_stop_recovers_from_the_segment_with_the_recovery_point_on(point, expected) -> None:
    start = decide_start(_log(0, 10, 20, recovery_point=point), is_clean=False)

    assert start.unflushed == start.recovered == expected
    assert start.bytes_of(start.recovered) == sum(100 + base for base in expected)


def test_a_clean_stop_recovers_what_lacks_an_index_alone() -> None:
    log = _log(0, 10, 20, without=("00000000000000000010.index",), recovery_point=25)

    start = decide_start(log, is_clean=True)

    assert (start.lacking, start.unflushed) == ((10,), ())


def test_a_segment_without_index_is_recovered_twice_after_a_hard_stop() -> None:
    log = _log(0, 10, without=("00000000000000000010.index",), recovery_point=10)

    start = decide_start(log, is_clean=False)

    assert (start.lacking, start.unflushed, start.recovered) == ((10,), (10,), (10,))


def test_a_refused_transaction_index_counts_as_a_missing_one() -> None:
    log = _log(0, 10, recovery_point=15, refused_txn_indexes=frozenset({0}))

    assert decide_start(log, is_clean=True).lacking == (0,)


def test_the_metadata_log_is_recovered_whole_at_every_start() -> None:
    log = _log(0, 10, topic="__cluster_metadata", recovery_point=15)

    assert decide_start(log, is_clean=True).recovered == (0, 10)


@pytest.mark.parametrize(
    ("state", "expected"),
    [(FolderState.DELETE, ()), (FolderState.STRAY, (10,)), (FolderState.FUTURE, (10,))],
)
def test_deleted_logs_alone_are_not_recovered(state, expected) -> None:
    start = decide_start(_log(0, 10, state=state, recovery_point=12), is_clean=False)

    assert start.recovered == expected


def _after_a_kit(log: FoundLog, damaged=None, *, is_clean: bool = False) -> LogWork:
    start = decide_start(log, is_clean=is_clean)
    return work_with_kit(start, _UNTOUCHED, damaged or {})


_UNTOUCHED = LogWork(segments=-1)


def test_a_kit_leaves_an_empty_segment_at_the_logs_end_to_be_recovered() -> None:
    log = _log(0, 10, 20, without=("00000000000000000010.index",))
    ends_empty = _log(0, 10, 20, extra={"00000000000000000020.log": 0})
    all_torn = {20: _cut(0)._replace(cut_bytes=120)}

    assert _after_a_kit(log) == LogWork(segments=4, recovered_segments=1)
    assert _after_a_kit(log, {20: _cut(50)}) == LogWork(segments=4, recovered_segments=1)
    assert _after_a_kit(ends_empty) == LogWork(segments=3, recovered_segments=1)
    assert _after_a_kit(log, all_torn) == LogWork(segments=3, recovered_segments=1)


def test_what_a_kit_leaves_alone_is_recovered_as_ever() -> None:
    swap = {"00000000000000000000.log.swap": 50}

    for log in (
        _log(0, 10, topic="__cluster_metadata"),
        _log(0, 10, state=FolderState.STRAY),
        _log(0, 10, state=FolderState.FUTURE),
        _log(10, 20, log_start_offset=5),
        _log(0, 10, 20, extra=swap, swap_end_offsets={0: 20}),
    ):
        assert _after_a_kit(log) == _UNTOUCHED
    assert _after_a_kit(_log(0, 10), is_clean=True) == _UNTOUCHED
    assert _after_a_kit(_log(0, 10), {0: _cut(50)}) == _UNTOUCHED
    assert _after_a_kit(_log(0, 10), {10: _cut(50, DamageKind.OFFSET_OVERFLOW)}) == _UNTOUCHED


@pytest.mark.parametrize(
    ("without", "start_offset", "expected"),
    [
        ((), None, ()),
        (("00000000000000000020.snapshot",), None, (10,)),
        (("00000000000000000010.snapshot", "00000000000000000020.snapshot"), None, (0, 10)),
        (("00000000000000000020.snapshot",), 12, (10,)),
        (("00000000000000000010.snapshot", "00000000000000000020.snapshot"), 12, (10,)),
    ],
)
def test_batches_are_read_from_the_newest_snapshot_or_the_log_start_on(
    without, start_offset, expected
) -> None:
    log = _log(0, 10, 20, without=without, recovery_point=20, log_start_offset=start_offset)

    assert decide_start(log, is_clean=False).replayed == expected


def _names(*offsets: int, suffix: str = ".snapshot") -> tuple[str, ...]:
    return tuple(file_name(offset, suffix) for offset in offsets)


AT_END = {file_name(150, ".snapshot"): 10}


@pytest.mark.parametrize(
    ("without", "extra", "expected"),
    [
        ((), AT_END, ()),
        ((), {}, (20,)),
        (_names(20), {}, (10, 20)),
        (_names(10, 20), {}, ()),  # none is left: an empty state
        (_names(10, 20), AT_END, ()),
        ((), {file_name(40, ".snapshot"): 10}, (20,)),  # of an earlier stop
        (_names(20), {file_name(12, ".snapshot"): 10}, (10, 20)),  # a stray one
        (_names(10, 20), {file_name(12, ".snapshot"): 10}, ()),
        ((), {file_name(900, ".snapshot"): 10}, (20,)),  # beyond the end
        (_names(10, suffix=".index"), AT_END, (20,)),
        (_names(20, suffix=".index"), AT_END, ()),
        (_names(0, suffix=".index"), AT_END, (10, 20)),
    ],
)
def test_a_clean_start_reads_what_lies_behind_the_newest_snapshot(without, extra, expected) -> None:
    end = SegmentEnd(150) if extra else None
    log = _log(0, 10, 20, without=without, extra=extra, recovery_point=150, end=end)

    assert decide_start(log, is_clean=True).replayed == expected


def test_behind_a_segment_recovered_inside_a_log_the_next_ones_are_read() -> None:
    lacking = {"without": _names(10, suffix=".index"), "extra": AT_END, "end": SegmentEnd(150)}
    log = _log(0, 10, 20, 30, 40, recovery_point=40, **lacking)
    removed = replace(log, state=FolderState.DELETE)

    assert decide_start(log, is_clean=False).replayed == (20, 30)
    assert decide_start(log, is_clean=True).replayed == (20, 30, 40)
    assert decide_start(removed, is_clean=True).replayed == ()


def test_leftovers_are_no_segments_and_finished_swaps_are() -> None:
    swapped = "00000000000000000000.log.swap"
    leftovers = {swapped: 50, "00000000000000000010.log.deleted": 9}
    log = _log(0, 10, 20, extra=leftovers, swap_end_offsets={0: 20})

    start = decide_start(log, is_clean=False)

    assert start.sizes == {0: 50, 20: 120}
    assert start.left_behind == tuple(sorted(leftovers))


def test_index_files_at_full_size_are_told_but_for_the_last_segment() -> None:
    full = {file_name(base, ".index"): 10_485_760 for base in (0, 10)}

    start = decide_start(_log(0, 10, extra=full), is_clean=False)

    assert start.full_indexes == ("00000000000000000000.index",)


def _cut(position: int, kind: DamageKind = DamageKind.CORRUPT_BATCH) -> DamagedSegment:
    return DamagedSegment(Damage(kind, position, "why"), 7, 3)


def test_a_cut_takes_all_later_segments_with_it() -> None:
    start = decide_start(_log(0, 10, 20, recovery_point=5), is_clean=False)

    [finding], left = decide_findings(start, {10: _cut(103), 20: _cut(1)}, {10: 5, 20: 40})

    assert (finding.base_offset, finding.consequence, finding.position) == (10, "cut", 103)
    assert (finding.lost_bytes, finding.lost_records, finding.lost_segments) == (7 + 120, 43, 1)
    assert left.recovered == (0, 10)


@pytest.mark.parametrize("records", [{}, {20: None}])
def test_records_of_segments_that_go_with_a_cut_are_not_known_unless_counted(records) -> None:
    start = decide_start(_log(0, 10, 20, recovery_point=5), is_clean=False)

    [finding], _ = decide_findings(start, {10: _cut(103)}, records)

    assert (finding.lost_records, finding.lost_segments) == (None, 1)


def test_a_cut_in_the_first_pass_leaves_later_segments() -> None:
    log = _log(0, 10, without=("00000000000000000000.index",), recovery_point=12)
    start = decide_start(log, is_clean=True)

    [finding], left = decide_findings(start, {0: _cut(50)}, {})

    assert (finding.lost_bytes, finding.lost_segments) == (7, 0)
    assert left.recovered == (0,)


@pytest.mark.parametrize(
    ("kind", "consequence"),
    [(DamageKind.OFFSET_OVERFLOW, "split"), (DamageKind.INDEX_FULL, "refused")],
)
def test_what_is_no_cut_loses_nothing(kind, consequence) -> None:
    start = decide_start(_log(0, 10), is_clean=False)

    [finding], left = decide_findings(start, {0: _cut(50, kind)}, {})

    assert (finding.consequence, finding.lost_bytes, finding.lost_records) == (consequence, 0, 0)
    assert left.recovered == (0, 10)
