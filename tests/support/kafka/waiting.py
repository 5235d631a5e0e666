"""Waiting for what a broker does by itself."""

import time
from collections.abc import Callable


def wait_until(
    holds: Callable[[], bool], what: str, *, patience_seconds: float = 60.0, step: float = 0.3
) -> None:
    """Ask again and again until something holds; fails if it still does not in the end."""
    end = time.monotonic() + patience_seconds
    while not holds():
        assert time.monotonic() < end, f"still not: {what}"
        time.sleep(step)
