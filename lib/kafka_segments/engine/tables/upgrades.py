"""Tables of an older version: read as if they were up to date, and brought up to date in place."""

import logging
from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from kafka_segments.engine.tables.catalog import SCHEMA_VERSION, Table
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.lacking_columns import refuse_other_table
from kafka_segments.engine.tables.schemas import parsed
from kafka_segments.engine.tables.statements import delta_table
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.metadata import change_metadata, read_metadata
from kafka_segments.files.delta.properties import constraints_among
from kafka_segments.files.storage.folder_lock import commit_lock, creation_lock
from kafka_segments.files.storage.uris import join_uri

_LOG = logging.getLogger(__name__)
_NEWER = "A newer kafka-segments wrote it: use that one"
_OF_OTHERS = (
    "Somebody else added them, they may not be null, and no run has values for them: ALTER TABLE …"
    " ALTER COLUMN … DROP NOT NULL lets runs leave them alone"
)


def with_new_columns(table: Table) -> Transform:
    """Add the columns that an older version of a table does not have, null in all rows.

    Needs: rows of the table, of this version or an older one.
    Gives: the same columns, and those that are missing.
    """

    def transform(rows: DataFrame) -> DataFrame:
        missing = [field for field in table.schema if field.name not in rows.columns]
        if not missing:
            return rows
        return rows.withColumns({f.name: F.lit(None).cast(f.dataType) for f in missing})

    return transform


def upgraded(
    there: StructType,
    published: StructType,
    *,
    uri: str,
    is_newer: bool = False,
    retired: Collection[str] = (),
) -> StructType | None:
    """Return the schema that the table at ``uri`` must get; None if it has it already.

    A new version adds columns that may be null, lets nested values be null, or has no use for a
    column any more: that stays, may be null from then on, and is not read. A column that somebody
    else added is left alone, where it may be null.

    Args:
        there: the schema of the table.
        published: the schema of the version that it must get.
        uri: where the table lies, for messages.
        is_newer: the table says that a later version of its schema was written.
        retired: columns that only earlier versions have.

    Raises:
        UsageError: a later version, or one with columns of somebody else that may not be null, or
            without one of ours that may not; or it is another table.
    """
    of_others = [field for field in there if field.name not in published.fieldNames()]
    may_stay = {field.name for field in of_others if field.nullable or field.name in retired}
    unknown = sorted(field.name for field in of_others if is_newer or field.name not in may_stay)
    missing = [field for field in published if field.name not in there.fieldNames()]
    needed = [field.name for field in missing if not field.nullable]
    if unknown or needed:
        refuse_other_table(uri, there.fieldNames())
    if unknown:
        raise UsageError(
            f"{uri} has columns that this version does not have: {', '.join(unknown)}."
            f" {_NEWER if is_newer else _OF_OTHERS}"
        )
    if needed:
        raise UsageError(
            f"{uri} lacks columns that may not be null: {', '.join(needed)}."
            " Move it away and run `kafka-segments build --full`"
        )
    kept = [
        _that_may_be_null(field)
        if field in of_others
        else field
        if not _is_stricter(field, published[field.name])
        else _with_nested_nulls(field)
        for field in there
    ]
    after = StructType([*kept, *missing])
    return None if after == there else after


def bring_up_to_date(
    spark: SparkSession, root: str, table: Table, *, by_spark: str, is_written: bool
) -> None:
    """Give an existing table the schema and, if it is written, the constraints of this release.

    The log of the table says what it has, so a table that is up to date costs no query.

    Args:
        spark: the session that changes constraints.
        root: URI of the warehouse.
        table: as it must be.
        by_spark: URI of the table, as Spark reads it.
        is_written: rows will be written next; constraints of an older release do not matter to a
            table that is only read.

    Raises:
        UsageError: the table cannot be brought up to date.
    """
    uri = join_uri(root, table.name)
    there, properties = _described(spark, uri, by_spark)
    if is_written:
        _renew_constraints(spark, uri, by_spark, table, properties)
    is_newer, retired = _is_newer(properties, table), table.retired_columns()
    if upgraded(there, table.schema, uri=uri, is_newer=is_newer, retired=retired) is None:
        return
    with creation_lock(root, table.name):
        found = read_metadata(uri)
        if found is None:
            raise UsageError(
                f"{uri} must be brought up to date, and its log is of a kind that only Delta reads."
                " Move it away and run `kafka-segments build --full`"
            )
        is_newer = _is_newer(found.properties, table)
        after = upgraded(
            parsed(found.schema), table.schema, uri=uri, is_newer=is_newer, retired=retired
        )
        if after is not None:
            version = {SCHEMA_VERSION: str(table.version)}
            change_metadata(uri, found, schema=after.json(), properties=version)
            _LOG.info("%s: brought to version %s of its schema", uri, table.version)


def _described(spark: SparkSession, uri: str, by_spark: str) -> tuple[StructType, dict[str, str]]:
    """Return a table's schema and properties, by its log or, where that does not tell, by Delta."""
    found = read_metadata(uri)
    if found is not None:
        return parsed(found.schema), found.properties
    rows = spark.sql(f"SHOW TBLPROPERTIES {delta_table(by_spark)}").collect()
    there = spark.read.format("delta").load(by_spark).schema
    return there, {row["key"]: row["value"] for row in rows}


def _is_newer(properties: Mapping[str, str], table: Table) -> bool:
    """Tell whether a table says that a later release wrote its schema."""
    version = properties.get(SCHEMA_VERSION, "")
    return version.isdecimal() and int(version) > table.version


def _renew_constraints(
    spark: SparkSession, uri: str, by_spark: str, table: Table, properties: Mapping[str, str]
) -> None:
    """Replace the constraints that an earlier release has set under the same names.

    Constraints that the table does not have are not added. ``properties`` are those of the table.
    """
    there = constraints_among(properties)
    for constraint, condition in table.constraints:
        if there.get(constraint, condition) == condition:
            continue
        _LOG.info("%s: constraint %s is renewed", uri, constraint)
        alter = f"ALTER TABLE {delta_table(by_spark)}"
        with commit_lock(uri):
            spark.sql(f"{alter} DROP CONSTRAINT {constraint}")
            spark.sql(f"{alter} ADD CONSTRAINT {constraint} CHECK ({condition})")


def _is_stricter(field: StructField, published: StructField) -> bool:
    return refuses_nested_nulls(field.dataType) and not refuses_nested_nulls(published.dataType)


def refuses_nested_nulls(kind: DataType) -> bool:
    """Tell whether any nested value of a type may not be null.

    Spark writes every nested value as one that may be null, whatever the schema says. Engines
    that compare files with the schema refuse such files: so does delta-rs with the files of a
    change data feed.
    """
    return _nullable_inside(kind) != kind


def _that_may_be_null(field: StructField) -> StructField:
    return StructField(field.name, field.dataType, True, field.metadata)


def made_schema(published: StructType) -> StructType:
    """Return the schema that a new table has: the published one, nested values may be null."""
    return StructType([_with_nested_nulls(field) for field in published])


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
