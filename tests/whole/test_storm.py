"""Builds in a storm: killed, on logs that grow and are cut, beside what others do to the tables."""

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.scan import run
from support.logs.growing_logs import GrowingLogs
from support.spark.connect_client import Done, run_verb
from support.spark.stored_builds import NOW_MS, counted_in_tables

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]
SEED = int(os.environ.get("STORM_SEED", "20261129"))
ROUNDS = int(os.environ.get("STORM_ROUNDS", "20"))  # of three builds
TABLES = ("segments", "logs", "offset_index", "time_index")
STATEMENTS = (
    "OPTIMIZE {table}",
    "VACUUM {table}",
    "RESTORE TABLE {table} TO VERSION AS OF {before}",
    "DELETE FROM {table} WHERE partition % 2 = 0",
    "UPDATE {table} SET broker_id = broker_id",
    "INSERT OVERWRITE {table} SELECT * FROM {table} WHERE partition % 2 = 1",
    "INSERT OVERWRITE {table} SELECT * FROM {table}",
    "INSERT INTO {table} SELECT * FROM {table} LIMIT 9",
    "ALTER TABLE {table} SET TBLPROPERTIES ('of.others' = '{before}')",
)
WRITES = ("merge", "append", "fill")
"""Of a warehouse: before one of these something happens."""
MOST_WRITES = 8
SAID = re.compile(r": rows were (taken back|added) by ")


class Storm:
    """What happens to the tables of a warehouse in a round, drawn.

    ``took_rows``: somebody left other rows than there were.
    """

    def __init__(self, spark: SparkSession, tables: Path, rng: random.Random) -> None:
        self._spark, self._tables, self._rng = spark, tables, rng
        self.happened: list[str] = []
        self.took_rows = False

    def begin(self, number: int) -> None:
        """Begin a round."""
        self.happened, self.took_rows = [f"seed {SEED}, round {number}"], False

    def strike(self) -> None:
        """Kill the build that asks, or let somebody else do something to a table."""
        if self._rng.random() < 0.3:
            self.happened.append("killed")
            raise RuntimeError("killed")
        self.change()

    def change(self) -> None:
        """Let somebody else do something to a table."""
        table = self._tables / self._rng.choice(TABLES)
        before = max(0, DeltaTable(table).version() - self._rng.randrange(3))
        words = self._rng.choice(STATEMENTS).format(table=f"delta.`{table}`", before=before)
        self.happened.append(words)
        rows = _rows(table)
        self._spark.sql(words)
        self.took_rows |= _rows(table) != rows


def test_tables_are_right_after_each_build_of_a_storm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_order = lambda max_workers: ThreadPoolExecutor(min(max_workers, 1))  # noqa: E731
    monkeypatch.setattr(run, "ThreadPoolExecutor", in_order)
    rng = random.Random(SEED)
    logs, tables = GrowingLogs(tmp_path / "logs", rng), tmp_path / "wh"
    storm = Storm(spark, tables, rng)
    build = ["build", "--source", str(tmp_path / "logs")]
    _run(build, tables)
    read = dict.fromkeys(TABLES, 0)

    for number in range(ROUNDS):
        storm.begin(number)
        for _ in range(rng.randrange(1, 4)):
            logs.grow()
        if rng.random() < 0.3:
            logs.cut()
        with _before_write(rng.randrange(MOST_WRITES), storm.strike):
            beside = _run(build, tables)
        said = [storm.happened, beside.err]
        assert beside.status == (3 if "killed" in storm.happened else storm.took_rows), said
        assert bool(SAID.search(beside.err)) == storm.took_rows, said
        if beside.status == 0:  # what is not said has not happened
            assert counted_in_tables(spark, tables) == logs.counted(), said
        if len(storm.happened) == 1:
            storm.change()
        if rng.random() < 0.3:
            storm.happened.append(rng.choice(["compact", "validate"]))
            said.append(_run(storm.happened[-1:], tables).err)

        after, unchanged = _run(build, tables), _run(build, tables)

        said += [after.err, unchanged.err]
        assert counted_in_tables(spark, tables) == logs.counted(), said
        is_said = bool(SAID.search(after.err))
        assert (after.status, is_said) == (storm.took_rows, storm.took_rows), said
        assert (unchanged.status, unchanged.out) == (0, ""), said
        versions = {name: range(of + 1, _version(tables / name) + 1) for name, of in read.items()}
        _read_by_three(spark, tables, versions, said)
        read = {name: _version(tables / name) for name in TABLES}


def _run(words: list[str], warehouse: Path) -> Done:
    named = ["--warehouse", str(warehouse), "--now-ms", str(NOW_MS), "--output", "json"]
    return run_verb([*words, *named])


def _version(table: Path) -> int:
    return DeltaTable(table).version()


def _rows(table: Path) -> Counter[str]:
    return Counter(map(str, DeltaTable(table).to_pyarrow_table().to_pylist()))


@contextmanager
def _before_write(number: int, act: Callable[[], None]) -> Iterator[None]:
    """Let something happen before a write of tables, counted from 0."""
    writes = iter(range(10**6))

    def written(write: Callable[..., Any]) -> Callable[..., Any]:
        def after_it(*given: Any, **options: Any) -> Any:
            if next(writes) == number:
                act()
            return write(*given, **options)

        return after_it

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(Warehouse, name, written(getattr(Warehouse, name)))
        yield


def _read_by_three(
    spark: SparkSession, tables: Path, versions: dict[str, range], said: list[object]
) -> None:
    """Spark, deltalake and DuckDB read the same rows of each of some versions."""
    asked = [(name, version) for name, some in versions.items() for version in some]
    by_spark: Counter[tuple[Any, ...]] = Counter()
    if asked:
        frames = [_counted(spark, tables, *one) for one in asked]
        by_spark.update(map(tuple, reduce(DataFrame.unionByName, frames).collect()))
    by_duckdb, by_deltalake = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for name, version in asked:
        at = DeltaTable(tables / name, version=version)
        rows = duckdb.from_arrow(at.to_pyarrow_dataset())
        found = rows.aggregate("topic, partition, count(*)", "topic, partition").fetchall()
        by_duckdb.update((name, version, *row) for row in found)
        query = "SELECT topic, partition, count(*) FROM rows GROUP BY topic, partition"
        queried = pa.table(QueryBuilder().register("rows", at).execute(query).read_all())
        by_deltalake.update(
            (name, version, *row) for row in zip(*queried.to_pydict().values(), strict=True)
        )

    assert by_spark == by_duckdb == by_deltalake, said


def _counted(spark: SparkSession, tables: Path, name: str, version: int) -> DataFrame:
    rows = spark.read.format("delta").option("versionAsOf", version).load(str(tables / name))
    of = (F.lit(name).alias("name"), F.lit(version).alias("version"))
    return rows.groupBy("topic", "partition").count().select(*of, "topic", "partition", "count")
