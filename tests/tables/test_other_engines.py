"""The tables are read by deltalake, Polars, DuckDB and, as Iceberg, as docs/engines.md shows.

``REWRITE_ENGINES=1`` puts the output of this run into the page.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from kafka_segments.engine.derived.views import view_of
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.catalog import ALL_TABLES, QUARANTINED_SEGMENTS, SEGMENTS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from support.house.cookbook import PAGE as COOKBOOK
from support.house.cookbook import questions
from support.house.doc_blocks import DOCS, WAREHOUSE, blocks, rewritten, run_page

PAGE = DOCS / "engines.md"
PAGE_TEXT = PAGE.read_text("utf-8")
_DEFAULTS = {
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    "spark.databricks.delta.properties.defaults.columnMapping.mode": "name",
    "spark.databricks.delta.properties.defaults.checkpointPolicy": "v2",
}


@pytest.fixture(scope="module")
def warehouse(
    spark: SparkSession, cookbook_warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A copy of the cookbook's tables, with the first segment of lat-none set aside."""
    copied = tmp_path_factory.mktemp("engines") / "warehouse"
    shutil.copytree(cookbook_warehouse, copied)
    tables = Warehouse(spark, str(copied))
    tables.create(QUARANTINED_SEGMENTS)
    first = tables.read(SEGMENTS).where("topic = 'lat-none' AND base_offset = 0")
    why = {"expectations": F.array(F.lit("segments.x")), "segment": F.lit(None).cast("string")}
    stamp = {"run_id": F.lit("r"), "decided_at": F.current_timestamp()}
    tables.append(QUARANTINED_SEGMENTS, first.select(*SEGMENT_KEYS).withColumns(why | stamp))
    return copied


@pytest.fixture(scope="module")
def printed(warehouse: Path) -> list[str]:
    return run_page(PAGE_TEXT, warehouse)


def test_the_page_shows_what_its_blocks_print(printed: list[str]) -> None:
    if "REWRITE_ENGINES" in os.environ:
        PAGE.write_text(rewritten(PAGE_TEXT, printed), "utf-8")
        return
    assert rewritten(PAGE_TEXT, printed) == PAGE_TEXT
    assert sum(block.output is not None for block in blocks(PAGE_TEXT)) == len(printed) == 7


def test_questions_of_the_cookbook_stand_there_by_their_own_text() -> None:
    asked = {question.title[:2]: question.query for question in questions(COOKBOOK.read_text())}
    shown = " ".join(PAGE_TEXT.split())

    assert " ".join(asked["2."].split()) in shown
    assert " ".join(asked["6."].split()) in shown


def _names(warehouse: Path) -> list[str]:
    return sorted(path.parent.name for path in warehouse.glob("*/_delta_log"))


@pytest.fixture(autouse=True)
def _no_plugin_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


READ = sorted(table.name for table in (*catalog.BUILD_TABLES, QUARANTINED_SEGMENTS))


def test_every_table_of_the_warehouse_is_read_below(warehouse: Path) -> None:
    assert _names(warehouse) == READ


@pytest.mark.parametrize("name", READ)
def test_every_engine_reads_all_rows_and_columns_of_a_table(
    spark: SparkSession, warehouse: Path, name: str
) -> None:
    table = DeltaTable(f"{warehouse}/{name}")
    rows = spark.read.format("delta").load(f"{warehouse}/{name}")
    expected = (rows.columns, rows.count())
    by_polars = pl.read_delta(f"{warehouse}/{name}")
    by_duckdb = duckdb.from_arrow(table.to_pyarrow_dataset())

    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.reader_features) == (1, None)
    assert (by_polars.columns, by_polars.height) == expected
    assert (by_duckdb.columns, len(by_duckdb.fetchall())) == expected


