"""Few rows merged into small tables without Spark, held against Delta's MERGE of the same."""

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.local_rows import arrow_rows, arrow_schema
from kafka_segments.engine.tables import arrow_tables as at_once
from kafka_segments.engine.tables.arrow_tables import is_small, merge_small
from kafka_segments.engine.tables.catalog import OFFSET_INDEX, SEGMENTS, UNRECOGNIZED_FILES, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.upgrades import with_new_columns
from kafka_segments.files.delta import append as delta_append
from kafka_segments.files.delta import merge as delta_merge
from kafka_segments.files.delta.append import append_rows
from kafka_segments.files.delta.commit import publish_commit
from kafka_segments.files.delta.create import create_table
from kafka_segments.files.delta.metadata import (
    TableMetadata,
    change_metadata,
    read_metadata,
)
from support.house.at_length import long_but
from support.spark.ready_builds import ReadyBuild

FEED = {"delta.enableChangeDataFeed": "true"}
COLUMNS = StructType(
    [
        StructField("id", LongType(), nullable=False),
        StructField("name", StringType()),
        StructField("at", TimestampType()),
        StructField("list", ArrayType(LongType())),
        StructField("share", DoubleType()),
    ]
)
Row = dict[str, Any]


def _rows(*rows: Row) -> pa.Table:
    whole = arrow_schema(COLUMNS)
    schema = pa.schema([*(field.with_nullable(True) for field in whole), ("gone", pa.bool_())])
    return pa.Table.from_pylist([{"gone": False, **row} for row in rows], schema=schema)


def _made(
    folder: Path, properties: dict[str, str] = FEED, *, clustered_by: Sequence[str] = ("id",)
) -> str:
    """Make a table of two files with the rows 1 and 2, and 3."""
    uri = str(folder / "table")
    create_table(uri, schema=COLUMNS.json(), properties=properties, clustered_by=clustered_by)
    for ids in ((1, 2), (3,)):
        rows = _rows(*({"id": number, "name": "a", "list": [number, None]} for number in ids))
        assert append_rows(uri, rows.drop_columns(["gone"]).cast(arrow_schema(COLUMNS)))
    return uri


def _merge(uri: str, *rows: Row) -> bool:
    return merge_small(uri, _rows(*rows), keys=["id"], deleted="gone")


def _names(uri: str) -> dict[int, str | None]:
    found = pa.table(DeltaTable(uri).to_pyarrow_table()).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["name"] for row in found}


def _actions(uri: str, version: int) -> list[tuple[str, dict[str, Any]]]:
    text = Path(uri, "_delta_log", f"{version:020d}.json").read_text("utf-8")
    return [found for line in text.splitlines() for found in json.loads(line).items()]


def _kinds(uri: str, version: int) -> list[str]:
    return [kind for kind, _ in _actions(uri, version)]


def _files(uri: str) -> set[Path]:
    return {file for file in Path(uri).rglob("*") if file.is_file()}


def test_one_commit_removes_the_files_that_changed_and_adds_one(tmp_path: Path) -> None:
    uri = _made(tmp_path)

    assert _merge(uri, {"id": 2, "name": "b"}, {"id": 4}, {"id": 5, "gone": True})

    assert _names(uri) == {1: "a", 2: "b", 3: "a", 4: None}
    (added,) = (add for kind, add in _actions(uri, 1) if kind == "add")
    told = dict(_actions(uri, 3))
    assert _kinds(uri, 3) == ["commitInfo", "add", "cdc", "remove"]
    assert told["remove"]["path"] == added["path"]
    assert told["remove"]["size"] == added["size"]
    stats = json.loads(told["add"]["stats"])
    assert stats["numRecords"] == 3
    assert not told["cdc"]["dataChange"]
    assert told["commitInfo"]["readVersion"] == 2
    metrics = told["commitInfo"]["operationMetrics"]
    assert metrics["numTargetRowsUpdated"] == metrics["numTargetRowsInserted"] == "1"
    assert metrics["numTargetRowsDeleted"] == "0"


def test_the_feed_tells_all_of_a_commit_or_is_read_from_its_added_file(tmp_path: Path) -> None:
    uri = _made(tmp_path)

    assert _merge(uri, {"id": 1, "name": "b"}, {"id": 2, "gone": True}, {"id": 4})
    assert _merge(uri, {"id": 5})

    feed = pa.table(DeltaTable(uri).load_cdf(starting_version=3)).to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in feed)
    assert told == [
        (3, "delete", 2),
        (3, "insert", 4),
        (3, "update_postimage", 1),
        (3, "update_preimage", 1),
        (4, "insert", 5),
    ]
    assert _kinds(uri, 4) == ["commitInfo", "add"]


def test_a_table_may_be_left_without_rows(tmp_path: Path) -> None:
    uri = _made(tmp_path)

    assert _merge(uri, *({"id": number, "gone": True} for number in (1, 2, 3)))

    assert _names(uri) == {}
    assert _kinds(uri, 3) == ["commitInfo", "cdc", "remove", "remove"]


