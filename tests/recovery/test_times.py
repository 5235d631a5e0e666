"""The model of a start's time."""

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.verbs.change.recovery.forecast.decide.times import (
    Costs,
    DirWork,
    LogWork,
    makespan,
    seconds_of_start,
)

_FREE = Costs(
    batch_us=0,
    byte_ns=0,
    file_us=0,
    replayed_batch_us=0,
    log_ms=0,
    open_ms=0,
    segment_ms={1: 0.0},
    segment_cpu_ms=0,
    hindrance=0,
    warm_up_ms=0,
    cores=64,
)


def _seconds(costs: Costs, *logs: LogWork, threads: int = 1) -> float:
    return seconds_of_start([DirWork("d", logs)], costs, threads=threads)["d"]


def test_a_thread_that_is_free_takes_the_next_log_in_order() -> None:
    assert makespan([3, 1, 1, 4], threads=2) == 6
    assert makespan([4, 3, 1, 1], threads=2) == 5
    assert makespan([], threads=2) == 0


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=30), st.integers(1, 40))
def test_more_threads_never_take_less_than_the_largest_log(jobs, threads) -> None:
    taken = makespan(jobs, threads=threads)

    assert max(jobs) <= taken <= sum(jobs) * (1 + 1e-9)
    assert taken >= sum(jobs) / threads * (1 - 1e-9)


def test_a_large_log_is_not_shared_out() -> None:
    costs = Costs(**{**vars(_FREE), "batch_us": 1.0})
    large, small = LogWork(recovered_batches=9e6), LogWork(recovered_batches=1e6)

    assert _seconds(costs, large, small, small, threads=1) == pytest.approx(11)
    assert _seconds(costs, large, small, small, threads=8) == pytest.approx(9)
    assert _seconds(costs, small, small, large, threads=2) == pytest.approx(10)


@pytest.mark.parametrize(
    ("cost", "work", "seconds"),
    [
        ({"batch_us": 2.0}, LogWork(recovered_batches=1e6), 2),
        ({"byte_ns": 0.5}, LogWork(recovered_bytes=2_000_000_000), 1),
        ({"replayed_batch_us": 3.0}, LogWork(replayed_batches=1e6), 3),
        ({"segment_ms": {1: 2.0}}, LogWork(0, 400, 1, twice_segments=100), 1),
        ({"batch_us": 1.0}, LogWork(recovered_batches=1e6, twice_batches=1e6), 2),
        ({"open_ms": 2.0}, LogWork(segments=500), 1),
        ({"segment_ms": {1: 4.0}}, LogWork(0, 250, 1), 1),
        ({"segment_ms": {1: 4.0}}, LogWork(0, 250, 0), 0),
        ({"log_ms": 7.0}, LogWork(), 0.007),
        ({"segment_cpu_ms": 3.0}, LogWork(recovered_segments=8, twice_segments=2), 0.03),
        ({"read_bytes_per_s": 1e9}, LogWork(recovered_bytes=10**9, replayed_bytes=10**9), 2),
    ],
)
def test_each_part_of_the_work_has_its_cost(cost, work, seconds) -> None:
    assert _seconds(Costs(**{**vars(_FREE), **cost}), work) == pytest.approx(seconds)


def test_each_segment_that_is_recovered_has_all_files_of_its_log_looked_at() -> None:
    costs = Costs(**{**vars(_FREE), "file_us": 100.0})
    whole, larger = (LogWork(segments=count, recovered_segments=count) for count in (50, 100))
    last = LogWork(segments=100, recovered_segments=1)

    # three files of each segment, and a snapshot of each that has been recovered
    assert _seconds(costs, whole) == pytest.approx(50 * (3 * 50 + 25) / 1e4)
    assert _seconds(costs, larger) == pytest.approx(4 * _seconds(costs, whole))
    assert _seconds(costs, last) == pytest.approx(400 / 1e4, rel=0.01)


