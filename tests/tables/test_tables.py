"""What Delta itself holds the tables to: constraints, the change feed, upgrades."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaRsTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables import upgrades
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.schemas import schema
from kafka_segments.engine.tables.upgrades import refuses_nested_nulls, with_new_columns
from kafka_segments.errors import BrokenTableError, UsageError
from support.house.at_length import long_but
from support.spark.altered_tables import ALTERATIONS

LOG_DIRS = StructType([field for field in schema("log_dirs.v1") if field.name != "problem"])


def _old(spark: SparkSession, folder: Path, columns: StructType) -> Warehouse:
    """Make a table log_dirs of a version before, with one row."""
    root = Warehouse(spark, str(folder))
    uri = root.uri(tables.LOG_DIRS)
    table = DeltaTable.create(spark).location(uri).addColumns(columns)
    table.property("kafkaSegments.schemaVersion", "0").execute()
    row = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "was_clean_shutdown": True}
    values = {**row, "has_lock_file": False, "run_id": "r", "team": "ours"}
    spark.createDataFrame(
        [tuple(values.get(field.name) for field in columns)], columns
    ).write.format("delta").mode("append").save(uri)
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    "alteration",
    [
        *("deletion vectors", "widened types", "defaults of columns", "appends alone"),
        *long_but(("row tracking", "checkpoints of version 2", "change feed", "clustered")),
    ],
)
def test_a_table_that_others_altered_gets_its_new_columns(
    spark: SparkSession, tmp_path: Path, alteration: str
) -> None:
    root = _old(spark, tmp_path, LOG_DIRS)
    ALTERATIONS[alteration](spark, root.uri(tables.LOG_DIRS))

    root.create(tables.LOG_DIRS)

    rows = spark.read.format("delta").load(root.uri(tables.LOG_DIRS))
    assert rows.schema["problem"].dataType == StringType()
    assert [(row["log_dir"], row["problem"]) for row in rows.collect()] == [("/d", None)]


@pytest.mark.slow
@pytest.mark.parametrize("alteration", ["mapped columns", "timestamps in commits"])
def test_a_feature_that_no_release_can_keep_is_named(
    spark: SparkSession, tmp_path: Path, alteration: str
) -> None:
    root = _old(spark, tmp_path, LOG_DIRS)
    ALTERATIONS[alteration](spark, root.uri(tables.LOG_DIRS))

    with pytest.raises(UsageError, match=r"cannot keep: Delta's .*\. Move it away and run"):
        root.create(tables.LOG_DIRS)


def _create_as_before(spark: SparkSession, uri: str, table: Table) -> None:
    """Make a table as earlier releases did: nested values may not be null where the schema says."""
    builder = DeltaTable.create(spark).location(uri).addColumns(table.schema)
    for name, value in table.properties().items():
        builder = builder.property(name, value)
    builder.execute()


def test_a_table_of_the_version_before_gets_its_new_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = _old(spark, tmp_path, LOG_DIRS)

    root.create(tables.LOG_DIRS)
    root.create(tables.LOG_DIRS)

    rows = root.read(tables.LOG_DIRS)
    properties = DeltaTable.forPath(spark, root.uri(tables.LOG_DIRS)).detail().collect()[0]
    assert [row["problem"] for row in rows.collect()] == [None]
    assert rows.schema["problem"].metadata == schema("log_dirs.v1")["problem"].metadata
    assert properties["properties"]["kafkaSegments.schemaVersion"] == "1"
    assert root.version(tables.LOG_DIRS) == 2


def test_a_table_of_the_version_before_is_read_with_null_in_its_new_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = _old(spark, tmp_path, LOG_DIRS)

    rows = root.read(tables.LOG_DIRS).transform(with_new_columns(tables.LOG_DIRS))

    assert rows.schema["problem"].dataType == tables.LOG_DIRS.schema["problem"].dataType
    assert [(row["log_dir"], row["problem"]) for row in rows.collect()] == [("/d", None)]
    assert root.version(tables.LOG_DIRS) == 1


def test_a_table_of_a_later_version_is_refused_and_so_is_a_column_of_others_without_nulls() -> None:
    later, strict = (StructField("later", LongType(), is_nullable) for is_nullable in (True, False))
    published = tables.LOG_DIRS.schema

    with pytest.raises(UsageError, match=r"does not have: later\. A newer kafka-segments wrote"):
        upgrades.upgraded(StructType([*published, later]), published, uri="/w", is_newer=True)
    with pytest.raises(UsageError, match=r"does not have: later\. Somebody else added them"):
        upgrades.upgraded(StructType([*published, strict]), published, uri="/w")
    assert upgrades.upgraded(StructType([*published, later]), published, uri="/w") is None
    after = upgrades.upgraded(StructType([later, *LOG_DIRS]), published, uri="/w")
    assert after == StructType([later, *LOG_DIRS, published["problem"]])


def test_a_column_that_a_version_has_no_use_for_stays_and_may_be_null() -> None:
    table = tables.INTERNAL_RECORDS
    before = schema("internal_records.v1")
    retired = table.retired_columns()
    assert retired == {"is_active", "size_bytes", "mtime_ns"}

    after = upgrades.upgraded(before, table.schema, uri="/w", retired=retired)

    assert after is not None
    assert after.fieldNames() == before.fieldNames()
    assert {field.name for field in after if field != before[field.name]} == {
        "is_active",
        "size_bytes",
    }
    assert all(after[name].nullable for name in retired)
    assert upgrades.upgraded(after, table.schema, uri="/w", retired=retired) is None
    assert tables.LOG_DIRS.retired_columns() == set()


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_column_of_others_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    root = _old(spark, tmp_path, StructType([*LOG_DIRS, StructField("team", StringType())]))
    columns = tables.LOG_DIRS.schema

    def rows(*log_dirs: str) -> DataFrame:
        key = {"cluster": "c", "broker_id": 1, "was_clean_shutdown": True, "has_lock_file": False}
        values = [{**key, "log_dir": log_dir, "run_id": "later"} for log_dir in log_dirs]
        return local_rows(
            spark, [tuple(row.get(f.name) for f in columns) for row in values], columns
        )

    root.create(tables.LOG_DIRS)
    root.merge(tables.LOG_DIRS, rows("/d", "/e"))
    root.append(tables.LOG_DIRS, rows("/f"))

    told = spark.read.format("delta").load(root.uri(tables.LOG_DIRS)).orderBy("log_dir").collect()
    named = [(row["log_dir"], row["run_id"], row["team"]) for row in told]
    assert named == [("/d", "later", "ours"), ("/e", "later", None), ("/f", "later", None)]
    assert "team" not in root.read(tables.LOG_DIRS).columns


def test_a_table_without_a_column_that_must_be_there_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = StructType([field for field in LOG_DIRS if field.name != "has_lock_file"])
    root = _old(spark, tmp_path, columns)

    with pytest.raises(UsageError, match=r"may not be null: has_lock_file\. Move it away"):
        root.create(tables.LOG_DIRS)


@pytest.mark.parametrize(
    ("table", "row", "constraint"),
    [
        (tables.OFFSET_INDEX, {"offset": 9, "position": 5}, "offset_within_reach"),
        (tables.OFFSET_INDEX, {"offset": 10 + 2**31, "position": 5}, "offset_within_reach"),
        (tables.OFFSET_INDEX, {"offset": 11, "position": -1}, "position_not_negative"),
        (tables.TIME_INDEX, {"timestamp_ms": -1, "offset": 11}, "timestamp_not_negative"),
        (tables.TIME_INDEX, {"timestamp_ms": 0, "offset": 9}, "offset_not_below_base"),
    ],
)
def test_delta_refuses_rows_that_cannot_be(
    spark: SparkSession,
    root: Warehouse,
    table: Table,
    row: dict[str, int],
    constraint: str,
) -> None:
    key = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0}
    rows = spark.createDataFrame([{**key, "base_offset": 10, **row}], schema(f"{table.name}.v1"))

    with pytest.raises((PySparkException, Py4JJavaError), match=constraint):
        root.append(table, rows)


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    root = Warehouse(spark, str(tmp_path_factory.mktemp("tables")))
    for table in (tables.SEGMENTS, tables.OFFSET_INDEX, tables.TIME_INDEX):
        root.create(table)
    return root


def test_segments_keep_their_changes(spark: SparkSession, root: Warehouse) -> None:
    detail = DeltaTable.forPath(spark, root.uri(tables.SEGMENTS)).detail().collect()[0]

    assert detail["properties"]["delta.enableChangeDataFeed"] == "true"


SEGMENT: dict[str, Any] = {
    **{"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0},
    **{"base_offset": 0, "path": "/d/t-0/0.log", "size_bytes": 70, "last_modified_ms": 0},
    **{"largest_timestamp_ms": 5, "largest_timestamp_source": "record", "is_active": True},
    **{"index_format": "kafka", "scanned_at": dt.datetime(2026, 1, 1), "run_id": "1"},
    **{"magics": [2], "codecs": ["none"], "leader_epochs": [(3, 0)]},
}


def _with_segment(spark: SparkSession, table: Table, **changed: object) -> DataFrame:
    row, columns = {**SEGMENT, **changed}, table.schema
    return spark.createDataFrame([tuple(map(row.get, columns.fieldNames()))], columns)


@pytest.fixture(params=long_but((1, 2, 3), 1))
def upgraded(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Warehouse:
    """A table of segments that an older release has made and filled."""
    root = Warehouse(spark, str(tmp_path))
    made = tables.SEGMENTS._replace(version=request.param)
    _create_as_before(spark, root.uri(made), made)
    root.append(made, _with_segment(spark, made))
    root.create(tables.SEGMENTS)
    return root


@pytest.mark.slow
def test_another_engine_reads_which_segments_changed(
    spark: SparkSession, upgraded: Warehouse
) -> None:
    root = upgraded
    changed = _with_segment(spark, tables.SEGMENTS, run_id="2", leader_epochs=[(3, 0), (4, 9)])
    root.merge(tables.SEGMENTS, changed)

    table = DeltaRsTable(root.uri(tables.SEGMENTS))
    changes = pa.table(table.load_cdf(starting_version=0)).to_pylist()
    assert sorted(
        (row["_change_type"], row["run_id"], len(row["leader_epochs"])) for row in changes
    ) == [("insert", "1", 1), ("update_postimage", "2", 2), ("update_preimage", "1", 1)]
    assert pa.table(table.to_pyarrow_table())["magics"].to_pylist() == [[2]]
    assert root.read(tables.SEGMENTS).schema == schema("segments.v4")
    assert table.metadata().configuration["kafkaSegments.schemaVersion"] == "4"
    assert table.metadata().configuration["delta.constraints.size_not_negative"]


def test_a_table_that_delta_does_not_open_is_named_with_the_step(
    spark: SparkSession, tmp_path: Path
) -> None:
    _old(spark, tmp_path / "made", LOG_DIRS)
    DeltaRsTable(str(tmp_path / "made" / "log_dirs")).create_checkpoint()
    moved = (tmp_path / "made").rename(tmp_path / "moved")  # Delta remembers what it has read
    last = max((moved / "log_dirs" / "_delta_log").glob("*.json"))
    last.unlink()

    with pytest.raises(BrokenTableError, match=f"{last.name} is not there, its checkpoint is: "):
        Warehouse(spark, str(moved)).read(tables.LOG_DIRS)


def test_no_kept_change_has_nested_values_that_may_not_be_null() -> None:
    kept = [table for table in tables.BUILD_TABLES if table.keeps_changes]

    assert [table.name for table in kept] == ["segments"]
    assert {
        field.name
        for table in kept
        for field in table.schema
        if refuses_nested_nulls(field.dataType)
    } == set()


def test_every_column_has_a_comment() -> None:
    def without(fields: list[StructField]) -> list[str]:
        return [field.name for field in fields if not field.metadata.get("comment")]

    for table in (*tables.BUILD_TABLES, tables.VALIDATION_RESULTS, tables.QUARANTINED_SEGMENTS):
        assert without(table.schema.fields) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
            r"log_dirs takes appends alone .*: nothing was written .* ALTER TABLE .* run it again",
        ),
        (
            "ADD CONSTRAINT theirs CHECK (problem IS NULL)",
            r"log_dirs has a constraint theirs that new rows do not meet, \(.*\): nothing .* again",
        ),
    ],
)
def test_a_rule_of_somebody_else_that_refuses_rows_is_named(
    spark: SparkSession, tmp_path: Path, rule: str, said: str
) -> None:
    root = _old(spark, tmp_path, LOG_DIRS)
    root.create(tables.LOG_DIRS)
    uri = root.uri(tables.LOG_DIRS)
    spark.sql(f"ALTER TABLE delta.`{uri}` {rule}")
    problem = F.lit("no meta.properties")
    changed = root.read(tables.LOG_DIRS).withColumn("problem", problem)

    with pytest.raises(UsageError, match=said):
        root.merge(tables.LOG_DIRS, changed)

    assert [row["problem"] for row in root.read(tables.LOG_DIRS).collect()] == [None]