def test_what_changes_nothing_makes_no_commit(tmp_path: Path) -> None:
    uri = _made(tmp_path)
    before = _files(uri)

    assert _merge(uri)
    assert _merge(uri, {"id": 4, "gone": True})

    assert _files(uri) == before


def test_files_that_a_checkpoint_tells_of_are_removed(tmp_path: Path) -> None:
    uri = _made(tmp_path, {}, clustered_by=())
    DeltaTable(uri).create_checkpoint()
    for commit in Path(uri, "_delta_log").glob("*0.json"):
        commit.unlink()

    assert _merge(uri, {"id": 2, "name": "b"})

    assert _names(uri) == {1: "a", 2: "b", 3: "a"}


@pytest.mark.parametrize("properties", [FEED, {}])
def test_rows_that_are_there_as_they_are_are_written_only_for_the_feed(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    uri = _made(tmp_path, properties)

    assert _merge(uri, {"id": 3, "name": "a", "list": [3, None]})

    assert DeltaTable(uri).version() == (3 if properties else 2)


@pytest.mark.parametrize(
    "why",
    [
        *("appendOnly", "fiftieth", "SMALL_TABLE_BYTES", "SMALL_TABLE_FILES", "constraint"),
        *("double", "column", "null", "several", "nowhere"),
    ],
)
def test_what_it_does_not_know_is_left_to_delta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    properties = {
        "appendOnly": {"delta.appendOnly": "true"},
        "constraint": {"delta.constraints.id": "id > 0"},
    }.get(why, {})
    if why == "constraint":
        monkeypatch.setattr(TableMetadata, "constraints", {})  # while the rows are appended
    uri = _made(tmp_path, properties)
    monkeypatch.undo()
    if why == "fiftieth":
        monkeypatch.setattr(delta_append, "_CHECKPOINT_EVERY", DeltaTable(uri).version() + 1)
    if why.isupper():
        monkeypatch.setattr(at_once, why, 1)
    if why == "nowhere":
        uri += "-not"
    rows = {
        "column": _rows({"id": 1}).drop_columns(["at"]),
        "null": _rows({"name": "x"}),
        "several": _rows({"id": 1}, {"id": 1}),
    }.get(why, _rows({"id": 1}))
    before = _files(uri)

    assert not merge_small(uri, rows, keys=["share" if why == "double" else "id"])

    assert _files(uri) == before
    assert is_small(uri) is (not why.isupper() and why != "nowhere")


@pytest.mark.parametrize("changes_table", [False, True])
def test_another_run_that_commits_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes_table: bool
) -> None:
    uri, others = _made(tmp_path), [1]

    def publish(*given: Any) -> None:
        while others:
            others.pop()
            if changes_table:
                read = read_metadata(uri)
                assert read is not None
                of_table = {"delta.appendOnly": "true"}
                change_metadata(uri, read, schema=read.schema, properties=of_table)
            else:
                assert _merge(uri, {"id": 1, "name": "other"}, {"id": 4, "name": "other"})
        publish_commit(*given)

    monkeypatch.setattr(delta_append, "publish_commit", publish)
    before = len(list(Path(uri).rglob("*.parquet")))

    assert _merge(uri, {"id": 2, "name": "b"}, {"id": 4, "name": "b"}) is not changes_table

    assert _names(uri) == (
        {1: "a", 2: "a", 3: "a"} if changes_table else {1: "other", 2: "b", 3: "a", 4: "b"}
    )
    if changes_table:
        assert len(list(Path(uri).rglob("*.parquet"))) == before


def test_runs_that_never_come_first_leave_it_to_delta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, tries = _made(tmp_path), []

    def publish(*given: object) -> None:
        tries.append(given)
        raise FileExistsError

    monkeypatch.setattr(delta_append, "publish_commit", publish)
    before = _files(uri)

    assert not _merge(uri, {"id": 2, "name": "b"})
    assert _files(uri) == before
    assert 1 < len(tries) < 20


def test_several_at_once_all_have_their_turn(tmp_path: Path) -> None:
    uri = _made(tmp_path)

    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(lambda n: _merge(uri, {"id": 1, "name": str(n)}, {"id": 10 + n}), range(4))
        )

    assert done == [True] * 4
    assert set(_names(uri)) == {1, 2, 3, 10, 11, 12, 13}
    assert DeltaTable(uri).version() == 6


@pytest.mark.parametrize("at", ["_write_changes", "commit_written"])
def test_a_run_that_is_killed_leaves_the_table_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    uri = _made(tmp_path)

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as dying:
        dying.setattr(delta_merge, at, die)
        with pytest.raises(SystemExit):
            _merge(uri, {"id": 2, "name": "b"})

    assert _names(uri) == {1: "a", 2: "a", 3: "a"}
    assert _merge(uri, {"id": 2, "name": "c"})
    assert _names(uri) == {1: "a", 2: "c", 3: "a"}


