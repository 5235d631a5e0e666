"""Columns written down as SQL mean what PySpark's own mean."""

from collections.abc import Callable
from enum import StrEnum
from types import ModuleType

from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as pyspark_functions
from pyspark.sql.types import LongType

from kafka_segments.tables import columns as F
from kafka_segments.tables.sql_columns import SqlColumn

_LEAST = -(2**63)
_ROWS = [
    (1, 5, None, "a,b", True, ("x", 7), [3, 1]),
    (1, _LEAST, 2**63 - 1, "it's $x ${y}", False, ("y", None), []),
    (2, None, -3, "back\\slash %d", None, None, None),
    (2, 0, 2, "", True, ("z", 1), [None, 0]),
]
_SCHEMA = (
    "k int, a long, b long, t string, c boolean, s struct<n: string, `of`: long>, l array<int>"
)
# The same column of either module of functions.
_BOTH: dict[str, Callable[[ModuleType], Column]] = {
    "brackets": lambda f: (f.col("a") + 1 - (f.col("k") - 2) * 3) / f.col("k"),
    "negative": lambda f: -f.col("k") - -5 + f.lit(-7) * 2,
    "logic": lambda f: ~(f.col("c") & (f.col("k") == 1)) | f.col("b").isNull() & f.col("c"),
    "not": lambda f: ~f.col("a").isNull() & ~(f.col("a") > 0) & ~f.col("c"),
    "compared": lambda f: (f.col("a") > 0) == f.col("c"),
    "null of logic": lambda f: ((f.col("a") > 0) | f.col("c")).isNotNull(),
    "equal or null": lambda f: f.col("a").eqNullSafe(f.col("b")),
    "among": lambda f: f.col("t").isin("", "it's $x ${y}", "back\\slash %d"),
    "between": lambda f: f.col("k").between(2, 2**40) | f.col("b").between(-3, -3),
    "extremes": lambda f: f.coalesce(f.when(f.col("k") == 2, f.lit(_LEAST)), f.lit(2**63 - 1)),
    "double": lambda f: f.col("k") / 2.5 + f.lit(1e-7),
    "cases": lambda f: f.when(f.col("k") > 1, "much").when(f.col("a") == 5, None).otherwise("$"),
    "open cases": lambda f: f.when(f.col("c"), f.col("a") + 1),
    "case as operand": lambda f: f.when(f.col("c"), 1).otherwise(0) + 1,
    "PySpark's last": lambda f: f.when(f.col("c"), "a").otherwise(pyspark_functions.col("t")),
    "PySpark's among cases": lambda f: (
        f.when(f.col("k") == 3, 1).when(f.col("c"), 2).when(pyspark_functions.lit(True), 3)
    ),
    "tests of texts": lambda f: (
        f.col("t").contains("'s $") | f.col("t").startswith("back\\") | f.col("t").endswith("b")
    ),
    "pattern": lambda f: f.col("t").rlike(r"^back\\[a-z]+ %d$"),
    "texts": lambda f: f.concat(f.lit("'\\"), "t", f.lit("\n${a}"), f.col("k").cast("string")),
    "words": lambda f: f.format_string("%d of %s %%", f.col("k"), f.col("t")),
    "joined": lambda f: f.concat_ws("$", "t", f.col("s.n")),
    "field": lambda f: f.struct("k", (f.col("a") > 0).alias("is so"))["is so"],
    "path": lambda f: f.col("s.of") + f.col("s")["of"],
    "element": lambda f: f.try_element_at("l", f.lit(-1)),
    "split": lambda f: f.array_contains(f.split("t", ","), "b"),
    "sizes": lambda f: f.size("l") + f.size(f.array()),
    "sums": lambda f: f.coalesce(f.try_add("a", "b"), f.try_subtract("a", f.lit(1)), f.lit(0)),
    "cast": lambda f: f.lit(None).cast(LongType()),
    "extracted": lambda f: f.regexp_extract("t", r"^(.*)\\.*$", 1),
    "greatest": lambda f: f.greatest(f.struct("k"), f.struct(f.lit(1).alias("k")))["k"],
    "function of PySpark": lambda f: f.transform("l", lambda one: one + f.col("k")),
    "PySpark's within": lambda f: f.when(pyspark_functions.col("c"), f.col("a")).otherwise(7),
    "PySpark's beside": lambda f: (f.col("k") > pyspark_functions.col("a")) & f.col("c"),
}


class _Word(StrEnum):
    NOTHING = ""


def test_columns_mean_what_pysparks_own_mean(spark: SparkSession) -> None:
    rows = spark.createDataFrame(_ROWS, _SCHEMA)

    ours = rows.select(*(make(F).alias(name) for name, make in _BOTH.items()))

    theirs = rows.select(*(make(pyspark_functions).alias(name) for name, make in _BOTH.items()))
    assert ours.schema == theirs.schema
    assert list(map(repr, ours.collect())) == list(map(repr, theirs.collect()))


def test_windows_mean_what_pysparks_own_mean(spark: SparkSession) -> None:
    rows = spark.createDataFrame(_ROWS, _SCHEMA)

    def windows(f: ModuleType, window: type) -> list[Column]:
        order = window.partitionBy("k").orderBy(f.desc("b"), f.col("a").isNull())
        every = window.partitionBy("k").rowsBetween(
            window.unboundedPreceding, window.unboundedFollowing
        )
        some = order.rowsBetween(-1, window.currentRow)
        return [
            f.lead("t").over(order),
            f.lag(f.col("a"), 1, -1).over(order),
            f.coalesce(f.sum("k").over(some), f.lit(0)) * 2,
            f.max(f.struct("a", "t")).over(every)["t"],
            f.row_number().over(order),
            f.count("*").over(some),
            f.last("b", ignorenulls=True).over(order.rowsBetween(window.unboundedPreceding, 0)),
            f.min("b").over(order.rowsBetween(1, 1)),
        ]

    def found(columns: list[Column]) -> list[str]:
        named = (column.alias(str(place)) for place, column in enumerate(columns))
        return sorted(map(repr, rows.select("t", *named).collect()))

    assert found(windows(F, F.Window)) == found(windows(pyspark_functions, Window))


def test_a_column_asks_spark_for_nothing_before_it_is_used() -> None:
    is_odd = (F.col("a.b") == _Word.NOTHING) | ~F.col("c").isin(1, 2)

    column = F.when(is_odd, F.max("d").over(F.Window.partitionBy("k"))).otherwise("it's")

    assert isinstance(column, SqlColumn)
    assert column.text == (
        "CASE WHEN `a`.`b` = '' OR NOT `c` IN (1, 2)"
        " THEN (max(`d`) OVER (PARTITION BY `k`)) ELSE 'it\\'s' END"
    )
