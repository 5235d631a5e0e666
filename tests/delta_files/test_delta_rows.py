"""Rows of Delta tables read without Spark, held against what another engine reads."""

import json
import operator
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from pyspark.sql import SparkSession

from kafka_segments.errors import BrokenTableError
from kafka_segments.files.delta.append import append_rows
from kafka_segments.files.delta.rows import (
    file_totals,
    is_opened_in_place,
    open_table,
    read_small_files,
    read_small_table,
)
from kafka_segments.files.storage.hadoop_checksums import checksums_beside
from support.house.at_length import long_but
from support.spark.altered_tables import ALTERATIONS
from support.spark.rows_of import rows_of

LARGE = 1 << 30


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of four commits: rows appended, some deleted, a column added."""
    path = str(tmp_path / "a table é#(1)")
    for first in (0, 10):
        rows = {"id": list(range(first, first + 5)), "name": ["x"] * 5}
        write_deltalake(path, pa.table(rows), mode="append")
    DeltaTable(path).delete("id = 11")
    more = pa.table({"id": [20], "name": ["y"], "late": [1.5]})
    write_deltalake(path, more, mode="append", schema_mode="merge")
    return path


def _rows(path: str, **options: Any) -> list[dict[str, Any]] | None:
    asked: dict[str, Any] = {"columns": ("id", "name", "late"), "most_bytes": LARGE, **options}
    read = read_small_table(path, **asked)
    return None if read is None else sorted(read, key=lambda row: int(row["id"]))


def test_the_last_version_is_read_and_a_column_that_a_file_has_not_is_null(table: str) -> None:
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    expected = sorted(rows, key=lambda row: int(row["id"]))

    assert _rows(table) == expected
    assert _rows(table, columns=("id",), where=("name", "x")) == [
        {"id": row["id"]} for row in expected if row["name"] == "x"
    ]


def test_a_checkpoint_stands_for_the_commits_before_it(table: str) -> None:
    before = _rows(table)
    DeltaTable(table).create_checkpoint()
    for commit in Path(table, "_delta_log").glob("*[012].json"):
        commit.unlink()

    assert _rows(table) == before
    write_deltalake(
        table, pa.table({"id": [30], "name": ["z"]}), mode="append", schema_mode="merge"
    )
    assert _rows(table) == [*(before or []), {"id": 30, "name": "z", "late": None}]


def test_files_and_their_bytes_are_counted_by_the_log_alone(table: str, tmp_path: Path) -> None:
    sizes = [Path(unquote(file)).stat().st_size for file in DeltaTable(table).file_uris()]

    assert file_totals(table) == (len(sizes), sum(sizes))
    for file in Path(table).glob("*.parquet"):
        file.unlink()
    assert file_totals(table) == (len(sizes), sum(sizes))
    assert file_totals(str(tmp_path / "none")) is None


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_whole_files_are_read_as_they_are_beside_the_schema_of_the_table(
    table: str, has_checkpoint: bool
) -> None:
    if has_checkpoint:
        DeltaTable(table).create_checkpoint()
        Path(table, "_delta_log", f"{0:020d}.json").unlink()

    found = read_small_files(table, most_bytes=LARGE, most_files=3, most_rows=LARGE)

    assert found is not None
    fields = json.loads(found.schema)["fields"]
    assert [field["name"] for field in fields] == ["id", "name", "late"]
    assert sorted(file.column_names for file in found.files) == [
        *([["id", "name"]] * 2),
        ["id", "name", "late"],
    ]
    ids = [number for file in found.files for number in file["id"].to_pylist()]
    assert sorted(ids) == [row["id"] for row in _rows(table) or []]


def test_a_table_of_many_files_or_rows_or_with_a_long_log_is_left_to_spark(table: str) -> None:
    log_bytes = sum(file.stat().st_size for file in Path(table, "_delta_log").iterdir())

    def is_read(most_bytes: int, most_files: int, most_rows: int) -> bool:
        limits = {"most_bytes": most_bytes, "most_files": most_files, "most_rows": most_rows}
        return read_small_files(table, **limits) is not None

    rows = len(_rows(table) or [])
    assert rows > 3
    assert is_read(log_bytes, 3, rows)
    assert not is_read(LARGE, 2, rows)
    assert not is_read(log_bytes - 1, 3, rows)
    assert not is_read(log_bytes, 3, rows - 1)


def test_no_table_and_a_large_table_are_left_to_spark(table: str, tmp_path: Path) -> None:
    assert _rows(str(tmp_path / "nowhere")) is None
    assert _rows(table, most_bytes=100) is None


def _asked(table: str) -> list[Callable[[], object]]:
    """Return all that reads a table's rows, or its log."""
    return [
        lambda: _rows(table),
        lambda: read_small_files(table, most_bytes=LARGE, most_files=9, most_rows=99),
        lambda: file_totals(table),
        lambda: open_table(table),
    ]


