"""Do the same with many small things, in threads where they wait: where not, threads cost more."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")
_MOST_A_TASK = 64
_TASKS_A_THREAD = 8


def map_in_threads(
    function: Callable[[_Item], _Found], items: Sequence[_Item], *, threads: int
) -> Iterator[_Found]:
    """Yield what a function returns of each item, in their order.

    The calling thread takes them, one, two, four and up to 64 at a time, as long as it waits no
    longer than it works: files in the page cache are read twice as fast so as by threads that wait
    for each other. From there on threads take them, as many at a time, fewer where there would be
    less than eight takes for each thread.

    Raises:
        Exception: whatever the function raises.
    """
    done, size = 0, 1
    while done < len(items):
        began, worked = time.perf_counter(), time.thread_time()
        found = [function(item) for item in items[done : done + size]]
        work = time.thread_time() - worked
        waits = time.perf_counter() - began - work > work
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
        for found in pool.map(of_some, range(0, len(items), size)):
            yield from found
