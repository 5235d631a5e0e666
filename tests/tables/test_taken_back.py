"""Which commits took rows of a table back, by Spark's and deltalake's own statements."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from pyspark.sql import SparkSession

from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.files.delta.log import list_log
from kafka_segments.files.delta.taken_back import taken_back_since

TABLE = tables.LOG_DIRS


def _rows(uri: str) -> pa.Table:
    return pa.table(DeltaTable(uri).to_pyarrow_table()).sort_by("broker_id")


def _overwrite(uri: str, rows: pa.Table, **options: str) -> None:
    write_deltalake(uri, rows, mode="overwrite", **options)


def _merge_run(uri: str) -> None:
    merger = DeltaTable(uri).merge(_rows(uri), "t.run_id = s.run_id AND s.broker_id = 1", "s", "t")
    merger.when_matched_update({"run_id": "'another'"}).execute()


SET = {"delta.logRetentionDuration": "interval 7 days"}
BY_SPARK = {
    "INSERT INTO {0} SELECT * FROM {0} WHERE broker_id < 0": None,
    "INSERT INTO {0} SELECT * FROM {0} WHERE broker_id = 1": "an append",
    "MERGE INTO {0} t USING (SELECT * FROM {0}) s"
    " ON t.cluster = s.cluster AND t.broker_id = s.broker_id AND t.log_dir = s.log_dir || 's'"
    " WHEN NOT MATCHED THEN INSERT *": "MERGE",
    "OPTIMIZE {0}": None,
    "VACUUM {0}": None,
    "ALTER TABLE {0} SET TBLPROPERTIES ('of.others' = '1')": None,
    "MERGE INTO {0} t USING (SELECT DISTINCT * FROM {0}) s"
    " ON t.cluster = s.cluster AND t.broker_id = s.broker_id AND t.log_dir = s.log_dir"
    " WHEN MATCHED THEN UPDATE SET run_id = 'other'": "MERGE",
    "INSERT OVERWRITE {0} SELECT * FROM {0}": None,
    "INSERT OVERWRITE {0} SELECT a.* FROM {0} a JOIN {0} b ON a.broker_id = 1": "an overwrite",
    "UPDATE {0} SET broker_id = 3": "UPDATE",
    "UPDATE {0} SET broker_id = broker_id": None,
    "INSERT OVERWRITE {0} SELECT * FROM {0} LIMIT 1": "an overwrite",
    "CREATE OR REPLACE TABLE {0} USING DELTA AS SELECT * FROM {0}": None,
    "CREATE OR REPLACE TABLE {0} USING DELTA AS SELECT * FROM {0} WHERE broker_id = 1": (
        "CREATE OR REPLACE TABLE AS SELECT"
    ),
    "RESTORE TABLE {0} TO VERSION AS OF 1": "RESTORE",
    "MERGE INTO {0} t USING (SELECT 1 AS id) s ON t.broker_id = s.id"
    " WHEN MATCHED THEN UPDATE SET run_id = 'another'": "MERGE",
    "DELETE FROM {0} WHERE broker_id = 1": "DELETE",
    "TRUNCATE TABLE {0}": "TRUNCATE",
    "RESTORE {0} TO VERSION AS OF 1": "RESTORE",
    "REPLACE TABLE {0} (id INT) USING DELTA": "REPLACE TABLE",
}
BY_DELTALAKE: dict[str, tuple[Callable[[str], object], str | None]] = {
    "append": (lambda uri: write_deltalake(uri, _rows(uri), mode="append"), "an append"),
    "append of no rows": (
        lambda uri: write_deltalake(uri, _rows(uri).slice(0, 0), mode="append"),
        None,
    ),
    "compact": (lambda uri: DeltaTable(uri).optimize.compact(), None),
    "property": (lambda uri: DeltaTable(uri).alter.set_table_properties(SET), None),
    "column": (lambda uri: DeltaTable(uri).alter.add_columns([Field("own", "string")]), None),
    "overwrite by the same": (lambda uri: _overwrite(uri, _rows(uri)[::-1]), None),
    "overwrite of some": (
        lambda uri: _overwrite(uri, _rows(uri).slice(0, 1), predicate="broker_id = 1"),
        "an overwrite",
    ),
    "merge": (_merge_run, "MERGE"),
    "overwrite by as many": (
        lambda uri: _overwrite(uri, _rows(uri).take([0, 0, 0])),
        "an overwrite",
    ),
    "overwrite by fewer": (lambda uri: _overwrite(uri, _rows(uri).slice(0, 1)), "an overwrite"),
    "restore": (lambda uri: DeltaTable(uri).restore(1), "RESTORE"),
    "update": (lambda uri: DeltaTable(uri).update(updates={"broker_id": "3"}), "UPDATE"),
    "delete": (lambda uri: DeltaTable(uri).delete("broker_id = 3"), "DELETE"),
}
"""What is done, and what it is called; None: it leaves the rows that there were."""


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Warehouse:
    """A table after each kind of write that verbs make."""
    root = Warehouse(spark, str(tmp_path))
    root.create(TABLE)
    columns = TABLE.schema
    made = [{"cluster": "c", "broker_id": id_, "log_dir": "/d"} for id_ in (1, 2)]
    told = {"was_clean_shutdown": True, "has_lock_file": False, "run_id": "r"}
    values = [tuple({**row, **told}.get(name) for name in columns.fieldNames()) for row in made]
    rows = spark.createDataFrame(values, columns)
    root.append(TABLE, rows)
    root.merge(TABLE, rows, only_in="t.broker_id IN (1, 2)")
    root.replace(TABLE, rows, where="startswith(log_dir, '/d')")
    root.optimize(TABLE)
    return root


def _by_each(
    root: Warehouse, acts: Iterable[tuple[str, Callable[[], object]]]
) -> dict[str, list[str]]:
    """Return by what rows were taken back in each act."""
    uri, found, known = f"{root.root}/{TABLE.name}", {}, 0
    for name, act in acts:
        act()
        told = [
            commit.operation if commit.is_sure else f"perhaps {commit.operation}"
            for commit in taken_back_since(list_log(uri), -1)
        ]
        found[name], known = told[known:], len(told)
    return found


@pytest.mark.slow
def test_what_takes_rows_back_is_told_from_what_verbs_write(
    root: Warehouse, spark: SparkSession
) -> None:
    table = f"delta.`{root.root}/{TABLE.name}`"
    by_spark = [(text, partial(spark.sql, text.format(table))) for text in BY_SPARK]

    found = _by_each(root, [("verbs", lambda: None), *by_spark])

    assert found == {
        "verbs": [],
        **{text: [named] if named else [] for text, named in BY_SPARK.items()},
    }


def test_what_takes_rows_back_by_deltalake_is_told_as_well(root: Warehouse) -> None:
    uri = f"{root.root}/{TABLE.name}"

    found = _by_each(root, [(name, partial(act, uri)) for name, (act, _) in BY_DELTALAKE.items()])

    assert found == {name: [named] if named else [] for name, (_, named) in BY_DELTALAKE.items()}
