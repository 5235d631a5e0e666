"""Findings that differ by their place alone are one, with a count and an example."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_T = TypeVar("_T")


def alike(found: Iterable[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """Put together what has the same key, in the order of the first of each."""
    groups: dict[Hashable, list[_T]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())
