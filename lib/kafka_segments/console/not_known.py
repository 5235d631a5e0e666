"""What a verb says of an answer that is not known, and that its exit status has to tell."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from kafka_segments.console.json_log import WARNING
from kafka_segments.console.lines import say

if TYPE_CHECKING:
    from kafka_segments.engine.derived.metadata_in_tables import MetadataProblem

_TOLD: ContextVar[list[str] | None] = ContextVar("_TOLD", default=None)


@contextmanager
def noting() -> Iterator[list[str]]:
    """Give the list that ``tell_not_known`` adds to meanwhile."""
    told: list[str] = []
    token = _TOLD.set(told)
    try:
        yield told
    finally:
        _TOLD.reset(token)


def say_not_known(line: str) -> None:
    """Say on stderr what is not known, where the verb's status has it already."""
    say(line, level=WARNING, not_known=True)


def tell_not_known(lines: Iterable[str]) -> None:
    """Say on stderr, each line once, what is not known; the verb then ends with findings."""
    told = _TOLD.get()
    for line in lines:
        if told is None or line not in told:
            say_not_known(line)
        if told is not None:
            told.append(line)


def tell_metadata_problems(
    warehouse: str, *, cluster: str | None = None, at_offset: Mapping[str, int] | None = None
) -> "list[MetadataProblem]":
    """Say what the histories of metadata that an answer is taken from lack, and return it.

    ``warehouse``: URI of the tables; ``cluster``: of this one alone; ``at_offset``: as of which
    offset of its metadata log a cluster is asked, by its name; else as of the end.
    """
    from kafka_segments.engine.derived.metadata_in_tables import (  # noqa: PLC0415
        NoMetadataError,
        metadata_problems,
    )

    asked = at_offset or {}
    try:
        problems = metadata_problems(warehouse)
    except NoMetadataError as error:
        tell_not_known((f"{warehouse}: {error}: what histories of metadata lack is not known",))
        return []
    told = [
        problem
        for problem in problems
        if cluster in (None, problem.cluster) and problem.concerns(asked.get(problem.cluster))
    ]
    tell_not_known(map(str, told))
    return told