@pytest.mark.parametrize("harm", ["gap", "zeros in a checkpoint", "checkpoint is a folder"])
def test_a_log_that_cannot_be_read_is_not_left_to_spark(table: str, harm: str) -> None:
    log = Path(table, "_delta_log")
    if harm == "gap":
        log.joinpath(f"{1:020d}.json").unlink()
        said = rf"{1:020d}\.json is not there, later commits are"
    else:
        DeltaTable(table).create_checkpoint()
        checkpoint = next(log.glob("*.checkpoint.parquet"))
        size = checkpoint.stat().st_size
        checkpoint.unlink()
        if harm == "zeros in a checkpoint":
            checkpoint.write_bytes(bytes(size))
        else:
            checkpoint.mkdir()
        said = rf"{checkpoint.name} "

    for asked in _asked(table):
        with pytest.raises(BrokenTableError, match=said):
            asked()


@pytest.mark.parametrize("harm", ["gone", "zeros", "a folder"])
def test_a_file_without_its_rows_is_not_left_to_spark(table: str, harm: str) -> None:
    file = Path(unquote(DeltaTable(table).file_uris()[0]))
    size = file.stat().st_size
    file.unlink()
    if harm == "zeros":
        file.write_bytes(bytes(size))
    if harm == "a folder":
        file.mkdir()

    for asked in _asked(table)[:2]:
        with pytest.raises(BrokenTableError, match=file.name):
            asked()


@pytest.mark.slow
@pytest.mark.parametrize("alteration", long_but(ALTERATIONS, "deletion vectors", "restored"))
def test_the_rows_of_a_table_that_others_altered(
    spark: SparkSession, tmp_path: Path, alteration: str
) -> None:
    path, columns = str(tmp_path / "logs"), "id long, topic string, ids array<string>"
    rows = [(number, f"t-{number % 3}", [str(number), None]) for number in range(9)]
    rows_of(spark, rows, columns).coalesce(1).write.format("delta").save(path)
    ALTERATIONS[alteration](spark, path)

    read = _read_by_each(path, columns=("id", "topic", "ids", "none"))

    if alteration == "widened types":  # which deltalake 1.6.6 does not read
        assert read == (None, None)
        return
    expected = [{"id": i, "topic": t, "ids": of, "none": None} for i, t, of in rows]
    assert read == (expected, [{k: row[k] for k in ("id", "topic", "ids")} for row in expected])
    assert read_small_files(path, most_bytes=LARGE, most_files=LARGE, most_rows=8) is None


def _read_by_each(
    path: str, columns: tuple[str, ...]
) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]] | None]:
    """Read a table by either function, in the order of ids."""
    table = read_small_table(path, columns, most_bytes=LARGE)
    files = read_small_files(path, columns, most_bytes=LARGE, most_files=LARGE, most_rows=9)
    of_files = None if files is None else [row for file in files.files for row in file.to_pylist()]
    in_order = operator.itemgetter("id")
    return (
        None if table is None else sorted(table, key=in_order),
        None if of_files is None else sorted(of_files, key=in_order),
    )


@pytest.mark.slow
def test_a_file_of_an_altered_table_that_is_another_one_gives_no_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "logs")
    rows_of(spark, [(1, "t"), (2, "u")], "id long, topic string").write.format("delta").save(path)
    ALTERATIONS["deletion vectors"](spark, path)
    file = next(Path(path).glob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data[:20] + bytes([data[20] ^ 4]) + data[21:])

    with pytest.raises(BrokenTableError, match=file.name):
        read_small_table(path, ("id",), most_bytes=LARGE)


def test_what_no_reader_understands_is_left_to_spark(table: str) -> None:
    commit = Path(table, "_delta_log", f"{0:020d}.json")
    commit.write_text(
        commit.read_text("utf-8").replace('"minReaderVersion":1', '"minReaderVersion":9')
    )
    assert _rows(table) is None


def test_a_file_that_is_another_one_gives_no_rows(table: str) -> None:
    more, fewer = (Path(unquote(uri)) for uri in DeltaTable(table).file_uris()[1:])
    shutil.copy(min(more, fewer, key=_bytes), max(more, fewer, key=_bytes))

    for read in _asked(table)[:2]:
        with pytest.raises(BrokenTableError, match=r"has \d+ bytes, its commit says \d+\. "):
            read()


