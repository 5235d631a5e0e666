"""Which table lacks the column for want of which a verb failed."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from kafka_segments.engine.tables.catalog import (
    ALL_TABLES,
    INTERNAL_RECORDS,
    LOG_DIRS,
    LOGS,
    RETENTION_PLANS,
    SEGMENTS,
    Table,
)
from kafka_segments.engine.tables.lacking_columns import (
    lacking_column,
    misplaced_table,
    retyped_column,
)
from kafka_segments.engine.tables.upgrades import upgraded
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.create import create_table

_SPARKS = "[UNRESOLVED_COLUMN] A column, variable with name `{}` cannot be resolved."
_ARROWS = "'Field \"{}\" does not exist in schema'"


def _made(root: Path, table: Table, *, without: str = "") -> str:
    fields = [field for field in table.schema if field.name != without]
    uri = str(root / table.name)
    create_table(uri, schema=StructType(fields).json(), properties={}, clustered_by=())
    return uri


@pytest.mark.parametrize("said", [_SPARKS, _ARROWS])
def test_a_verb_that_finds_no_column_names_the_table_that_lacks_it(
    tmp_path: Path, said: str
) -> None:
    _made(tmp_path, SEGMENTS)
    logs = _made(tmp_path, LOGS, without="high_watermark")
    plans = _made(tmp_path, RETENTION_PLANS, without="files")
    records = _made(tmp_path, INTERNAL_RECORDS, without="key_json")

    names = ("high_watermark", "files", "key_json")
    told = [lacking_column(str(tmp_path), said.format(name)) for name in names]

    assert told[0] == (
        f"table {logs} has no column high_watermark. Restore it from a copy, or move {logs} away:"
        " `kafka-segments build --full` makes it anew"
    )
    assert told[1] is not None
    assert told[1].startswith(f"table {plans} has no column files. ")
    assert told[1].endswith(" away: its rows are lost")
    assert told[2] is not None
    assert f"move {records} away: `kafka-segments internals read` of the disks" in told[2]


def test_another_failure_is_of_no_table(tmp_path: Path) -> None:
    _made(tmp_path, LOGS, without="high_watermark")

    said = (_SPARKS.format("damage"), _SPARKS.format("of_a_person"), "high_watermark")
    assert [lacking_column(str(tmp_path), text) for text in said] == [None] * 3


def test_a_column_of_another_kind_of_type_is_named_and_a_narrower_number_is_none(
    tmp_path: Path,
) -> None:
    _made(tmp_path, LOGS)
    uri, told = str(tmp_path / SEGMENTS.name), []
    narrower = {"size_bytes": IntegerType()}
    for other in (narrower, {**narrower, "next_offset": StringType()}):
        fields = [
            StructField(one.name, other.get(one.name, one.dataType)) for one in SEGMENTS.schema
        ]
        shutil.rmtree(uri, ignore_errors=True)
        create_table(uri, schema=StructType(fields).json(), properties={}, clustered_by=())
        told.append(retyped_column(str(tmp_path)))

    assert told == [
        None,
        f"table {uri} was altered: its column next_offset is string, number expected. Restore it"
        f" from a copy, or move {uri} away: `kafka-segments build --full` makes it anew",
    ]


def test_of_exchanged_tables_it_is_said_which_is_in_whose_folder(tmp_path: Path) -> None:
    logs = _made(tmp_path, LOGS)
    assert misplaced_table(str(tmp_path)) is None

    (tmp_path / "logs").rename(tmp_path / "log_dirs")
    told = (
        f"{tmp_path / 'log_dirs'} holds table logs, not log_dirs: folders were renamed, or"
        f" exchanged. Rename it to {logs}, and what lies there to its own name"
    )

    assert misplaced_table(str(tmp_path)) == told
    with pytest.raises(UsageError) as refused:
        upgraded(LOGS.schema, LOG_DIRS.schema, uri=str(tmp_path / "log_dirs"))
    assert str(refused.value) == told


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_no_table_is_taken_for_another_one(tmp_path: Path, table: Table) -> None:
    assert upgraded(table.schema, table.schema, uri=str(tmp_path / table.name)) is None
