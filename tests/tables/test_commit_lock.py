"""Each commit to a table on a local disk is made under its lock, whoever of ours makes it.

Spark's commit asks whether a version is there and then renames, and a rename replaces: without the
lock, what another run committed in between is lost.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables import upgrades
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.delta import commit as delta_commit
from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.folder_lock import commit_lock
from support.house.at_length import long_but

TABLE = tables.LOG_DIRS
WRITES: dict[str, Callable[[Warehouse, DataFrame], None]] = {
    "append": lambda root, rows: root.append(TABLE, rows),
    "merge": lambda root, rows: root.merge(TABLE, rows),
    "replace": lambda root, rows: root.replace(TABLE, rows, where="cluster = 'c'"),
}
CARES: dict[str, Callable[[Warehouse], None]] = {
    "optimize": lambda root: root.optimize(TABLE),
    "vacuum": lambda root: root.vacuum(TABLE, hours=168),
    "constraint": lambda root: upgrades._renew_constraints(
        root.spark,
        f"{root.root}/{tables.SEGMENTS.name}",
        "by-spark",
        tables.SEGMENTS,
        {f"delta.constraints.{name}": "false" for name, _ in tables.SEGMENTS.constraints},
    ),
}


def _looker() -> Callable[[str], str]:
    """Return what tells who has a lock, in a form that workers take: they cannot import this."""
    modules = fcntl, os

    def who_has(lock):  # type: ignore[no-untyped-def]  # Spark would look at types
        fcntl, os = modules
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "a writer"
        finally:
            os.close(descriptor)
        return "nobody"

    return who_has


_who_has = _looker()


def _lock(warehouse: Path, table: str) -> str:
    folder = warehouse / "_locks"
    folder.mkdir(exist_ok=True)
    return str(folder / f"{table}.commits")


@pytest.mark.slow
@pytest.mark.parametrize("write", long_but(WRITES, "merge"))
def test_spark_writes_rows_under_the_lock(write: str, spark: SparkSession, tmp_path: Path) -> None:
    root, lock = Warehouse(spark, str(tmp_path)), _lock(tmp_path, TABLE.name)
    root.create(TABLE)
    seen = F.udf(_looker(), "string").asNondeterministic()
    key = {"cluster": F.lit("c"), "broker_id": F.lit(1), "log_dir": F.lit("/d")}
    columns = {
        field.name: key.get(field.name, F.lit(None).cast(field.dataType)) for field in TABLE.schema
    }
    columns |= {"was_clean_shutdown": F.lit(True), "has_lock_file": F.lit(False)}
    rows = spark.range(1).select(
        *(column.alias(name) for name, column in (columns | {"run_id": seen(F.lit(lock))}).items())
    )

    WRITES[write](root, rows)

    assert [row["run_id"] for row in root.read(TABLE).collect()] == ["a writer"]
    assert _who_has(lock) == "nobody"


def _altering(table: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what alters the table once, in a form that workers take: they cannot import this."""

    def alter(batches):  # type: ignore[no-untyped-def]  # Spark would look at types
        from contextlib import suppress

        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if DeltaTable(table).metadata().configuration.get("theirs") is None:
            with suppress(DeltaError):  # a merge reads its rows twice at once
                DeltaTable(table).alter.set_table_properties({"theirs": "1"}, False)
        yield from batches

    return alter


@pytest.mark.slow
@pytest.mark.parametrize("write", long_but(WRITES, "merge"))
def test_rows_are_written_once_where_somebody_alters_the_table_meanwhile(
    write: str, spark: SparkSession, tmp_path: Path
) -> None:
    root = Warehouse(spark, str(tmp_path))
    root.create(TABLE)
    told = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "run_id": "r"}
    told |= {"was_clean_shutdown": True, "has_lock_file": False}
    row = tuple(told.get(name) for name in TABLE.schema.fieldNames())
    rows = spark.createDataFrame([row], TABLE.schema)
    uri = str(tmp_path / TABLE.name)

    WRITES[write](root, rows.mapInArrow(_altering(uri), rows.schema))

    assert DeltaTable(uri).history()[1]["operation"] == "SET TBLPROPERTIES"
    assert root.read(TABLE).count() == 1


class _Session:
    """Takes statements in place of a session, and notes who has the lock meanwhile."""

    def __init__(self, lock: str) -> None:
        self._lock = lock
        self.seen: set[str] = set()
        self.conf = Mock(**{"get.return_value": None})

    def sql(self, _: str) -> None:
        self.seen.add(_who_has(self._lock))


@pytest.mark.parametrize("care", CARES)
def test_spark_cares_for_tables_under_the_lock(care: str, tmp_path: Path) -> None:
    table = tables.SEGMENTS if care == "constraint" else TABLE
    session = _Session(_lock(tmp_path, table.name))

    CARES[care](Warehouse(cast("SparkSession", session), str(tmp_path)))

    assert session.seen == {"a writer"}


def test_our_own_commits_are_made_under_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = _lock(tmp_path, "segments")
    seen = []

    def publish(target: Place, _: bytes) -> None:
        seen.append((target.path, _who_has(lock)))

    monkeypatch.setattr(delta_commit, "publish_once", publish)

    delta_commit.publish_commit(str(tmp_path / "segments"), 7, [])

    assert seen == [(str(tmp_path / "segments" / "_delta_log" / f"{7:020d}.json"), "a writer")]


def test_tables_do_not_wait_for_each_other_and_stores_have_no_lock(tmp_path: Path) -> None:
    lock = _lock(tmp_path, "other")
    with commit_lock(str(tmp_path / "segments")), commit_lock("s3://bucket/warehouse/segments"):
        assert _who_has(lock) == "nobody"
