"""Ranges of offsets, for the question whether a batch lies in one of many."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator


class Spans:
    """Ranges from an offset to before another, in any order; those that overlap or meet are one."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._untils: list[int] = []
        for start, until in sorted(spans):
            if self._untils and start <= self._untils[-1]:
                self._untils[-1] = max(self._untils[-1], until)
            else:
                self._starts.append(start)
                self._untils.append(until)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges, ascending."""
        return zip(self._starts, self._untils, strict=True)

    def meets(self, base: int, last: int) -> bool:
        """Tell whether offsets ``base`` to ``last`` share one with a range."""
        at = bisect_right(self._untils, base)
        return at < len(self._starts) and self._starts[at] <= last
