"""Tables made without Spark, held against those that Delta makes of the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.catalog import LOG_DIRS, OFFSET_INDEX, SEGMENTS, Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.statements import create_statement

KINDS = (SEGMENTS, OFFSET_INDEX, LOG_DIRS, catalog.METADATA_TOPICS)
LONG = "a-topic-with-a-name-of-more-than-32-signs"
OTHERS = [
    table for table in vars(catalog).values() if isinstance(table, Table) and table not in KINDS
]


def _first_commit(folder: Path) -> dict[str, Any]:
    """Return what a table's first commit says, without what is another each time."""
    text = (folder / "_delta_log" / f"{0:020d}.json").read_text("utf-8")
    said: dict[str, Any] = {}
    for line in text.splitlines():
        said |= json.loads(line)
    metadata, protocol = said["metaData"], said["protocol"]
    metadata["schemaString"] = json.loads(metadata["schemaString"])
    features = sorted(protocol.pop("writerFeatures", []))
    clustering = json.loads(said.get("domainMetadata", {}).get("configuration", "null"))
    return {
        "metadata": {**metadata, "id": None, "createdTime": None},
        "protocol": {**protocol, "features": features},
        "clustering": clustering,
        "operation": said["commitInfo"]["operation"],
    }


def _check(spark: SparkSession, folder: Path, table: Table) -> None:
    spark.sql(create_statement(table, Warehouse(spark, str(folder / "delta")).uri(table)))
    Warehouse(spark, str(folder / "ours")).create(table)

    ours, deltas = folder / "ours" / table.name, folder / "delta" / table.name
    assert _first_commit(ours) == _first_commit(deltas)
    assert list((deltas / "_delta_log").glob("*.crc"))
    assert not list((ours / "_delta_log").glob("*.crc"))  # so it was not Delta


@pytest.mark.parametrize("table", KINDS, ids=lambda table: table.name)
def test_the_first_commit_says_what_deltas_does(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    _check(spark, tmp_path, table)


@pytest.mark.long
@pytest.mark.parametrize("table", OTHERS, ids=lambda table: table.name)
def test_the_first_commit_of_any_other_table_too(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    _check(spark, tmp_path, table)


def _entry(spark: SparkSession, position: int) -> DataFrame:
    """Return a row of ``offset_index``, of a topic whose name statistics do not hold whole."""
    of_columns = {"topic": f"'{LONG}'", "position": str(position)}
    columns = (
        f"cast({of_columns.get(field.name, '1')} AS {field.dataType.simpleString()}) {field.name}"
        for field in OFFSET_INDEX.schema
    )
    return spark.sql(f"SELECT {', '.join(columns)}")


@pytest.mark.slow
def test_delta_writes_into_a_table_so_made_and_holds_it_to_its_constraints(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Warehouse(spark, str(tmp_path))
    tables.create(OFFSET_INDEX)

    tables.append(OFFSET_INDEX, _entry(spark, 1))

    assert tables.version(OFFSET_INDEX) == 1
    assert tables.read(OFFSET_INDEX).where(f"topic = '{LONG}'").count() == 1
    with pytest.raises(Exception, match="position_not_negative"):
        tables.append(OFFSET_INDEX, _entry(spark, -1))


@pytest.mark.slow
def test_rows_are_appended_without_delta_where_they_meet_the_constraints(
    spark: SparkSession, tmp_path: Path
) -> None:
    with few_rows(spark):
        tables = Warehouse(spark, str(tmp_path))
        tables.create(OFFSET_INDEX)
        tables.append(OFFSET_INDEX, _entry(spark, 1))
        with pytest.raises(Exception, match="position_not_negative"):
            tables.append(OFFSET_INDEX, _entry(spark, -1))
        tables.append(OFFSET_INDEX, _entry(spark, 2))

    log = tmp_path / OFFSET_INDEX.name / "_delta_log"
    assert sorted(file.name for file in log.glob("0*")) == [f"{n:020d}.json" for n in range(3)]
    tables = Warehouse(spark, str(tmp_path))
    assert tables.read(OFFSET_INDEX).where(f"topic = '{LONG}'").count() == 2
    tables.optimize(OFFSET_INDEX)  # by the columns clustered by, which needs their statistics
    assert tables.file_totals(OFFSET_INDEX)[0] == 1
    assert tables.read(OFFSET_INDEX).where(f"topic >= '{LONG}'").count() == 2
