"""Rows of a small table replaced by a commit of what changed, held against the rows themselves."""

import random
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables import spark_tables
from kafka_segments.engine.tables.catalog import METADATA_FEATURES
from kafka_segments.engine.tables.delta import Warehouse

pytestmark = pytest.mark.spark

ROUNDS = 12
Row = tuple[str, str, int, int, int | None, int | None, int | None, bool]
NAMES = METADATA_FEATURES.schema.fieldNames()


def row(cluster: str, name: str, level: int, until: int | None = None) -> Row:
    return cluster, name, level, 0, None, until, None, False


class Filled:
    """A table with rows of two clusters."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.tables = Warehouse(spark, str(folder))
        self.tables.create(METADATA_FEATURES)
        self.folder = str(folder / METADATA_FEATURES.name)

    def append(self, *rows: Row) -> None:
        found = local_rows(self.tables.spark, rows, METADATA_FEATURES.schema)
        self.tables.append(METADATA_FEATURES, found)

    def fill(self, cluster: str, *rows: Row, may_be_same: bool = True) -> None:
        found = local_rows(self.tables.spark, rows, METADATA_FEATURES.schema)
        where = f"cluster = '{cluster}'"
        self.tables.fill_changed(METADATA_FEATURES, found, where=where, may_be_same=may_be_same)

    def rows(self) -> list[Row]:
        found = DeltaTable(self.folder).to_pyarrow_table(columns=NAMES)
        return sorted((tuple(of.values()) for of in found.to_pylist()), key=repr)  # type: ignore[misc]

    def files(self) -> set[str]:
        return set(DeltaTable(self.folder).file_uris())

    @property
    def version(self) -> int | None:
        return self.tables.version(METADATA_FEATURES)

    def last_writer(self) -> str:
        told = DeltaTable(self.folder).history(1)[0]
        return str(told.get("engineInfo"))


@pytest.mark.parametrize("is_few", [True, False])
def test_the_rows_are_those_given_and_what_did_not_change_is_not_written(
    spark: SparkSession, tmp_path: Path, seed: int, is_few: bool
) -> None:
    draw, filled = random.Random(seed), Filled(spark, tmp_path)
    others = [row("other", "a", 1)]
    filled.append(*others)
    (of_others,) = filled.files()
    given: list[Row] = []
    for _ in range(ROUNDS):
        before, version = given, filled.version
        if draw.random() < 0.7:
            names = draw.sample("abcdefgh", draw.randrange(8))
            given = [row("c", name, draw.randrange(2)) for name in names]
        if is_few:
            with few_rows(spark):
                filled.fill("c", *given)
        else:
            filled.fill("c", *given)

        assert filled.rows() == sorted([*others, *given], key=repr)
        assert of_others in filled.files()
        assert (filled.version == version) is (sorted(before) == sorted(given))


def test_another_runs_commit_that_came_between_is_replaced_once_more(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = Filled(spark, tmp_path)
    filled.append(row("c", "a", 1))
    replace_small = spark_tables.replace_small

    def late(*given: object, **named: object) -> bool:
        monkeypatch.setattr(spark_tables, "replace_small", replace_small)
        filled.append(row("c", "of another run", 1))
        return replace_small(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(spark_tables, "replace_small", late)
    filled.fill("c", row("c", "a", 2))

    assert filled.rows() == [row("c", "a", 2)]


def test_rows_of_one_key_twice_are_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    filled = Filled(spark, tmp_path)
    filled.append(row("c", "a", 1))
    filled.append(row("c", "a", 1))

    filled.fill("c", row("c", "a", 1))

    assert filled.rows() == [row("c", "a", 1)]
    assert "kafka-segments" not in filled.last_writer()
