"""A segment that grew is read from where it ended, and nothing else of it is written."""

import os
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.derived.internal_files import file_facts
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.verbs.find.internals import run
from kafka_segments.verbs.find.internals.tasks import read_records
from support.logs.group_logs import COMMIT, batch, commit_key, commit_value, marker
from support.logs.internal_rows import rows_of_log
from support.logs.strategies import TRANSACTIONAL, v2_batch
from support.spark.internal_reads import file_rows, in_order, read, rows_now, table_rows

pytestmark = pytest.mark.spark

FIRST, SECOND, THIRD = (f"{offset:020d}.log" for offset in (0, 4, 6))
EMPTY = v2_batch(3, [], record_count=0)
Starts = dict[tuple[int, str], int]


def _commits(first: int, until: int, *, group: str = "g") -> bytes:
    return b"".join(
        batch(offset, (commit_key(group, offset % 3), commit_value(offset)))
        for offset in range(first, until)
    )


def _spoilt(offset: int) -> bytes:
    return _commits(offset, offset + 1)[:-1] + b"\xff"


TWO = _commits(0, 2)
TORN = _commits(2, 3)[:-1]
BEYOND_ANY_TYPE = batch(2, (struct.pack(">h", 99), b"x"))
UNREADABLE = v2_batch(0, [], record_count=2, payload=b"no records")
IN_TRANSACTION = batch(2, (commit_key("g"), commit_value(7)), producer_id=5, flags=TRANSACTIONAL)


class Log:
    """A log whose files are written, each at a later time."""

    def __init__(self, folder: Path, partition: int = 0) -> None:
        self.disk = folder / "disk"
        self.warehouse = folder / "warehouse"
        self._folder = self.disk / f"__consumer_offsets-{partition}"
        self._folder.mkdir(parents=True)
        self._seconds = 1_700_000_000

    def write(self, name: str, data: bytes) -> None:
        self._seconds += 1
        (self._folder / name).write_bytes(data)
        os.utime(self._folder / name, (self._seconds, self._seconds))

    def write_all(self, files: dict[str, bytes]) -> None:
        for name, data in files.items():
            self.write(name, data)

    @property
    def files(self) -> list[Path]:
        return sorted(file for file in self._folder.iterdir() if file.stat().st_size)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """Which files the last run read, and from which byte on."""
    found: Starts = {}

    def spied(files: DataFrame, **named: Any) -> DataFrame:
        rows = files.select("partition", "file", "start_bytes").collect()
        found.update(((row[0], row[1]), row[2]) for row in rows)
        return read_records(files, **named)

    monkeypatch.setattr(run, "read_records", spied)
    return found


def _is_as_if_read_for_the_first_time(
    spark: SparkSession, warehouse: Path, logs: Sequence[Log]
) -> None:
    ours = in_order(table_rows(spark, warehouse, INTERNAL_RECORDS))
    assert ours == in_order(rows_now(file for log in logs for file in log.files))
    fresh = warehouse.parent / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    read(spark, logs[0].disk, fresh)
    assert file_rows(spark, warehouse) == file_rows(spark, fresh)


class Case(NamedTuple):
    """What a file has, what it has later, and from which byte on that is read."""

    before: bytes
    after: bytes
    start: int


CASES = {
    "grown": Case(TWO, TWO + _commits(2, 4), len(TWO)),
    "touched": Case(TWO, TWO, len(TWO)),
    "then torn": Case(TWO, TWO + TORN, len(TWO)),
    "torn before": Case(TWO + TORN, TWO + _commits(2, 4), len(TWO)),
    "torn earlier": Case(TWO + TORN, TWO + TORN[:70], len(TWO)),
    "cut to whole batches": Case(TWO + TORN, TWO, len(TWO)),
    "nothing whole before": Case(TORN, _commits(2, 4), 0),
    "without a record before": Case(EMPTY, EMPTY + _commits(4, 6), len(EMPTY)),
    "still without a record": Case(EMPTY, EMPTY + EMPTY, len(EMPTY)),
    "preallocated": Case(TWO + bytes(900), TWO + _commits(2, 3) + bytes(800), len(TWO)),
    "a transaction ends": Case(
        TWO + IN_TRANSACTION,
        TWO + IN_TRANSACTION + marker(3, 5, COMMIT),
        len(TWO + IN_TRANSACTION),
    ),
    "cut": Case(TWO, _commits(0, 1), 0),
    "others and longer": Case(TWO, _commits(0, 4, group="h"), 0),
    "others": Case(TWO, _commits(0, 2, group="h"), 0),
    "mended": Case(TWO + _spoilt(2) + _commits(3, 4), TWO + _commits(2, 5), len(TWO)),
    "spoilt": Case(TWO, TWO + _spoilt(2) + _commits(3, 4), len(TWO)),
    "of a record that cannot be decoded": Case(
        TWO + BEYOND_ANY_TYPE, TWO + BEYOND_ANY_TYPE + _commits(3, 4), len(TWO + BEYOND_ANY_TYPE)
    ),
    "of a batch that cannot be decoded": Case(
        UNREADABLE, UNREADABLE + _commits(2, 3), len(UNREADABLE)
    ),
}


