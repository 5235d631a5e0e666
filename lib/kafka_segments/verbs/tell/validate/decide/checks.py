"""What a check is: bounds on a measured column, with a severity. ``suites`` has all checks."""

from enum import StrEnum
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

KEYS_UNIQUE, ROWS_OF_KEY = "keys_unique", "rows_of_key"


class Severity(StrEnum):
    """How bad a failed check is; rows that fail a fatal one are not published."""

    FATAL = "fatal"
    WARNING = "warning"
    INFO = "info"


class Check(NamedTuple):
    """A check: the values of a measured column lie between two bounds, both included.

    A bound that is None does not count. Null passes: there is nothing to measure.
    """

    name: str
    column: str
    severity: Severity
    why: str
    least: int | None = None
    most: int | None = 0

    @property
    def failure(self) -> str:
        """The SQL that tells whether a row fails the check; never null."""
        bounds = (("<", self.least), (">", self.most))
        beyond = [f"{self.column} {sign} {bound}" for sign, bound in bounds if bound is not None]
        return f"coalesce({' OR '.join(beyond) or 'false'}, false)"

    def fails(self) -> Column:
        """Tell whether a row fails the check; never null."""
        return F.expr(self.failure)


class Suite(NamedTuple):
    """The checks of one table; ``keys`` are the columns that name a measured row.

    Two checks of a suite bound two columns.
    """

    table: str
    keys: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    has_measured_keys: bool = False
    """One of the checks tells whether keys are unique."""

    def all_checks(self) -> tuple[Check, ...]:
        """Return the checks; where none of them is about keys, first that a key has one row."""
        if self.has_measured_keys:
            return self.checks
        unique = Check(KEYS_UNIQUE, ROWS_OF_KEY, Severity.FATAL, "a key has one row", most=1)
        return (unique, *self.checks)


def failed_checks(checks: tuple[Check, ...], severity: Severity) -> Column:
    """Return the names of the checks of a severity that a row fails, as an array."""
    failed = [F.when(c.fails(), F.lit(c.name)) for c in checks if c.severity is severity]
    return F.array_compact(F.array(*failed))


def fails_any(checks: tuple[Check, ...], severity: Severity) -> Column:
    """Tell whether a row fails any check of a severity."""
    failing = [check.fails() for check in checks if check.severity is severity]
    return reduce(or_, failing, F.lit(False))
