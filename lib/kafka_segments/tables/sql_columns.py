# ruff: noqa: D102, N802, N803, N806 (methods have the names and the meaning that PySpark gives them)
"""Columns that are written down as SQL, and handed to Spark as one text each.

PySpark asks the JVM for each name, literal and operator of a column, four times as a rule. A
decision has thousands of them, and would ask for longer than Spark computes. The functions and
operators here give columns of PySpark that mean the same. What has no words here is left to
PySpark, and so is every column of a client of Spark Connect, who asks nobody.

Source: Spark's SqlBaseParser.g4, rules booleanExpression, valueExpression, primaryExpression.
"""

import math
from collections.abc import Callable
from enum import Enum, IntEnum
from functools import reduce
from itertools import starmap
from typing import Any

from pyspark.sql import Column, WindowSpec
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as spark
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.window import WindowSpec as ClassicWindowSpec
from pyspark.sql.utils import is_remote

_LONGEST = 63  # bits of a long, but for its sign


class Binds(IntEnum):
    """How strongly the operator of a text binds; one that binds less is put in brackets."""

    NAMED, OR, AND, NOT, COMPARED, ADDED, MULTIPLIED, PRIMARY = range(8)


class SqlColumn(ClassicColumn):
    """A column as text. The JVM learns of it when PySpark asks for the JVM's own."""

    def __init__(self, text: str, binds: Binds = Binds.PRIMARY) -> None:
        self.text = text
        self.binds = binds

    def __getattr__(self, item: str) -> Any:
        if item != "_jc":
            return super().__getattr__(item)
        self._jc = spark.expr(self.text)._jc
        return self._jc

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.text, self.binds)

    def __neg__(self) -> Column:
        return SqlColumn(f"negative({self.text})") if self.binds else super().__neg__()

    def __invert__(self) -> Column:
        text = text_of(self, Binds.NOT)
        return super().__invert__() if text is None else SqlColumn(f"NOT {text}", Binds.NOT)

    def isNull(self) -> Column:
        text = text_of(self, Binds.ADDED)
        return super().isNull() if text is None else SqlColumn(f"{text} IS NULL", Binds.NOT)

    def isNotNull(self) -> Column:
        text = text_of(self, Binds.ADDED)
        return super().isNotNull() if text is None else SqlColumn(f"{text} IS NOT NULL", Binds.NOT)

    def isin(self, *values: Any) -> Column:
        text, options = text_of(self, Binds.ADDED), texts_of(values)
        if text is None or not options:
            return super().isin(*values)
        return SqlColumn(f"{text} IN ({', '.join(options)})", Binds.NOT)

    def alias(self, *alias: str, **kwargs: Any) -> Column:
        if len(alias) != 1 or kwargs or self.binds == Binds.NAMED:
            return super().alias(*alias, **kwargs)
        return SqlColumn(f"{self.text} AS {_quoted(alias[0])}", Binds.NAMED)

    def cast(self, dataType: Any) -> Column:
        if not isinstance(dataType, str):
            dataType = dataType.simpleString()
        if self.binds == Binds.NAMED:
            return super().cast(dataType)
        return SqlColumn(f"CAST({self.text} AS {dataType})")

    def over(self, window: WindowSpec) -> Column:
        if not isinstance(window, SqlWindow) or window.text is None:
            return super().over(window)
        return SqlColumn(f"({self.text} OVER ({window.text}))")

    def __getitem__(self, k: Any) -> Column:
        base, key = text_of(self, Binds.PRIMARY), text_of(k, Binds.OR)
        if base is None or key is None:
            return super().__getitem__(k)
        return SqlColumn(f"{base}[{key}]")


class SqlCases(SqlColumn):
    """``CASE WHEN … END``, to which more cases can be added."""

    def __init__(self, cases: tuple[tuple[Column, Any], ...]) -> None:
        self._cases = cases
        self._whens = "".join(filter(None, starmap(case_of, cases)))
        super().__init__(f"CASE{self._whens} END")

    def when(self, condition: Column, value: Any) -> Column:
        if case_of(condition, value) is None:
            return self._of_spark().when(condition, value)
        return SqlCases((*self._cases, (condition, value)))

    def otherwise(self, value: Any) -> Column:
        text = text_of(value, Binds.OR)
        if text is None:
            return self._of_spark().otherwise(value)
        return SqlColumn(f"CASE{self._whens} ELSE {text} END")

    def _of_spark(self) -> Column:
        """Return the same as PySpark makes it, which adds cases to no other column."""
        first, *more = self._cases
        return reduce(lambda made, case: made.when(*case), more, spark.when(*first))


class SqlDescending(SqlColumn):
    """The descending order of a column, nulls last."""

    def __init__(self, column: SqlColumn) -> None:
        super().__init__(f"{column.text} DESC", Binds.NAMED)
        self._column = column

    def __getattr__(self, item: str) -> Any:
        if item == "_jc":  # as no expression has an order
            self._jc = spark.desc(self._column)._jc
            return self._jc
        return super().__getattr__(item)


def _operator(
    sign: str, method: str, left: Binds, binds: Binds, right: Binds
) -> Callable[[Any, Any], Column]:
    """Return the method of an operator, which is PySpark's ``method`` where a side has no text."""

    def operate(self: SqlColumn, other: Any) -> Column:
        first, second = text_of(self, left), text_of(other, right)
        if first is None or second is None:
            found: Column = getattr(ClassicColumn, method)(self, other)
            return found
        return SqlColumn(f"{first} {sign} {second}", binds)

    return operate


