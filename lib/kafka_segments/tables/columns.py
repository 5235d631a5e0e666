# ruff: noqa: N802, N815 (names as PySpark gives them)
"""The functions of PySpark whose columns are written down as SQL, see ``sql_columns``.

``from kafka_segments.tables import columns as F`` takes the place of ``pyspark.sql.functions``.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, WindowSpec
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as spark
from pyspark.sql.utils import is_remote

from kafka_segments.tables import sql_columns
from kafka_segments.tables.sql_columns import (
    Binds,
    SqlCases,
    SqlColumn,
    SqlDescending,
    SqlWindow,
    case_of,
    literal,
    named,
    text_of,
)


class Window:
    """``pyspark.sql.Window``, as far as it is needed."""

    unboundedPreceding = SparkWindow.unboundedPreceding
    unboundedFollowing = SparkWindow.unboundedFollowing
    currentRow = SparkWindow.currentRow

    @staticmethod
    def partitionBy(*cols: Any) -> WindowSpec:
        """Return a window of the rows with equal values."""
        return SparkWindow.partitionBy(*cols) if is_remote() else SqlWindow(cols)


def lit(value: Any) -> Column:
    """Return a literal; a column stays as it is."""
    text = None if is_remote() or isinstance(value, Column) else literal(value)
    return spark.lit(value) if text is None else SqlColumn(text)


def when(condition: Column, value: Any) -> Column:
    """Return a column with ``value`` where the condition holds, which can be added to."""
    if case_of(condition, value) is None:
        return spark.when(condition, value)
    return SqlCases(((condition, value),))


def desc(name: Any) -> Column:
    """Return the descending order of a column, nulls last."""
    column = named(name)
    return SqlDescending(column) if isinstance(column, SqlColumn) else spark.desc(name)


def _function(
    name: str, *, values_at: tuple[int, ...] = (), takes_names: bool = False
) -> Callable[..., Column]:
    """Return a function of Spark SQL.

    ``values_at``: which arguments are values; texts among the others name columns.
    ``takes_names``: its arguments may have an alias.
    """
    of_spark: Callable[..., Column] = getattr(spark, name)
    least = Binds.NAMED if takes_names else Binds.OR

    def call(*arguments: Any) -> Column:
        texts = [
            text_of(argument if place in values_at else named(argument), least)
            for place, argument in enumerate(arguments)
        ]
        given = [text for text in texts if text is not None]
        if is_remote() or len(given) < len(texts):
            return of_spark(*arguments)
        return SqlColumn(f"{name}({', '.join(given)})")

    call.__doc__ = f"Return ``pyspark.sql.functions.{name}`` of the arguments."
    return call


broadcast = spark.broadcast
col = sql_columns.col
array = _function("array")
array_compact = _function("array_compact")
array_contains = _function("array_contains", values_at=(1,))
bool_and = _function("bool_and")
coalesce = _function("coalesce")
concat = _function("concat")
concat_ws = _function("concat_ws", values_at=(0,))
count = _function("count")
count_if = _function("count_if")
floor = _function("floor")
format_string = _function("format_string", values_at=(0,))
greatest = _function("greatest")
lag = _function("lag", values_at=(1, 2))
lead = _function("lead", values_at=(1, 2))
least = _function("least")
max = _function("max")
min = _function("min")
nullif = _function("nullif")
regexp_extract = _function("regexp_extract", values_at=(1, 2))
row_number = _function("row_number")
size = _function("size")
split = _function("split", values_at=(1, 2))
struct = _function("struct", takes_names=True)
sum = _function("sum")
timestamp_millis = _function("timestamp_millis")
try_sum = _function("try_sum")
try_add = _function("try_add")
try_divide = _function("try_divide")
try_element_at = _function("try_element_at")
try_subtract = _function("try_subtract")


def __getattr__(name: str) -> Callable[..., Column]:
    """Return PySpark's own function where there is none here."""
    of_spark: Callable[..., Column] = getattr(spark, name)
    return of_spark
