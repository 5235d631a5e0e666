"""Sources below which nothing, or too little, is left: their disk may not be mounted."""

from collections.abc import Iterable
from typing import NamedTuple

from kafka_segments.errors import VanishedError

MOST_VANISHED = 50
"""Percent of what is known below a source that may be gone with its whole logs."""


class Lost(NamedTuple):
    """How much is known below a source, and how much of it lies in logs that are gone."""

    source: str
    known: int
    lost: int

    def percent(self) -> float:
        """Return the share of what is lost."""
        return 100 * self.lost / self.known if self.known else 0.0


def no_segments(source: str) -> str:
    """Return in words that a source has no segment, and what lies there instead."""
    from kafka_segments.files.folders.foreign_names import foreign_files_below  # noqa: PLC0415  it loads numpy

    there = foreign_files_below(source)
    if there is not None:
        return f"no segments under {source}: {there}"
    return (
        f"no segments under {source}: is it mounted, and a log directory, a folder of several or a"
        " partition's folder?"
    )


def refuse_lost(counted: Iterable[Lost], *, most_percent: int, what: str) -> None:
    """Refuse to go on where more is gone below a source than is allowed.

    ``what`` is counted.

    Raises:
        VanishedError: names the source that has lost most.
    """
    worst = max(counted, key=Lost.percent, default=None)
    if worst is not None and worst.percent() > most_percent:
        raise VanishedError(worst.source, worst.lost, worst.known, what, most_percent)