def test_what_the_disk_forces_is_shared_by_the_threads_and_cores_are_too() -> None:
    four = [LogWork(recovered_batches=1e6, recovered_segments=100, recovered_bytes=1)] * 4
    disk = Costs(**{**vars(_FREE), "segment_ms": {1: 10.0, 4: 40.0}})
    cpu = Costs(**{**vars(_FREE), "batch_us": 1.0, "cores": 2})

    assert _seconds(disk, *four, threads=1) == pytest.approx(4)
    assert _seconds(disk, *four, threads=4) == pytest.approx(4)
    assert _seconds(cpu, *four, threads=1) == pytest.approx(4)
    assert _seconds(cpu, *four, threads=2) == pytest.approx(2)
    assert _seconds(cpu, *four, threads=4) == pytest.approx(2)


def test_threads_hinder_each_other_up_to_the_cores() -> None:
    four = [LogWork(recovered_batches=1e6)] * 4
    costs = Costs(**{**vars(_FREE), "batch_us": 1.0, "hindrance": 0.5, "cores": 2})

    assert _seconds(costs, *four, threads=1) == pytest.approx(4)
    assert _seconds(costs, *four, threads=2) == pytest.approx(4 * 1.5 / 2)
    assert _seconds(costs, *four, threads=4) == pytest.approx(4 * 1.5 * 2 / 4)


def test_a_jvm_warms_up_in_its_first_work_whatever_the_threads() -> None:
    costs = Costs(**{**vars(_FREE), "batch_us": 1.0, "warm_up_ms": 800.0, "warm_up_span_ms": 500.0})
    long, short = LogWork(recovered_batches=1e7), LogWork(recovered_batches=1e5)

    assert _seconds(costs) == 0
    assert _seconds(costs, long) == pytest.approx(10.8)
    assert _seconds(costs, long, long, threads=2) == pytest.approx(10.8)
    assert _seconds(costs, short) == pytest.approx(0.1 + 0.8 * (1 - math.exp(-0.2)))


def test_costs_of_a_segment_lie_between_the_numbers_of_threads_that_were_measured() -> None:
    costs = Costs(segment_ms={1: 2.0, 4: 8.0})

    assert [costs.segment_ms_at(threads) for threads in (1, 2.5, 4, 8)] == [2, 5, 8, 16]


def test_directories_are_loaded_at_once_and_share_the_cores() -> None:
    logs = [LogWork(recovered_batches=1e6)] * 2
    dirs = [DirWork("a", logs), DirWork("b", logs), DirWork("c", [])]
    costs = Costs(**{**vars(_FREE), "batch_us": 1.0, "cores": 2})

    assert seconds_of_start(dirs, costs, threads=1) == pytest.approx({"a": 2, "b": 2, "c": 0})
    assert seconds_of_start(dirs, costs, threads=2) == pytest.approx({"a": 2, "b": 2, "c": 0})


def test_directories_on_one_disk_wait_for_each_others_syncs() -> None:
    logs = [LogWork(recovered_segments=100, recovered_bytes=1)]
    costs = Costs(**{**vars(_FREE), "segment_ms": {1: 10.0, 2: 20.0}})

    def seconds(*disks: int | None) -> set[float]:
        dirs = [DirWork(str(number), logs, disk) for number, disk in enumerate(disks)]
        return {round(taken, 3) for taken in seconds_of_start(dirs, costs, threads=1).values()}

    assert seconds(1, 1) == {2.0}
    assert seconds(1, 2) == seconds(None, None) == {1.0}


def test_a_directory_that_is_loaded_soon_hinders_the_others_until_then() -> None:
    long, short = ([LogWork(recovered_batches=1e6 * size)] for size in (4, 1))
    costs = Costs(**{**vars(_FREE), "batch_us": 1.0, "cores": 1})
    dirs = [DirWork("long", long), DirWork("short", short)]

    assert seconds_of_start(dirs, costs, threads=1) == pytest.approx({"long": 5, "short": 2})


def test_the_order_of_the_logs_matters() -> None:
    costs = Costs(**{**vars(_FREE), "batch_us": 1.0})
    works = [LogWork(recovered_batches=1e6 * size) for size in (1, 1, 2, 4)]

    taken = {round(_seconds(costs, *order, threads=2), 6) for order in permutations(works)}

    assert taken == {4, 5, 6}
