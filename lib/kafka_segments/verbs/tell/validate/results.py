"""What a validation counted, and what Great Expectations made of it."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_segments.verbs.tell.validate.decide.checks import Severity


class CheckCounts(NamedTuple):
    """How many rows of a table fail a check.

    ``measured_rows`` leaves out those where there is nothing to measure. ``examples`` are keys and
    value of at most 20 failing rows.
    """

    checked_rows: int
    measured_rows: int
    failed_rows: int
    examples: list[dict[str, Any]]


class CheckResult(NamedTuple):
    """The result of an expectation; ``examples`` are keys and value of at most 20 failing rows."""

    table: str
    check: str
    severity: Severity
    why: str
    checked_rows: int
    failed_rows: int
    examples: list[dict[str, Any]]


def example_text(example: Mapping[str, Any]) -> str:
    """Write an example as JSON."""
    return json.dumps(dict(example), default=str, sort_keys=False)