def _bytes(file: Path) -> int:
    return file.stat().st_size


@pytest.mark.parametrize("has_checksums", [True, False])
def test_a_bit_that_is_flipped_gives_no_other_rows(tmp_path: Path, has_checksums: bool) -> None:
    """Without the checksums of Hadoop's, those of the pages tell, but not of the footer."""
    table, rows = str(tmp_path / "segments"), pa.table({"id": [0, 1, 2], "name": ["a", "b", "c"]})
    DeltaTable.create(table, schema=rows.schema)
    assert append_rows(table, rows)
    (file,) = (tmp_path / "segments").glob("*.parquet")
    data = file.read_bytes()
    columns = parquet.read_metadata(file).row_group(0)
    end = len(b"PAR1") + sum(columns.column(number).total_compressed_size for number in range(2))
    sound = _read_or_refused(table)
    assert isinstance(sound, list)
    if not has_checksums:
        checksums_beside(file).unlink()

    for at in range(0, len(data) if has_checksums else end, 6):
        file.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        read = _read_or_refused(table)
        assert read == "refused" or (not has_checksums and read in (None, sound)), at


@pytest.mark.slow
def test_a_bit_that_is_flipped_in_a_checkpoint_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "segments"
    rows = spark.range(3).selectExpr("id", "string(id) AS name").coalesce(1)
    for _ in range(2):
        properties = {"delta.checkpointInterval": "1"}
        rows.write.format("delta").options(**properties).mode("append").save(str(table))
    assert isinstance(_read_or_refused(str(table)), list)
    (checkpoint,) = (table / "_delta_log").glob("*1.checkpoint.parquet")
    data = checkpoint.read_bytes()

    for at in range(0, len(data), 997):
        checkpoint.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        assert _read_or_refused(str(table)) == "refused", at


def _read_or_refused(table: str) -> list[dict[str, Any]] | str | None:
    try:
        return read_small_table(table, ("id", "name"), most_bytes=LARGE)
    except BrokenTableError:
        return "refused"


@pytest.mark.parametrize("name", ["a%20b", "a[1]", "a\\b", "a\nb", "a|*{}"])
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_where_the_library_takes_a_path_for_another_a_copy_of_the_log_is_read(
    table: str, tmp_path: Path, name: str, has_checkpoint: bool
) -> None:
    expected = _rows(table)
    if has_checkpoint:
        DeltaTable(table).create_checkpoint()
        Path(table, "_delta_log", f"{0:020d}.json").unlink()
    moved = Path(table).rename(tmp_path / name)

    assert _rows(str(moved)) == expected
    assert file_totals(str(moved)) == (3, sum(file.stat().st_size for file in _parquet(moved)))
    assert not is_opened_in_place(str(moved))


def _parquet(table: Path) -> list[Path]:
    added = pa.table(_opened(table).get_add_actions())["path"].to_pylist()
    return [table / name for name in added]


def _opened(table: Path) -> DeltaTable:
    found = open_table(str(table))
    assert found is not None
    return found


def test_the_commits_and_the_checkpoint_that_are_read_are_the_last_ones(table: str) -> None:
    DeltaTable(table).create_checkpoint()
    rows = pa.table({"id": [30], "name": ["z"]})
    write_deltalake(table, rows, mode="append", schema_mode="merge")
    log = Path(table, "_delta_log")
    needed = [log / f"{3:020d}.checkpoint.parquet", log / f"{4:020d}.json"]
    size_bytes = sum(file.stat().st_size for file in needed)

    assert file_totals(table, most_log_bytes=size_bytes) is not None
    assert file_totals(table, most_log_bytes=size_bytes - 1) is None


def test_what_another_engine_merged_can_be_filtered_and_taken(tmp_path: Path) -> None:
    """deltalake writes views of texts then, of which Arrow does neither."""
    rows = pa.table(
        {
            "key": ["a", "b"],
            "list": pa.array([["x"], None]),
            "struct": pa.array([{"text": "q"}, None], pa.struct([("text", pa.string())])),
            "map": pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string())),
            "bytes": pa.array([b"1", None]),
        }
    )
    path = str(tmp_path / "table")
    write_deltalake(path, rows)
    merged = DeltaTable(path).merge(rows, "t.key = s.key", source_alias="s", target_alias="t")
    merged.when_matched_update_all().when_not_matched_insert_all().execute()

    read = read_small_files(path, most_bytes=LARGE, most_files=9, most_rows=9)

    assert read is not None
    (file,) = read.files
    assert sorted(file.take([1, 0]).to_pylist(), key=lambda row: str(row["key"])) == (
        rows.to_pylist()
    )
