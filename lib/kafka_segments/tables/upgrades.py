"""Tables of an older version: read as if they were up to date, and brought up to date in place."""

import logging
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from kafka_segments.errors import UsageError
from kafka_segments.tables.catalog import SCHEMA_VERSION, Table
from kafka_segments.tables.keys import Transform

_LOG = logging.getLogger(__name__)


def with_new_columns(table: Table) -> Transform:
    """Add the columns that an older version of a table does not have, null in all rows.

    Needs: rows of the table, of this version or an older one.
    Gives: the same columns, and those that are missing.
    """

    def transform(rows: DataFrame) -> DataFrame:
        missing = [field for field in table.schema if field.name not in rows.columns]
        return rows.withColumns({f.name: F.lit(None).cast(f.dataType) for f in missing})

    return transform


def upgraded(there: StructType, published: StructType, *, uri: str) -> StructType | None:
    """Return the schema that the table at ``uri`` must get; None if it has it already.

    A new version only adds columns that may be null, or lets nested values be null.

    Args:
        there: the schema of the table.
        published: the schema of the version that it must get.
        uri: where the table lies, for messages.

    Raises:
        UsageError: the table has columns that the published schema does not know, or lacks one
            that may not be null.
    """
    unknown = sorted(set(there.fieldNames()) - set(published.fieldNames()))
    if unknown:
        raise UsageError(
            f"{uri} has columns that this version does not have: {', '.join(unknown)}."
            " A newer kafka-segments wrote it: use that one"
        )
    missing = [field for field in published if field.name not in there.fieldNames()]
    needed = [field.name for field in missing if not field.nullable]
    if needed:
        raise UsageError(
            f"{uri} lacks columns that may not be null: {', '.join(needed)}."
            " Move it away and run `kafka-segments build --full`"
        )
    kept = [
        _with_nested_nulls(field) if _is_stricter(field, published[field.name]) else field
        for field in there
    ]
    after = StructType([*kept, *missing])
    return None if after == there else after


def change_schema(spark: SparkSession, uri: str, schema: StructType, version: int) -> None:
    """Give a table another schema and its version, in one commit that touches no data.

    SQL cannot do this: Delta 4.4 refuses ALTER COLUMN for the elements of an array, Spark 4.2
    refuses NOT NULL in REPLACE COLUMNS, and new columns and the version would be two commits. So
    Delta's own transaction is called through the driver's JVM, which Spark Connect does not have.
    The transaction fails if another one has changed the schema in the meantime.
    """
    jvm: Any = spark._jvm
    nothing = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, uri)
    transaction = log.startTransaction(nothing, nothing)
    found = transaction.metadata()
    changed = found.copy(
        found.id(),
        found.name(),
        found.description(),
        found.format(),
        schema.json(),
        found.partitionColumns(),
        found.configuration().updated(SCHEMA_VERSION, str(version)),
        found.createdTime(),
    )
    transaction.updateMetadata(changed, False)
    of_json = jvm.org.apache.spark.sql.types.DataType.fromJson
    operation = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$UpdateSchema")
    no_files = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    transaction.commit(no_files, operation(of_json(found.schemaString()), of_json(schema.json())))
    _LOG.info("%s: brought to version %s of its schema", uri, version)


def renew_constraints(
    spark: SparkSession, uri: str, constraints: Sequence[tuple[str, str]]
) -> None:
    """Replace the constraints that an earlier release has set under the same names.

    Constraints that the table does not have are not added. This is one query, and none for a
    table without constraints.
    """
    if not constraints:
        return
    name = "delta.`" + uri.replace("`", "``") + "`"
    found = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    for constraint, condition in constraints:
        if found.get(f"delta.constraints.{constraint}") in (condition, None):
            continue
        _LOG.info("%s: constraint %s is renewed", uri, constraint)
        spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT {constraint}")
        spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {constraint} CHECK ({condition})")


def _is_stricter(field: StructField, published: StructField) -> bool:
    return refuses_nested_nulls(field.dataType) and not refuses_nested_nulls(published.dataType)


def refuses_nested_nulls(kind: DataType) -> bool:
    """Tell whether any nested value of a type may not be null.

    Spark writes every nested value as one that may be null, whatever the schema says. Engines
    that compare files with the schema refuse such files: so does delta-rs with the files of a
    change data feed.
    """
    return _nullable_inside(kind) != kind


def _with_nested_nulls(field: StructField) -> StructField:
    return StructField(field.name, _nullable_inside(field.dataType), field.nullable, field.metadata)


def _nullable_inside(kind: DataType) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable_inside(kind.elementType), containsNull=True)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _nullable_inside(kind.valueType), valueContainsNull=True)
    if isinstance(kind, StructType):
        fields = [_with_nested_nulls(field) for field in kind]
        return StructType([StructField(f.name, f.dataType, True, f.metadata) for f in fields])
    return kind
