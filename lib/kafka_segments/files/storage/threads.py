"""Do the same with many small things, in threads where they wait: where not, threads cost more."""

import os
import resource
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")
_MOST_A_TASK = 64
_TASKS_A_THREAD = 8
_AHEAD_OF_A_THREAD = 4
_OF_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # macOS tells of processes
_OF_SCHEDULER = "/proc/thread-self/schedstat"  # ns on a CPU, ns in the queue for one, how often
_MOST_BYTES = 128
_NS = 1e-9


class Watch:
    """Tells whether what this thread has done since is mostly waiting.

    Time without CPU is none by itself: on a busy machine other processes had it. Who waits for a
    disk or for an answer gives the CPU away of his own accord, and the kernel counts that, and how
    long a thread that could go on stood in the queue for a CPU.
    """

    def __init__(self) -> None:
        self._began, self._worked, self._waits = _now()
        self._queued = _queued_seconds()

    def was_waiting(self) -> bool:
        """Return it, of the time since this watch was made."""
        ended, worked, waits = _now()
        work = worked - self._worked
        idle = ended - self._began - work
        if waits == self._waits or idle <= work:
            return False
        return idle - (_queued_seconds() - self._queued) > work


def _now() -> tuple[float, float, int]:
    """Return the time, the CPU that this thread has had, and how often it gave the CPU away."""
    waits = resource.getrusage(_OF_THREAD).ru_nvcsw  # its CPU is as of the last tick
    return time.perf_counter(), time.thread_time(), waits


def _queued_seconds() -> float:
    """Return how long this thread has stood in the queue for a CPU; 0 where no kernel tells.

    Source: kernel.org, Scheduler Statistics, /proc/<pid>/schedstat.
    """
    try:
        file = os.open(_OF_SCHEDULER, os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(os.read(file, _MOST_BYTES).split()[1]) * _NS
    except (OSError, IndexError, ValueError):
        return 0.0
    finally:
        os.close(file)


def map_ahead(
    pool: Executor,
    function: Callable[[_Item], _Found],
    items: Iterable[_Item],
    *,
    threads: int,
) -> Iterator[_Found]:
    """Yield what a function returns of each item, in their order, by the threads of a pool.

    Each thread is at most four items ahead of who takes the results: neither items nor results of
    all are held at once, as ``Executor.map`` does.

    Raises:
        Exception: whatever the function raises.
    """
    begun: deque[Future[_Found]] = deque()
    for item in items:
        begun.append(pool.submit(function, item))
        if len(begun) > threads * _AHEAD_OF_A_THREAD:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def map_in_threads(
    function: Callable[[_Item], _Found], items: Sequence[_Item], *, threads: int
) -> Iterator[_Found]:
    """Yield what a function returns of each item, in their order.

    The calling thread takes them, one, one more, two, four and up to 64 at a time, as long as it
    waits no longer than it works: files in the page cache are read twice as fast so as by threads
    that wait for each other. The first one decides nothing: it may wait for what is loaded once.
    From there on threads take them, as many at a time, fewer where there would be less than eight
    takes for each thread.

    Raises:
        Exception: whatever the function raises.
    """
    yield from map(function, items[:1])
    done, size = 1, 1
    while done < len(items):
        watch = Watch()
        found = [function(item) for item in items[done : done + size]]
        waits = watch.was_waiting()
        done += len(found)
        yield from found
        if waits:
            break
        size = min(2 * size, _MOST_A_TASK)
    yield from _in_threads(function, items[done:], threads)


def _in_threads(
    function: Callable[[_Item], _Found], items: Sequence[_Item], threads: int
) -> Iterator[_Found]:
    if not items:
        return
    size = max(1, min(_MOST_A_TASK, len(items) // (threads * _TASKS_A_THREAD)))

    def of_some(start: int) -> list[_Found]:
        return [function(item) for item in items[start : start + size]]

    with ThreadPoolExecutor(threads) as pool:
        for found in map_ahead(pool, of_some, range(0, len(items), size), threads=threads):
            yield from found
