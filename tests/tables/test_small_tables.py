"""Small tables read at once, held against what Delta reads of them."""

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from operator import attrgetter
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_segments.engine.choose import expect_many_rows, few_rows, has_few_rows
from kafka_segments.engine.derived.views import table_names
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables import arrow_tables as at_once
from kafka_segments.engine.tables import delta, small_tables, spark_tables
from kafka_segments.engine.tables.arrow_tables import read_small
from kafka_segments.engine.tables.catalog import (
    BUILD_TABLES,
    LOG_DIRS,
    METADATA_FEATURES,
    MIGRATION_EVENTS,
    SEGMENTS,
    UNRECOGNIZED_FILES,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.upgrades import with_new_columns
from kafka_segments.errors import BrokenTableError
from kafka_segments.files.delta import append
from kafka_segments.files.delta.notes import noted_log
from support.spark.filled_tables import fill
from support.spark.ready_builds import ReadyBuild
from support.spark.rows_of import rows_of

COMPILED = "spark.sql.codegen.factoryMode"


@pytest.fixture
def small(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose verb takes all that it reads for few rows."""
    with few_rows(spark):
        yield spark


def _sorted(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.collect()))


@pytest.mark.parametrize("table", BUILD_TABLES, ids=attrgetter("name"))
def test_a_table_of_a_build_has_the_rows_and_columns_that_delta_reads(
    spark: SparkSession, broker_build: ReadyBuild, table: Table
) -> None:
    by_delta = Warehouse(spark, str(broker_build.warehouse)).read(table)

    found = read_small(spark, str(broker_build.warehouse / table.name))

    assert found is not None
    assert found.schema == by_delta.schema
    assert _metadata(found.schema) == _metadata(by_delta.schema)
    assert _sorted(found) == _sorted(by_delta)


def test_a_build_has_no_other_tables(broker_build: ReadyBuild) -> None:
    assert set(table_names(str(broker_build.warehouse))) == {table.name for table in BUILD_TABLES}


def _metadata(columns: StructType) -> list[dict[str, str]]:
    return [field.metadata for field in columns]


@pytest.mark.slow
def test_a_column_that_came_later_is_null_in_older_files_and_what_is_deleted_is_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    rows = spark.sql("SELECT id, timestamp_millis(id) AS at, array(id) AS list FROM range(6)")
    rows.write.format("delta").save(uri)
    later = rows.where("id = 5").selectExpr("10 + id AS id", "at", "struct(id AS a) AS s")
    later.write.format("delta").mode("append").option("mergeSchema", "true").save(uri)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 2")

    found = read_small(spark, uri)

    assert found is not None
    assert _sorted(found) == _sorted(spark.read.format("delta").load(uri))
    assert found.where("s.a = 5 AND list IS NULL").count() == 1


@pytest.mark.usefixtures("few_and_many")
def test_of_the_columns_that_are_named_those_are_read_that_the_table_has(
    spark: SparkSession, broker_build: ReadyBuild
) -> None:
    tables = Warehouse(spark, str(broker_build.warehouse))
    asked = ("damage", "no_such", "base_offset", "path")

    found = tables.read(SEGMENTS, asked)

    assert found.columns == ["damage", "base_offset", "path"]
    assert _sorted(found) == _sorted(tables.read(SEGMENTS).select(*found.columns))


@pytest.mark.usefixtures("small")
def test_columns_are_read_here_up_to_so_many_rows(
    spark: SparkSession, broker_build: ReadyBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Warehouse(spark, str(broker_build.warehouse))
    asked = ("path", "no_such", "base_offset")
    there = tables.read(SEGMENTS, asked)
    count = there.count()
    monkeypatch.setattr(small_tables, "MOST_UNCHANGED", count)

    found = tables.columns_in_driver(SEGMENTS, asked)

    assert found is not None
    rows, columns = found
    assert columns.fieldNames() == rows.column_names == ["path", "base_offset"]
    assert rows.sort_by("path").to_pylist() == [
        row.asDict() for row in there.sort("path").collect()
    ]
    expect_many_rows(spark)
    assert tables.columns_in_driver(SEGMENTS, asked) is None


@pytest.mark.usefixtures("small")
def test_columns_of_more_rows_are_left_to_delta(
    spark: SparkSession, broker_build: ReadyBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_tables, "MOST_UNCHANGED", 1)

    found = Warehouse(spark, str(broker_build.warehouse)).columns_in_driver(SEGMENTS, ("path",))

    assert found is None


def test_a_table_that_is_made_and_has_no_rows_is_read(small: SparkSession, tmp_path: Path) -> None:
    tables = Warehouse(small, str(tmp_path))
    tables.create(LOG_DIRS)

    rows = tables.read(LOG_DIRS)

    assert rows.schema.fieldNames() == LOG_DIRS.schema.fieldNames()
    assert rows.collect() == []
    assert has_few_rows(small)


@pytest.mark.slow
def test_tables_that_spark_may_see_otherwise_are_left_to_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    fill(tables, LOG_DIRS, [{"log_dir": "/a"}])
    with few_rows(spark):
        rows = tables.read(LOG_DIRS)  # as they are now
    for name in ("read_small", "merge_small"):
        monkeypatch.setattr(small_tables, name, _unexpected)
    for name in ("append_small", "create_table"):
        monkeypatch.setattr(spark_tables, name, _unexpected)
    for module in (delta, spark_tables):
        monkeypatch.setattr(module, "shares_folder", lambda *_: False)

    with few_rows(spark):
        tables.create(UNRECOGNIZED_FILES)
        tables.append(LOG_DIRS, rows.withColumn("log_dir", F.lit("/b")))
        tables.merge(LOG_DIRS, rows.withColumn("log_dir", F.lit("/c")))
        assert has_few_rows(spark)
        found = tables.read(LOG_DIRS)
        assert not has_few_rows(spark)

    assert sorted(row["log_dir"] for row in found.collect()) == ["/a", "/b", "/c"]


def _unexpected(*_: object, **__: object) -> None:
    raise AssertionError("not in place of Spark")


@pytest.mark.parametrize(
    "limit", ["SMALL_TABLE_BYTES", "SMALL_TABLE_FILES", "MOST_ROWS", "SMALL_ROWS_BYTES"]
)
def test_a_large_table_is_left_to_delta_and_its_queries_are_compiled(
    spark: SparkSession, broker_build: ReadyBuild, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(at_once, limit, 0)
    tables = Warehouse(spark, str(broker_build.warehouse))
    before = spark.conf.get(COMPILED)

    with few_rows(spark):
        assert spark.conf.get(COMPILED) == "NO_CODEGEN"
        rows = tables.read(SEGMENTS)

        assert not has_few_rows(spark)
        assert spark.conf.get(COMPILED) == before
        assert rows.count() == broker_build.summary.segments_found
    assert spark.conf.get(COMPILED) == before
    assert not has_few_rows(spark)


def test_a_file_that_is_gone_is_named_and_no_table_is_left_to_delta(
    spark: SparkSession, broker_build: ReadyBuild, tmp_path: Path
) -> None:
    copied = Path(shutil.copytree(broker_build.warehouse / "segments", tmp_path / "segments"))
    assert read_small(spark, str(copied)) is not None
    gone = next(copied.glob("*.parquet"))
    gone.unlink()

    with pytest.raises(BrokenTableError, match=f"{gone.name} is not there"):
        read_small(spark, str(copied))
    assert read_small(spark, str(tmp_path / "nowhere")) is None
    assert read_small(spark, "s3://nowhere/segments") is None


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A table to which eleven runs have added a row, and of which Delta wrote a checkpoint."""
    tables = Warehouse(spark, str(tmp_path_factory.mktemp("runs")))
    columns = "cluster string, broker_id int, log_dir string, retention_ms long"
    of_table = rows_of(spark, [("c", 1, "/d", 0)], columns).transform(with_new_columns(LOG_DIRS))
    whole = of_table.withColumns({"was_clean_shutdown": F.lit(True), "has_lock_file": F.lit(False)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(append, "_CHECKPOINT_EVERY", 10)
        for number in range(11):
            run_id = f"run {number}"
            with few_rows(spark):
                kept = tables.keep_run(LOG_DIRS, whole.withColumn("run_id", F.lit(run_id)), run_id)
                assert [row["run_id"] for row in kept.collect()] == [run_id]
    return tables


def test_rows_of_runs_are_kept_as_delta_keeps_them(runs: Warehouse) -> None:
    by_delta = runs.read(LOG_DIRS)

    assert sorted(row["run_id"] for row in by_delta.collect()) == sorted(
        f"run {number}" for number in range(11)
    )
    assert runs.version(LOG_DIRS) == 11
    log = Path(runs.root, "log_dirs", "_delta_log")
    assert (log / f"{10:020d}.checkpoint.parquet").is_file()
    assert by_delta.where("run_id = 'run 3'").count() == 1


@pytest.mark.parametrize("is_few", [True, False])
def test_the_log_of_a_table_that_people_fill_is_noted_at_each_write(
    spark: SparkSession, tmp_path: Path, is_few: bool
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    columns = (F.lit(0).cast(of.dataType).alias(of.name) for of in MIGRATION_EVENTS.schema)
    tables.create(MIGRATION_EVENTS)
    with few_rows(spark) if is_few else nullcontext():
        tables.append(MIGRATION_EVENTS, spark.range(1).select(*columns))

    noted = noted_log(str(tmp_path / MIGRATION_EVENTS.name))

    log = tmp_path / MIGRATION_EVENTS.name / "_delta_log"
    assert noted is not None and noted.version == 1
    assert noted.commit_bytes[1] == (log / f"{1:020d}.json").stat().st_size


def test_rows_that_the_driver_has_are_appended_without_spark_also_beside_many(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    tables.create(METADATA_FEATURES)

    def rows(until: int) -> DataFrame:
        row = ("c", "metadata.version", 25, 5, None, until, None, False)
        return local_rows(spark, [row], METADATA_FEATURES.schema)

    tables.append(METADATA_FEATURES, rows(6))
    with pytest.raises((PySparkException, Py4JJavaError), match="CHECK constraint"):
        tables.append(METADATA_FEATURES, rows(5))

    log = tmp_path / METADATA_FEATURES.name / "_delta_log"
    assert "kafka-segments" in (log / f"{1:020d}.json").read_text()
    assert [row["until_offset"] for row in tables.read(METADATA_FEATURES).collect()] == [6]


def test_a_table_that_was_moved_away_and_is_made_anew_is_no_cut_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = [F.lit(0).cast(of.dataType).alias(of.name) for of in MIGRATION_EVENTS.schema]
    for number in range(2):
        tables = Warehouse(spark, str(tmp_path))
        with few_rows(spark):
            for _ in range(2 - number):
                tables.create(MIGRATION_EVENTS)
                tables.append(MIGRATION_EVENTS, spark.range(1).select(*columns))
            assert tables.read(MIGRATION_EVENTS).count() == 2 - number
        (tmp_path / MIGRATION_EVENTS.name).rename(tmp_path / f"_away-{number}")


def test_null_where_none_may_be_is_refused_by_delta(spark: SparkSession, tmp_path: Path) -> None:
    tables = Warehouse(spark, str(tmp_path))
    rows = spark.range(1).transform(with_new_columns(LOG_DIRS))

    with (
        few_rows(spark),
        pytest.raises((PySparkException, Py4JJavaError), match=r"NOT_NULL|NOT NULL"),
    ):
        tables.keep_run(LOG_DIRS, rows, "run")

    assert tables.version(LOG_DIRS) == 0
