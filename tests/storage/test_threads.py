"""Many small things, done in threads where they wait."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafka_segments.files.storage import threads
from kafka_segments.files.storage.threads import Watch, map_ahead, map_in_threads


def _waits(item: int) -> int:
    time.sleep(0.002)
    return item + 1


def _works(item: int) -> int:
    return item + 1


@pytest.mark.parametrize("function", [_waits, _works])
@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_results_come_in_order(function: Callable[[int], int], count: int) -> None:
    found = list(map_in_threads(function, range(count), threads=16))

    assert found == list(range(1, count + 1))


def test_what_waits_is_done_by_all_threads_at_once() -> None:
    barrier = threading.Barrier(4)

    def meets(item: int) -> int:
        _waits(item)
        return barrier.wait(10) if item > 1 else 0

    assert len(list(map_in_threads(meets, range(2 + 4 * 8), threads=4))) == 34


def test_what_the_first_one_waits_for_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int] = []

    class WaitsWhileItLoads:
        def __init__(self) -> None:
            self._loaded = len(loaded)

        def was_waiting(self) -> bool:
            return len(loaded) > self._loaded

    def thread_of(item: int) -> int:
        if not loaded:
            loaded.append(item)
        return threading.get_ident()

    monkeypatch.setattr(threads, "Watch", WaitsWhileItLoads)

    assert set(map_in_threads(thread_of, range(100), threads=4)) == {threading.get_ident()}


def test_time_without_cpu_is_waiting_where_it_was_given_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch()
    _waits(1)
    assert watch.was_waiting()

    moments = iter([(0.0, 0.0, 7), (9.0, 0.1, 7), (9.0, 0.1, 8)])  # kept from the CPU for 8.9 s
    monkeypatch.setattr(threads, "_now", lambda: next(moments))
    kept_from_it = Watch()

    assert not kept_from_it.was_waiting()
    assert kept_from_it.was_waiting()


def test_a_place_in_the_queue_for_a_cpu_is_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([(0.0, 0.0, 7), *[(9.0, 0.1, 8)] * 2])
    queued = iter([5.0, 13.85, 5.5])  # of 8.9 s without CPU all but 0.05; then 0.5 s alone
    monkeypatch.setattr(threads, "_now", lambda: next(moments))
    monkeypatch.setattr(threads, "_queued_seconds", lambda: next(queued))
    watch = Watch()

    assert not watch.was_waiting()
    assert watch.was_waiting()


@pytest.mark.parametrize("told", [None, "", "12", "1 x 2"])
def test_a_kernel_that_does_not_tell_of_its_queue_is_taken_for_an_idle_one(
    told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "schedstat"
    if told is not None:
        file.write_text(told, "utf-8")
    monkeypatch.setattr(threads, "_OF_SCHEDULER", str(file))
    watch = Watch()

    _waits(1)

    assert watch.was_waiting()


def test_what_fails_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_threads(lambda item: 1 // item, [1, 0], threads=2))
    with pytest.raises(ZeroDivisionError):
        list(map_in_threads(lambda item: 1 // _waits(item - 1), [1, 2, 3, 0], threads=2))


def test_no_more_is_begun_than_a_few_ahead_of_what_is_taken() -> None:
    begun: list[int] = []

    with ThreadPoolExecutor(2) as pool:
        found = map_ahead(
            pool, _works, (begun.append(item) or item for item in range(100)), threads=2
        )
        first = next(found)
        begun_then = len(begun)
        rest = list(found)

    assert [first, *rest] == list(range(1, 101))
    assert begun_then == 9
