"""Which of many values of a parameter CI tries; the others are long."""

from collections.abc import Iterable
from typing import Any

import pytest


def long_but(values: Iterable[Any], *in_ci: Any) -> list[Any]:
    """Return the values as parameters of which all but ``in_ci`` are marked long.

    Raises:
        ValueError: one that CI is to try is not among the values.
    """
    every = list(values)
    for value in in_ci:
        every.index(value)
    return [
        value if value in in_ci else pytest.param(value, marks=pytest.mark.long) for value in every
    ]
