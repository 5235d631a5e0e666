"""What views add to tables: a TIMESTAMP beside each moment, whatever table it is of."""

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType, StructField

from kafka_segments.engine.derived.views import (
    HISTORY,
    moment_name,
    register_views,
    with_timestamps,
)
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import BUILD_TABLES, REMOTE_SEGMENTS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.schemas import newest_versions, schema
from kafka_segments.settings import TopicConfig

SETTINGS = set(TopicConfig.model_fields)


@pytest.mark.parametrize("table", [f"{name}.v{n}" for name, n in newest_versions().items()])
def test_every_column_of_ms_that_is_no_setting_gets_a_timestamp(table: str) -> None:
    fields = {field.name: field for field in schema(table)}
    moments = {name for name in fields if name.endswith("_ms")} - SETTINGS

    names = {name: moment_name(field) for name, field in fields.items()}

    assert {name for name, beside in names.items() if beside is not None} == moments
    assert all(isinstance(fields[name].dataType, LongType) for name in moments)
    added = [beside for beside in names.values() if beside is not None]
    assert len({*added, *fields}) == len(added) + len(fields)


@pytest.mark.parametrize(
    ("column", "beside"),
    [
        ("largest_timestamp_ms", "largest_timestamp"),
        ("timestamp_ms", "timestamp"),
        ("expires_at_ms", "expires_at"),
        ("last_modified_ms", "last_modified"),
        ("from_ms", "from_at"),
        ("state_ms", "state_at"),
        ("projected_full_ms", "projected_full_at"),
        ("retention_ms", None),
        ("size_bytes", None),
    ],
)
def test_a_name_that_says_a_moment_is_kept(column: str, beside: str | None) -> None:
    assert moment_name(StructField(column, LongType())) == beside


@pytest.mark.spark
def test_a_timestamp_stands_beside_its_moment(spark: SparkSession) -> None:
    rows = with_timestamps(local_rows(spark, [], REMOTE_SEGMENTS.schema))

    names = rows.columns
    assert names[names.index("state_ms") + 1] == "state_at"
    assert dict(rows.dtypes)["checked_at"] == "timestamp"
    assert set(names) - set(REMOTE_SEGMENTS.schema.fieldNames()) == {
        *("state_at", "checked_at", "max_timestamp", "last_modified"),
    }


@pytest.mark.usefixtures("few_and_many")
def test_a_view_has_every_column_that_releases_added(spark: SparkSession, tmp_path: Path) -> None:
    tables = Warehouse(spark, str(tmp_path))
    later = [table for table in BUILD_TABLES if table.version > 1]
    for table in later:
        tables.create(table)

    views = register_views(Warehouse(spark, tables.root))

    assert later and SEGMENTS in later
    for name, table in {**{table.name: table for table in later}, HISTORY: SEGMENTS}.items():
        assert name in views
        assert set(table.schema.fieldNames()) <= set(spark.table(name).columns)


@pytest.mark.usefixtures("few_and_many")
def test_a_table_of_somebody_else_is_shown_too(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT 7 AS seven").write.format("delta").save(str(tmp_path / "notes"))

    assert register_views(Warehouse(spark, str(tmp_path))) == ["notes"]
    assert spark.table("notes").collect() == [Row(seven=7)]
