"""How many ranges of an object are fetched at once: as many as bring more, within a budget."""

import math
from functools import lru_cache
from statistics import median
from threading import Lock

LARGEST_READ_BYTES = 8 * 1024 * 1024
MOST_AT_ONCE = 32
MOST_BYTES = 128 * 1024 * 1024
"""Of a process's memory for ranges: those that come, those that wait for one before them, and what
is kept of those that were read."""

MOST_ASKED_BYTES = 2 * MOST_BYTES
"""Of these, and of ranges that were asked for and have not come: those need no memory yet."""

_FIRST = 8  # one connection gives less than a task can take
_GAIN = 1.1  # in bytes a second, for more ranges; less is noise
_HELD = 8  # measures until more ranges are tried again


class Concurrency:
    """Finds the number of ranges at once from the time that each takes; a store's readers share it.

    1. It starts at eight, and doubles while that brings a tenth more bytes a second: while ranges
       do not take as much longer as there are more of them.
    2. Where they do, it goes back, and tries again after some measures.
    """

    def __init__(self) -> None:
        self.at_once = _FIRST
        self._seconds: list[float] = []
        self._before, self._seconds_before = _FIRST, math.inf
        self._held = 0
        self._lock = Lock()

    def took(self, seconds: float, *, at_once: int) -> None:
        """Take the time of a range of the largest size, and how many were under way with it.

        One among another number of ranges than the present says nothing. A measure is the median of
        as many as that number: some take long for reasons of their own.
        """
        with self._lock:
            if at_once != self.at_once:
                return
            self._seconds.append(seconds)
            if len(self._seconds) >= at_once:
                self._decide(median(self._seconds))
                self._seconds.clear()

    def _decide(self, seconds: float) -> None:
        if self._held:
            self._held -= 1
            if not self._held:
                self._try_more(seconds)
        elif self.at_once * self._seconds_before >= _GAIN * self._before * seconds:
            self._try_more(seconds)
        else:
            self.at_once, self._held = self._before, _HELD

    def _try_more(self, seconds: float) -> None:
        self._before, self._seconds_before = self.at_once, seconds
        self.at_once = min(2 * self.at_once, MOST_AT_ONCE)


@lru_cache(maxsize=64)
def concurrency_of(store: str) -> Concurrency:
    """Return the one that this process's readers of a store share."""
    del store  # what is kept is found by it
    return Concurrency()
