"""Findings that differ by their place alone are one, with a count and an example."""

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

NUMBERS = r"\d+"
"""What differs in the words of findings that are alike."""
_T = TypeVar("_T")
_NUMBERS = re.compile(NUMBERS)


def alike(found: Iterable[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    """Put together what has the same key, in the order of the first of each."""
    groups: dict[Hashable, list[_T]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def without_numbers(text: str) -> str:
    """Return the words of a finding without offsets and sizes, which alike ones differ in."""
    return _NUMBERS.sub("#", text)


def counted(count: int, first: str) -> str:
    """Return the line of findings that are alike: how many there are, and the first."""
    return first if count == 1 else f"{count} such, e.g. {first}"
