"""What a table knows of itself, without a JVM."""

from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.schemas import newest_versions, schema

TABLES = [table for table in vars(catalog).values() if isinstance(table, Table)]


def test_a_table_has_the_newest_schema_that_is_published() -> None:
    assert catalog.SEGMENTS.schema == schema(f"segments.v{catalog.SEGMENTS.version}")
    assert catalog.LOGS.version == 1
    assert catalog.MIGRATION_PLANS.version == 2
    assert {table.name: table.version for table in TABLES} == {
        name: version
        for name, version in newest_versions().items()
        if not name.startswith("kafka_segments_")
    }


def test_a_table_of_an_older_version_has_its_own_schema() -> None:
    before = catalog.SEGMENTS._replace(version=1)

    assert before.schema == schema("segments.v1") != catalog.SEGMENTS.schema


def test_a_table_has_the_columns_of_its_key() -> None:
    missing = {
        (table.name, key)
        for table in TABLES
        for key in (*table.keys, *table.clustered_by)
        if key not in table.schema.fieldNames()
    }

    assert missing == set()