def _test(name: str) -> Callable[[Any, Any], Column]:
    """Return the method of a test of texts, which is a function of the same name."""

    def operate(self: SqlColumn, other: Any) -> Column:
        texts = texts_of((self, other))
        if texts is None:
            found: Column = getattr(ClassicColumn, name)(self, other)
            return found
        return SqlColumn(f"{name}({', '.join(texts)})")

    return operate


def _with_operators() -> None:
    either, both, compared, added = Binds.OR, Binds.AND, Binds.COMPARED, Binds.ADDED
    multiplied, primary = Binds.MULTIPLIED, Binds.PRIMARY
    for method, sign, left, binds, right in (
        ("__or__", "OR", either, either, both),
        ("__and__", "AND", both, both, Binds.NOT),
        ("__eq__", "=", added, compared, added),
        ("__ne__", "!=", added, compared, added),
        ("__lt__", "<", added, compared, added),
        ("__le__", "<=", added, compared, added),
        ("__gt__", ">", added, compared, added),
        ("__ge__", ">=", added, compared, added),
        ("eqNullSafe", "<=>", added, compared, added),
        ("__add__", "+", added, added, multiplied),
        ("__sub__", "-", added, added, multiplied),
        ("__mul__", "*", multiplied, multiplied, primary),
        ("__truediv__", "/", multiplied, multiplied, primary),
    ):
        setattr(SqlColumn, method, _operator(sign, method, left, binds, right))
    for name in ("contains", "endswith", "rlike", "startswith"):
        setattr(SqlColumn, name, _test(name))


_with_operators()


class SqlWindow(ClassicWindowSpec):
    """A window as text, as ``SqlColumn`` is a column as text."""

    def __new__(cls, *_: Any) -> "SqlWindow":
        return object.__new__(cls)

    def __init__(
        self, keys: tuple[Any, ...], order: tuple[Any, ...] = (), rows: tuple[int, ...] = ()
    ) -> None:
        self._given = (keys, order, rows)
        parted, ordered = texts_of(keys, are_names=True), texts_of(order, are_names=True)
        self.text = None
        if parted is not None and ordered is not None:
            parts = [f"PARTITION BY {', '.join(parted)}" if parted else ""]
            parts += [f"ORDER BY {', '.join(ordered)}" if ordered else ""]
            parts += [f"ROWS BETWEEN {' AND '.join(map(_bound, rows))}" if rows else ""]
            self.text = " ".join(part for part in parts if part)

    def __getattr__(self, item: str) -> Any:
        if item != "_jspec":
            raise AttributeError(item)
        keys, order, rows = self._given
        window = SparkWindow.partitionBy(*keys)
        window = window.orderBy(*order) if order else window
        window = window.rowsBetween(*rows) if rows else window
        self._jspec = window._jspec  # type: ignore[attr-defined]
        return self._jspec

    def orderBy(self, *cols: Any) -> WindowSpec:
        keys, _, rows = self._given
        return SqlWindow(keys, cols, rows)

    def rowsBetween(self, start: int, end: int) -> WindowSpec:
        keys, order, _ = self._given
        return SqlWindow(keys, order, (start, end))


def col(name: str) -> Column:
    """Return a column by its name, or a field of it by a path with dots."""
    if is_remote() or "`" in name or "*" in name[1:]:
        return spark.col(name)
    if name == "*":
        return SqlColumn(name)
    return SqlColumn(".".join(map(_quoted, name.split("."))))


def case_of(condition: Column, value: Any) -> str | None:
    """Return a case of ``CASE … END``; None: it has no text."""
    holds, result = text_of(condition, Binds.OR), text_of(value, Binds.OR)
    if is_remote() or not isinstance(condition, Column) or holds is None or result is None:
        return None
    return f" WHEN {holds} THEN {result}"


def text_of(value: Any, least: Binds) -> str | None:
    """Return a column or value as an operand; None: it has no text."""
    if not isinstance(value, Column):
        return literal(value)
    if not isinstance(value, SqlColumn) or (value.binds == Binds.NAMED and least > Binds.NAMED):
        return None
    return value.text if value.binds >= least else f"({value.text})"


def texts_of(values: tuple[Any, ...], *, are_names: bool = False) -> list[str] | None:
    """Return values, or columns by name, as a list; None: one of them has no text."""
    least = Binds.NAMED if are_names else Binds.OR
    texts = [text_of(named(value) if are_names else value, least) for value in values]
    found = [text for text in texts if text is not None]
    return found if len(found) == len(texts) else None


def named(argument: Any) -> Any:
    """Return the column that a text names; anything else stays as it is."""
    return col(argument) if isinstance(argument, str) else argument


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def literal(value: Any) -> str | None:
    """Return a value as SQL; None: it has no text here."""
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A dollar sign may begin a variable, which Spark puts in before it reads quotes.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
        return f"'{escaped}'"
    if isinstance(value, int) and -(1 << _LONGEST) <= value < 1 << _LONGEST:
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, float) and math.isfinite(value) and value >= 0:
        return f"{value!r}D"
    return None


def _bound(rows: int) -> str:
    if rows <= SparkWindow._PRECEDING_THRESHOLD:
        return "UNBOUNDED PRECEDING"
    if rows >= SparkWindow._FOLLOWING_THRESHOLD:
        return "UNBOUNDED FOLLOWING"
    if rows == 0:
        return "CURRENT ROW"
    return f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"
