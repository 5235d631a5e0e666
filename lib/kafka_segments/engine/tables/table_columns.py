"""The columns of a table, chosen by SQL: a call to the JVM for each, where PySpark makes five."""

from pyspark.sql.types import ArrayType, StructField, StructType

from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.statements import quoted


def columns_of(table: Table, *others: str) -> Transform:
    """Choose the columns of a table by their names, and ``others`` behind them."""
    return lambda rows: rows.selectExpr(*map(quoted, (*table.schema.fieldNames(), *others)))


def as_published(table: Table) -> Transform:
    """Choose the columns of a table by their names, each cast to its published type.

    Nested values, which SQL would not cast by the names in them, stay as they are.
    """
    return lambda rows: rows.selectExpr(*map(_as_published, table.schema))


def _as_published(field: StructField) -> str:
    name = quoted(field.name)
    if isinstance(field.dataType, (ArrayType, StructType)):
        return name
    return f"CAST({name} AS {field.dataType.simpleString()}) AS {name}"