def _exported(warehouse: Path) -> Callable[[str], pl.DataFrame]:
    """Return the page's export of a table as Iceberg, with what Polars reads of it by itself."""
    recipe = next(block.code for block in blocks(PAGE_TEXT) if "pyiceberg" in block.code)
    names: dict[str, Any] = {}
    exec(recipe.partition("\n\nfor name")[0].replace(WAREHOUSE, str(warehouse)), names)

    def export(name: str) -> pl.DataFrame:
        names["export"](name)
        table = names["catalog"].load_table(f"kafka.{name}")
        return pl.scan_iceberg(table, reader_override="native").collect()

    return export


def test_iceberg_holds_the_rows_of_every_table_as_they_are_at_each_export(warehouse: Path) -> None:
    export = _exported(warehouse)
    for name in READ:
        there = pl.read_delta(f"{warehouse}/{name}")
        export(name)
        assert _in_order(export(name)) == _in_order(there), name


def _in_order(rows: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns and the rows: who writes files by several threads orders none."""
    return rows.columns, sorted(map(repr, rows.rows()))


def test_what_is_null_is_null_in_iceberg_and_a_new_column_is_there_too(tmp_path: Path) -> None:
    place, export = str(tmp_path / "warehouse" / "logs"), _exported(tmp_path / "warehouse")
    epochs = pl.List(pl.Struct({"epoch": pl.Int32, "start_offset": pl.Int64}))
    rows = pl.DataFrame(
        {"epochs": [None, [], [{"epoch": 1, "start_offset": 7}]]}, {"epochs": epochs}
    )
    rows.write_delta(place)
    assert export("logs").equals(rows)

    wider = rows.with_columns(high_watermark=pl.Series([1, None, 3]))
    wider.write_delta(place, mode="overwrite", delta_write_options={"schema_mode": "overwrite"})
    assert export("logs").equals(wider)


VALUES: dict[str, Any] = {
    "binary": b"\x00\xff",
    "string": "é",
    "integer": 7,
    "long": 2**62,
    "boolean": True,
    "double": 0.5,
    "timestamp": datetime(2026, 1, 31, 14, 0, 0, 123456, UTC),
}
MEETS_CONSTRAINTS = {"base_offset": 7, "offset": 8, "from_offset": 7}
MEETS_CONSTRAINTS |= {"largest_timestamp_source": "record"}


def _full(kind: DataType) -> Any:
    """Give a value of a type, no part of which is null."""
    if isinstance(kind, StructType):
        return {field.name: _full(field.dataType) for field in kind}
    if isinstance(kind, ArrayType):
        return [_full(kind.elementType)] * 2
    if isinstance(kind, MapType):
        return {_full(kind.keyType): _full(kind.valueType)}
    return VALUES[kind.typeName()]


def _rows_of(table: Table) -> list[dict[str, Any]]:
    """Give a row with all columns, and one with those alone that cannot be null."""
    full = {**_full(table.schema)}
    full |= {name: value for name, value in MEETS_CONSTRAINTS.items() if name in full}
    least = {field.name: None if field.nullable else full[field.name] for field in table.schema}
    return [full, least]


def _by_kinds() -> Iterator[Any]:
    """Give all tables; those are long whose kinds of columns others have before them."""
    seen: set[str] = set()
    for table in ALL_TABLES:
        kinds = {_plain_kind(field.dataType) for field in table.schema} - seen
        yield table if kinds else pytest.param(table, marks=pytest.mark.long)
        seen |= kinds


def _plain_kind(kind: DataType) -> str:
    """Name a type and what it is made of, without the names of fields."""
    if isinstance(kind, StructType):
        return f"struct {sorted({_plain_kind(field.dataType) for field in kind})}"
    if isinstance(kind, ArrayType):
        return f"array {_plain_kind(kind.elementType)}"
    return str(kind.typeName())


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("table", list(_by_kinds()), ids=lambda table: str(table.name))
def test_every_engine_reads_what_is_written_to_any_table_of_the_catalog(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    _check_engines(spark, tmp_path, table)


@pytest.mark.long
@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: str(table.name))
def test_every_engine_reads_what_spark_writes_to_any_table(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    _check_engines(spark, tmp_path, table)


def _check_engines(spark: SparkSession, tmp_path: Path, table: Table) -> None:
    warehouse = tmp_path / "warehouse"
    rows, tables = _rows_of(table), Warehouse(spark, str(warehouse))
    values = [tuple(row.values()) for row in rows]
    tables.create(table)
    tables.append(table, local_rows(spark, values, table.schema))

    there = DeltaTable(tables.uri(table))
    by_polars = pl.read_delta(f"{warehouse}/{table.name}")
    by_duckdb = duckdb.from_arrow(there.to_pyarrow_dataset())

    assert (there.protocol().min_reader_version, there.protocol().reader_features) == (1, None)
    assert _sorted(there.to_pyarrow_dataset().to_table().to_pylist()) == _sorted(rows)
    assert _sorted(by_polars.to_dicts()) == _sorted(rows)
    assert _sorted(_exported(warehouse)(table.name).to_dicts()) == _sorted(rows)
    named = [dict(zip(by_duckdb.columns, row, strict=True)) for row in by_duckdb.fetchall()]
    assert _sorted(named) == _sorted(rows)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows; a map is a dict in each, where Arrow has pairs, and Polars structs of a pair."""
    plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
    return sorted(plain, key=lambda row: sum(value is None for value in row.values()))


def _plain(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        pairs = [tuple(part.values()) for part in value if part.keys() == {"key", "value"}]
        return dict(pairs) if pairs else value
    return value


@pytest.mark.slow
def test_the_filters_of_the_page_give_the_rows_of_the_views(
    spark: SparkSession, warehouse: Path
) -> None:
    tables = Warehouse(spark, str(warehouse))
    keys, raw = list(SEGMENT_KEYS), {}
    for name in ("segments", "offset_index", "quarantined_segments"):
        raw[name] = pl.read_delta(f"{warehouse}/{name}")
    history = raw["segments"].join(raw["quarantined_segments"], on=keys, how="anti")
    present = history.filter(pl.col("vanished_at").is_null())

    def of_view(name: str) -> list[tuple[object, ...]]:
        return sorted(map(tuple, view_of(tables, name).select(*keys).collect()))

    assert sorted(history.select(keys).rows()) == of_view("segments_history")
    assert sorted(present.select(keys).rows()) == of_view("segments")
    assert raw["segments"].height == history.height + 1 == present.height + 2
    entries = raw["offset_index"].join(raw["quarantined_segments"], on=keys, how="anti")
    assert sorted(entries.select(keys).rows()) == of_view("offset_index")


def test_the_change_feed_is_read_by_all_and_is_sparks_own(
    spark: SparkSession, warehouse: Path
) -> None:
    changes = pa.table(DeltaTable(f"{warehouse}/segments").load_cdf(starting_version=0))
    what = ["_commit_version", "_change_type", "topic", "base_offset"]
    by_spark = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .load(f"{warehouse}/segments")
    )
    expected = sorted(map(tuple, by_spark.select(*what).collect()))

    by_polars = pl.DataFrame(changes).select(what)
    by_duckdb = duckdb.from_arrow(changes).select(*what)

    assert sorted(by_polars.rows()) == sorted(by_duckdb.fetchall()) == expected
    assert {row[1] for row in expected} == {"insert", "update_preimage", "update_postimage"}


def test_a_platforms_defaults_do_not_make_a_table_that_others_cannot_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    for key, value in _DEFAULTS.items():
        spark.conf.set(key, value)
    try:
        for table in (SEGMENTS, catalog.OFFSET_INDEX):
            tables.create(table)
    finally:
        for key in _DEFAULTS:
            spark.conf.unset(key)

    for table in (SEGMENTS, catalog.OFFSET_INDEX):
        protocol = DeltaTable(tables.uri(table)).protocol()
        assert (protocol.min_reader_version, protocol.reader_features) == (1, None)


def test_every_new_table_says_so_in_its_properties() -> None:
    assert len(ALL_TABLES) > 15
    for table in ALL_TABLES:
        assert table.properties().items() >= {
            ("delta.enableDeletionVectors", "false"),
            ("delta.columnMapping.mode", "none"),
            ("delta.checkpointPolicy", "classic"),
        }
