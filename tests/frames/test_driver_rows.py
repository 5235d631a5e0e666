"""What is done with rows that the driver has is what Spark does with others."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.driver_rows import (
    as_arrow,
    as_dicts,
    by_keys,
    count_set,
    distinct_values,
    is_surely_null,
    least_value,
    surely_go_on,
    where_set,
    with_values,
)
from kafka_segments.engine.frames.local_rows import (
    computed_rows,
    frame_of_rows,
    local_rows,
    rows_in_driver,
)
from kafka_segments.engine.frames.row_types import row_fields

ROWS = [
    ("b", 1, 7, ("x", [1, 2])),
    ("a", 0, None, None),
    ("b", 0, -(2**63), ("y", [])),
    (None, 1, 2**63 - 1, ("z", None)),
    ("a", 1, 7, ("x", [3])),
]
COLUMNS = "topic string, partition int, base_offset long, meta struct<name: string, of: array<int>>"


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """The same rows as Spark computes them and as the driver has them."""
    rows = spark.createDataFrame(ROWS, COLUMNS).repartition(3, "topic")
    return rows, frame_of_rows(spark, *computed_rows(rows))


@pytest.mark.parametrize(
    "choose",
    [
        lambda rows: with_values(rows, {"topic": ("a", "b"), "partition": (0,)}),
        lambda rows: with_values(rows, {"topic": ("none",)}),
        lambda rows: with_values(rows, {}),
        lambda rows: where_set(rows, "base_offset"),
    ],
    ids=["some", "none", "all", "set"],
)
def test_the_same_rows_are_chosen(
    both: tuple[DataFrame, DataFrame], choose: Callable[[DataFrame], DataFrame]
) -> None:
    by_spark, here = map(choose, both)

    assert rows_in_driver(here) is not None
    assert sorted(map(str, here.collect())) == sorted(map(str, by_spark.collect()))


def test_rows_of_equal_keys_come_to_one_task_in_order(both: tuple[DataFrame, DataFrame]) -> None:
    order = ("topic", "partition", "base_offset")
    by_spark, here = (by_keys(rows, ("topic",), order=order) for rows in both)

    of_tasks = by_spark.rdd.glom().collect()
    topics = [{row["topic"] for row in rows} for rows in of_tasks]
    assert sum(map(len, topics)) == len(set().union(*topics))
    assert all(rows == sorted(rows, key=_nulls_first) for rows in of_tasks)
    assert here.collect() == sorted(here.collect(), key=_nulls_first)
    with few_rows(by_spark.sparkSession):
        (one,) = by_keys(both[0], ("topic",), order=order).rdd.glom().collect()
    assert one == here.collect()


def _nulls_first(row: Any) -> list[tuple[bool, Any]]:
    return [(row[name] is not None, row[name]) for name in ("topic", "partition", "base_offset")]


def test_the_same_values_are_found(both: tuple[DataFrame, DataFrame]) -> None:
    for rows in both:
        assert set(distinct_values(rows, "topic", most=9)) == {"a", "b", None}
        assert len(distinct_values(rows, "topic", most=3)) == 3
        assert least_value(rows, "base_offset") == -(2**63)
        assert least_value(with_values(rows, {"topic": ("none",)}), "base_offset") is None
        found = as_dicts(with_values(rows, {"topic": ("b",)}), ("base_offset", "meta"))
        assert sorted(found, key=str) == [
            {"base_offset": -(2**63), "meta": {"name": "y", "of": []}},
            {"base_offset": 7, "meta": {"name": "x", "of": [1, 2]}},
        ]
        assert len(as_arrow(rows)) == len(ROWS)
        set_in = {"topic": 4, "partition": 5, "base_offset": 4}
        assert count_set(rows, tuple(set_in)) == set_in


def test_what_the_driver_has_not_is_not_known_to_be_null(
    both: tuple[DataFrame, DataFrame],
) -> None:
    by_spark, here = (with_values(rows, {"topic": ("a",), "partition": (0,)}) for rows in both)

    assert is_surely_null(here, "meta")
    assert not is_surely_null(here, "topic")
    assert not is_surely_null(by_spark, "meta")


def test_ranges_surely_go_on_only_where_the_driver_has_all_of_them(spark: SparkSession) -> None:
    columns = StructType(row_fields("log string, first long, behind long, gone long"))
    rows = [("a", 10, 20, None), ("a", 0, 10, None), ("b", 50, 60, None)]

    def surely(*more: tuple[str, int, int | None, int | None]) -> bool:
        here = local_rows(spark, [*rows, *more], columns)
        return surely_go_on(here, ["log"], begin="first", end="behind", gone="gone")

    by_spark = local_rows(spark, rows, columns).where("first >= 0")
    assert surely(("b", 90, 95, 1))
    assert not surely(("a", 21, 30, None))
    assert not surely(("a", 20, None, None), ("a", 30, 40, None))
    assert not surely_go_on(by_spark, ["log"], begin="first", end="behind", gone="gone")