@pytest.mark.usefixtures("few_and_many")
def test_of_a_file_that_changed_only_what_is_new_is_read_if_it_begins_as_before(
    spark: SparkSession, tmp_path: Path, starts: Starts
) -> None:
    logs = [Log(tmp_path, number) for number in range(len(CASES))]
    for log, case in zip(logs, CASES.values(), strict=True):
        log.write(FIRST, case.before)
    warehouse = tmp_path / "warehouse"
    read(spark, tmp_path / "disk", warehouse)
    assert set(starts.values()) == {0}
    starts.clear()
    for log, case in zip(logs, CASES.values(), strict=True):
        log.write(FIRST, case.after)

    dry = read(spark, tmp_path / "disk", warehouse, is_dry=True)
    reading = read(spark, tmp_path / "disk", warehouse)

    found = {name: starts[number, FIRST] for number, name in enumerate(CASES)}
    assert found == {name: case.start for name, case in CASES.items()}
    assert dry.sums == reading.sums
    _is_as_if_read_for_the_first_time(spark, warehouse, logs)
    starts.clear()
    assert read(spark, tmp_path / "disk", warehouse).changed == 0
    assert starts == {}


@pytest.mark.usefixtures("few_and_many")
def test_rows_of_a_grown_segment_are_added_and_those_of_its_log_stay(
    spark: SparkSession, log: Log, starts: Starts
) -> None:
    log.write(FIRST, TWO)
    read(spark, log.disk, log.warehouse)
    starts.clear()
    log.write_all({FIRST: TWO + _commits(2, 4), SECOND: _commits(4, 6)})
    read(spark, log.disk, log.warehouse)
    assert starts == {(0, FIRST): len(TWO), (0, SECOND): 0}
    _is_as_if_read_for_the_first_time(spark, log.warehouse, [log])
    commits = (log.warehouse / INTERNAL_RECORDS.name / "_delta_log").glob("*.json")
    assert not any('{"remove"' in commit.read_text() for commit in commits)
    before = Warehouse(spark, str(log.warehouse)).version(INTERNAL_RECORDS)
    starts.clear()

    log.write(THIRD, b"")  # the segment before is the last one no more
    log.write(THIRD, _commits(6, 7))
    read(spark, log.disk, log.warehouse)

    assert starts == {(0, THIRD): 0}
    assert Warehouse(spark, str(log.warehouse)).version(INTERNAL_RECORDS) == before + 1
    is_active = {row["file"]: row["is_active"] for row in file_rows(spark, log.warehouse)}
    assert list(is_active.values()) == [False, False, True]


def _lost_files(spark: SparkSession, log: Log) -> None:
    (log.warehouse / INTERNAL_FILES.name).rename(log.warehouse / "_moved")


def _lost_records(spark: SparkSession, log: Log) -> None:
    (log.warehouse / INTERNAL_RECORDS.name).rename(log.warehouse / "_moved")


def _deleted_rows(spark: SparkSession, log: Log) -> None:
    uri = Warehouse(spark, str(log.warehouse)).uri(INTERNAL_RECORDS)
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE offset = 1")


def _added_rows(spark: SparkSession, log: Log) -> None:
    tables = Warehouse(spark, str(log.warehouse))
    tables.append(INTERNAL_RECORDS, tables.read(INTERNAL_RECORDS).where("offset = 1"))


@pytest.mark.parametrize("change", [_lost_files, _lost_records, _deleted_rows, _added_rows])
@pytest.mark.usefixtures("few")
def test_a_file_is_read_as_a_whole_where_the_tables_have_other_rows_than_were_noted(
    spark: SparkSession,
    log: Log,
    starts: Starts,
    change: Callable[[SparkSession, Log], None],
) -> None:
    log.write(FIRST, TWO)
    read(spark, log.disk, log.warehouse)
    change(spark, log)
    starts.clear()

    log.write(FIRST, TWO + _commits(2, 4))
    read(spark, log.disk, log.warehouse)

    assert starts == {(0, FIRST): 0}
    _is_as_if_read_for_the_first_time(spark, log.warehouse, [log])


@pytest.mark.usefixtures("few")
def test_verbs_refuse_records_of_a_run_that_was_ended(spark: SparkSession, log: Log) -> None:
    log.write(FIRST, TWO)
    read(spark, log.disk, log.warehouse)
    _added_rows(spark, log)

    with pytest.raises(UsageError, match="run `kafka-segments internals --source` of the same"):
        file_facts(Warehouse(spark, str(log.warehouse)))


@pytest.mark.usefixtures("few_and_many")
def test_tables_of_an_earlier_release_go_on_with_what_their_rows_say(
    spark: SparkSession, log: Log, starts: Starts
) -> None:
    log.write_all({FIRST: TWO + _commits(2, 4), SECOND: _commits(4, 5)})
    before = INTERNAL_RECORDS._replace(version=1)
    tables = Warehouse(spark, str(log.warehouse))
    tables.create(before)
    rows = rows_of_log(log.files[0].parent)
    modified = {file.name: file.stat().st_mtime_ns for file in log.files}
    names = before.schema.fieldNames()
    told = [{**row, "mtime_ns": modified[row["file"]]} for row in rows]
    values = [tuple(row[name] for name in names) for row in told]
    tables.append(before, spark.createDataFrame(values, before.schema))
    facts = file_facts(tables).collect()
    assert {row["file"]: row["is_active"] for row in facts} == {FIRST: False, SECOND: True}

    assert read(spark, log.disk, log.warehouse).changed == 0
    assert starts == {}
    _is_as_if_read_for_the_first_time(spark, log.warehouse, [log])

    starts.clear()
    log.write(SECOND, _commits(4, 6))
    read(spark, log.disk, log.warehouse)
    assert starts == {(0, SECOND): 0}
    starts.clear()
    log.write(SECOND, _commits(4, 7))
    read(spark, log.disk, log.warehouse)
    assert starts == {(0, SECOND): len(_commits(4, 6))}
    _is_as_if_read_for_the_first_time(spark, log.warehouse, [log])
