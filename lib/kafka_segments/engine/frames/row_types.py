"""The types of rows that tasks return, said as in SQL."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
)

_TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "string": StringType(),
    "array<int>": ArrayType(IntegerType()),
    "array<string>": ArrayType(StringType()),
}


def row_fields(columns: str, **others: DataType) -> list[StructField]:
    """Return columns of simple types, such as ``path string, offset long not null``.

    ``others``: columns of other types, behind these.

    ``StructType.fromDDL`` of the same text needs a session, and modules are imported before it.
    """
    found = [column.split(maxsplit=2) for column in columns.split(",")]
    simple = [StructField(name, _TYPES[kind], not null) for name, kind, *null in found]
    return simple + [StructField(name, kind) for name, kind in others.items()]