def _changed(table: Table, rows: DataFrame) -> DataFrame:
    """Return rows of a table to update, delete and insert, and ones that are not there to delete.

    Some are as they are.
    """
    by_key = F.row_number().over(Window.orderBy(*table.keys))
    numbered = rows.withColumn("n", by_key)
    key = table.keys[-1]
    elsewhere = F.concat(F.col(key), F.lit(" else")) if key == "path" else F.col(key) + 1_000_000
    some = "position" if table == OFFSET_INDEX else "run_id"
    return (
        numbered.where("n <= 12")
        .withColumn(some, F.when(F.col("n") % 2 == 0, F.lit("7")).otherwise(F.col(some)))
        .withColumn(some, F.col(some).cast(table.schema[some].dataType))
        .withColumn(key, F.when(F.col("n").isin(1, 2, 3), elsewhere).otherwise(F.col(key)))
        .withColumn("is_gone", F.col("n").isin(3, 4, 5))
        .drop("n")
    )


def _feed(spark: SparkSession, uri: str, version: int) -> list[str]:
    asked = spark.read.format("delta").option("readChangeFeed", "true")
    return _sorted(asked.option("startingVersion", version).load(uri).drop("_commit_timestamp"))


def _sorted(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.collect()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "table", long_but((SEGMENTS, OFFSET_INDEX), SEGMENTS), ids=attrgetter("name")
)
def test_delta_merges_to_the_same_rows_and_the_same_feed_and_goes_on_from_there(
    spark: SparkSession, broker_build: ReadyBuild, tmp_path: Path, table: Table
) -> None:
    for name in ("ours", "deltas"):
        shutil.copytree(broker_build.warehouse / table.name, tmp_path / name / table.name)
    ours, deltas = (Warehouse(spark, str(tmp_path / name)) for name in ("ours", "deltas"))
    version = ours.version(table)
    assert version is not None
    changed = _changed(table, deltas.read(table))
    rows = arrow_rows(spark, changed.toArrow(), changed.schema)

    with few_rows(spark):
        ours.merge(table, rows, deleted="is_gone")
    deltas.merge(table, rows, deleted="is_gone")

    assert (
        dict(_actions(ours.uri(table), version + 1))["commitInfo"]["engineInfo"] == "kafka-segments"
    )
    assert ours.version(table) == deltas.version(table) == version + 1
    expected = _sorted(deltas.read(table))
    assert _sorted(ours.read(table)) == expected
    if table.keeps_changes:
        feeds = [_feed(spark, found.uri(table), version + 1) for found in (ours, deltas)]
        assert feeds[0] == feeds[1]
        assert len(feeds[0]) > 9

    ours.merge(table, rows.where("NOT is_gone").limit(2))  # as they are by now
    ours.optimize(table)
    ours.vacuum(table, hours=168)
    assert _sorted(ours.read(table)) == expected
    then = spark.read.format("delta").option("versionAsOf", version + 1).load(ours.uri(table))
    assert then.count() == len(expected)
    assert len(pa.table(DeltaTable(ours.uri(table)).to_pyarrow_table())) == len(expected)


@pytest.mark.slow
def test_constraints_and_several_rows_of_a_key_are_refused_by_delta(
    spark: SparkSession, broker_build: ReadyBuild, tmp_path: Path
) -> None:
    shutil.copytree(broker_build.warehouse / SEGMENTS.name, tmp_path / SEGMENTS.name)
    tables = Warehouse(spark, str(tmp_path))
    version = tables.version(SEGMENTS)

    with few_rows(spark):
        one = tables.read(SEGMENTS).limit(1)
        with pytest.raises(Exception, match="size_not_negative"):
            tables.merge(SEGMENTS, one.withColumn("size_bytes", F.lit(-1).cast("long")))
        with pytest.raises(PySparkException, match="MULTIPLE_SOURCE_ROW"):
            tables.merge(SEGMENTS, one.union(one))

    assert tables.version(SEGMENTS) == version


@pytest.mark.parametrize("are_there", [False, True])
def test_rows_fill_a_small_table_that_has_none_of_their_kind_by_an_append(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_there: bool
) -> None:
    tables, asked = Warehouse(spark, str(tmp_path)), []
    monkeypatch.setattr(tables, "replace", lambda *given, where: asked.append((given, where)))
    tables.create(UNRECOGNIZED_FILES)
    values = "'/a' AS log_dir, 'c' AS cluster, 1 AS broker_id, 'r' AS run_id"
    rows = spark.sql(f"SELECT {values}, '/a/x' AS path")
    rows = rows.transform(with_new_columns(UNRECOGNIZED_FILES)).na.fill("").na.fill(0)
    with few_rows(spark):
        tables.fill(UNRECOGNIZED_FILES, rows, where="path = '/a/x'")
        path = "/a/x" if are_there else "/a/y"
        other = rows.withColumn("path", F.lit(path))
        tables.fill(UNRECOGNIZED_FILES, other, where=f"path = '{path}'")

    assert len(asked) == are_there
    assert tables.version(UNRECOGNIZED_FILES) == (1 if are_there else 2)
