"""Sums and differences of longs that cannot fail a query: they stop at the end of a long.

Anyone may have written the files that offsets and timestamps come from, and Spark fails the whole
query if one row overflows. The sums and differences are compared with limits. The least and the
greatest long are on the right side of all limits.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

LEAST, MOST = -(2**63), 2**63 - 1


def _long(value: Column | str | int) -> Column:
    return (F.lit(value) if isinstance(value, int) else _column(value)).cast("long")


def _column(value: Column | str) -> Column:
    return F.col(value) if isinstance(value, str) else value


def plus(left: Column | str | int, right: Column | str | int) -> Column:
    """Add two longs; the sum is null if one of them is."""
    first, second = _long(left), _long(right)
    beyond = F.when(second < 0, F.lit(LEAST)).when(second >= 0, F.lit(MOST))
    return F.coalesce(F.try_add(first, second), F.when(first.isNotNull(), beyond))


def total(values: Column | str) -> Column:
    """Sum up longs of a group, none of which should be negative; the sum is null if all are."""
    values = _column(values)
    return F.coalesce(F.try_sum(values), F.when(F.count(values) > 0, F.lit(MOST)))


def minus(left: Column | str | int, right: Column | str | int) -> Column:
    """Subtract two longs; the difference is null if one of them is."""
    first, second = _long(left), _long(right)
    beyond = F.when(first < second, F.lit(LEAST)).when(first >= second, F.lit(MOST))
    return F.coalesce(F.try_subtract(first, second), beyond)
