"""Tables that tests fill by hand, of which they name what matters."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.types import StructField

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse

_EMPTY = {"string": "", "integer": 0, "long": 0, "boolean": False, "array": []}
_EMPTY |= {"timestamp": datetime.min.replace(tzinfo=UTC)}


def fill(warehouse: Warehouse, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a table, which is made if need be.

    A column that a row does not name is null, or what stands for nothing in its type.
    """
    values = [tuple(_value(row, field) for field in table.schema) for row in rows]
    with few_rows(warehouse.spark):
        warehouse.create(table)
        if values:
            warehouse.append(table, local_rows(warehouse.spark, values, table.schema))


def _value(row: Mapping[str, Any], field: StructField) -> Any:
    return row.get(field.name, None if field.nullable else _EMPTY[field.dataType.typeName()])
