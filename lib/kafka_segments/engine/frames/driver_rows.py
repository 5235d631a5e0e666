"""Rows of which the driver may have the values: chosen, ordered and looked at without a query."""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.engines import sorted_in_tasks
from kafka_segments.engine.frames.local_rows import (
    arrow_schema,
    computed_rows,
    frame_of_rows,
    rows_in_driver,
)
from kafka_segments.engine.limits import MOST_UNLIKE


def with_values(rows: DataFrame, allowed: Mapping[str, Collection[Any]]) -> DataFrame:
    """Return the rows whose columns have one of some values each."""
    here = rows_in_driver(rows)
    if here is None:
        for name, values in allowed.items():
            rows = rows.where(F.col(name).isin(*values))
        return rows
    for name, values in allowed.items():
        options = pa.array(values, here.schema.field(name).type)
        here = here.filter(pc.is_in(here[name], value_set=options))
    return frame_of_rows(rows.sparkSession, here, rows.schema)


def where_set(rows: DataFrame, column: str) -> DataFrame:
    """Return the rows that have a value in a column."""
    here = rows_in_driver(rows)
    if here is None:
        return rows.where(F.col(column).isNotNull())
    return frame_of_rows(rows.sparkSession, here.filter(here[column].is_valid()), rows.schema)


def by_keys(rows: DataFrame, keys: Sequence[str], *, order: Sequence[str | Column]) -> DataFrame:
    """Bring the rows of equal keys to one task each, and order the rows of every task."""
    here = rows_in_driver(rows)
    names = [name for name in order if isinstance(name, str)]
    if here is not None and len(names) == len(order):
        ordered = here.sort_by([(name, "ascending", "at_start") for name in names])
        return frame_of_rows(rows.sparkSession, ordered, rows.schema)
    return sorted_in_tasks(rows, keys, order=order)


def are_few(*tables: pa.Table) -> bool:
    """Tell whether a build works on rows that are left of a larger listing as on few."""
    return max(map(len, tables)) <= MOST_UNLIKE


def is_surely_empty(rows: DataFrame) -> bool:
    """Tell whether it is known that there are no rows; nothing is computed to find out."""
    here = rows_in_driver(rows)
    return here is not None and len(here) == 0


def is_surely_null(rows: DataFrame, column: str) -> bool:
    """Tell whether a column is known to be null in all rows; nothing is computed to find out."""
    here = rows_in_driver(rows)
    return here is not None and here[column].null_count == len(here)


def surely_go_on(rows: DataFrame, keys: Sequence[str], *, begin: str, end: str, gone: str) -> bool:
    """Tell whether ranges are known to go on one behind another; nothing is computed to find out.

    ``begin``, ``end``: a range's columns; ``gone`` has a value in rows that do not count. Only
    ranges with equal ``keys`` go on one behind another.
    """
    here = rows_in_driver(rows)
    if here is None:
        return False
    here = here.filter(here[gone].is_null())
    ordered = here.sort_by([(name, "ascending") for name in (*keys, begin)])
    front, behind = ordered.slice(0, max(len(here) - 1, 0)), ordered.slice(1)
    are_same = reduce(pc.and_, (pc.equal(front[key], behind[key]) for key in keys))
    goes_on = pc.fill_null(pc.less_equal(behind[begin], front[end]), False)
    return not pc.any(pc.and_(are_same, pc.invert(goes_on))).as_py()


def as_arrow(rows: DataFrame) -> pa.Table:
    """Return few rows as a table of Arrow."""
    return computed_rows(rows)[0]


def have_same_few(
    rows: DataFrame, others: DataFrame, columns: StructType, *, keys: Sequence[str]
) -> bool:
    """Tell whether few rows are the same in ``columns``, in whichever order; ``keys`` order them.

    Rows with equal keys in another order count as others.
    """
    schema, order = arrow_schema(columns), [(key, "ascending") for key in keys]
    try:
        one, other = (
            as_arrow(of).select(schema.names).cast(schema).sort_by(order) for of in (rows, others)
        )
    except (pa.ArrowException, KeyError):  # null where none may be, or a column is missing
        return False
    return bool(one.equals(other))


def as_dicts(rows: DataFrame, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of few rows as values, nested ones as dicts."""
    here = rows_in_driver(rows)
    if here is None:
        return [row.asDict(recursive=True) for row in rows.select(*columns).collect()]
    found: list[dict[str, Any]] = here.select(list(columns)).to_pylist()
    return found


def distinct_values(rows: DataFrame, column: str, *, most: int) -> list[Any]:
    """Return the distinct values of a column; if there are more than ``most``, at least so many."""
    here = rows_in_driver(rows)
    if here is None:
        return [row[0] for row in rows.select(column).distinct().take(most)]
    found: list[Any] = here[column].unique().to_pylist()
    return found


def count_set(rows: DataFrame, columns: Sequence[str]) -> dict[str, int]:
    """Count for each of some columns the rows in which it has a value."""
    here = rows_in_driver(rows)
    if here is not None:
        return {name: len(here) - here[name].null_count for name in columns}
    counts = [F.count(name).alias(name) for name in columns]
    found: dict[str, int] = rows.agg(*counts).collect()[0].asDict()
    return found


def least_value(rows: DataFrame, column: str) -> Any:
    """Return the least value of a column; None: there is none."""
    here = rows_in_driver(rows)
    if here is None:
        return rows.agg(F.min(column)).collect()[0][0]
    return pc.min(here[column]).as_py()
