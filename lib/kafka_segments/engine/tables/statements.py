"""The SQL by which tables are made, merged and cared for; Delta's own parser reads it."""

from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from kafka_segments.engine.tables.catalog import Table


def sql_text(value: str) -> str:
    """Return a string as a SQL literal, quoted: paths and topics are data, not code."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def in_any(column: str, values: Sequence[str]) -> str:
    """Return the SQL condition that a column has one of the values."""
    return f"{column} IN ({', '.join(map(sql_text, values))})"


def delta_table(uri: str) -> str:
    """Return the name by which SQL reaches the Delta table at a URI."""
    return f"delta.{quoted(uri)}"


def create_statement(table: Table, uri: str) -> str:
    """Return the statement that makes a table with its columns, comments and properties.

    Nested values may be null whatever the published schema says: SQL has no words for others, and
    Spark writes all of them so.
    """
    properties = (
        f"{sql_text(key)} = {sql_text(value)}" for key, value in table.properties().items()
    )
    clustered_by = ", ".join(map(quoted, table.clustered_by))
    return (
        f"CREATE TABLE IF NOT EXISTS {delta_table(uri)} ({', '.join(map(_column, table.schema))})"
        f" USING delta{f' CLUSTER BY ({clustered_by})' if clustered_by else ''}"
        f" TBLPROPERTIES ({', '.join(properties)})"
    )


def merge_statement(
    table: Table, uri: str, source: str, *, only_in: str | None, deleted: str | None
) -> str:
    """Return the statement that brings rows of a view, ``source``, into a table by its keys.

    ``only_in`` and ``deleted`` are those of ``Warehouse.merge``.
    """
    columns = [quoted(name) for name in table.schema.fieldNames()]
    keys = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in table.keys)
    clauses = [
        f"MERGE INTO {delta_table(uri)} AS t USING {quoted(source)} AS s",
        f"ON {keys}" if only_in is None else f"ON {only_in} AND {keys}",
        "" if deleted is None else f"WHEN MATCHED AND s.{deleted} THEN DELETE",
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in columns)}",
        "WHEN NOT MATCHED" if deleted is None else f"WHEN NOT MATCHED AND NOT s.{deleted}",
        f"THEN INSERT ({', '.join(columns)})",
        f"VALUES ({', '.join(f's.{name}' for name in columns)})",
    ]
    return " ".join(clauses)


def _column(field: StructField) -> str:
    return f"{quoted(field.name)} {_type(field.dataType)}{_constraint(field)}"


def _type(kind: DataType) -> str:
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_type(kind.keyType)}, {_type(kind.valueType)}>"
    if isinstance(kind, StructType):
        fields = (f"{quoted(f.name)}: {_type(f.dataType)}{_constraint(f)}" for f in kind)
        return f"STRUCT<{', '.join(fields)}>"
    return kind.simpleString().upper()


def _constraint(field: StructField) -> str:
    comment = field.metadata.get("comment")
    not_null = "" if field.nullable else " NOT NULL"
    return not_null + ("" if comment is None else f" COMMENT {sql_text(comment)}")


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
