"""Only files that changed are read anew; the tables are as if all were read for the first time."""

import itertools
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.frames import engines
from kafka_segments.engine.limits import MOST, MOST_ROWS, Load, Work
from kafka_segments.engine.tables.catalog import (
    INTERNAL_FILES,
    INTERNAL_RECORDS,
    METADATA_FEATURES,
    METADATA_PARTITIONS,
    METADATA_PROBLEMS,
    METADATA_TABLES,
    METADATA_TOPICS,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals import run
from kafka_segments.verbs.find.internals.tasks import read_records
from support.logs import metadata_logs
from support.logs.internal_histories import LivingLog, Stamp
from support.logs.strategies import v2_batch
from support.spark.internal_reads import file_rows, in_order, read, rows_now, table_rows

pytestmark = pytest.mark.spark

PARTITIONS, ROUNDS, STEPS = 12, 3, 3
TWO = (METADATA_TOPICS, METADATA_FEATURES)


INTERRUPTED_BEFORE = {1: INTERNAL_RECORDS, 2: INTERNAL_FILES}


class InterruptedRunError(Exception):
    """The run ends before it has written all."""


class Disk:
    """A log directory whose logs live."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        clock = itertools.count(1_700_000_000)
        self.folder = folder
        self.logs = [
            LivingLog(folder / name, draw, clock)
            for name in (
                f"{METADATA_TOPIC}-0",
                *(f"__consumer_offsets-{number}" for number in range(PARTITIONS)),
            )
        ]

    def stamps(self) -> dict[Path, Stamp]:
        return {file: stamp for log in self.logs for file, stamp in log.stamps().items()}


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[set[Path]]:
    """What each run reads: a set of paths for metadata, and one for the other topics."""
    calls: list[set[Path]] = []

    def spied(files: DataFrame, **named: Any) -> DataFrame:
        calls.append({Path(row["path"]) for row in files.select("path").collect()})
        return read_records(files, **named)

    monkeypatch.setattr(run, "read_records", spied)
    return calls


def interrupt_once(monkeypatch: pytest.MonkeyPatch, before: Table) -> None:
    """Let the next run end before it writes a table."""
    writes = {name: getattr(Warehouse, name) for name in ("fill", "fill_changed")}

    def ended(name: str, tables: Warehouse, table: Table, *rest: Any, **named: Any) -> None:
        if table is before:
            for one, function in writes.items():
                monkeypatch.setattr(Warehouse, one, function)
            raise InterruptedRunError
        writes[name](tables, table, *rest, **named)

    for name in writes:
        monkeypatch.setattr(Warehouse, name, _method(ended, name))


def _method(function: Callable[..., None], name: str) -> Callable[..., None]:
    return lambda *given, **named: function(name, *given, **named)


def _others(now: dict[Path, Stamp], before: dict[Path, Stamp]) -> set[Path]:
    """Give the files of another size or time than before."""
    return {file for file, stamp in now.items() if before.get(file, (0,))[:2] != stamp[:2]}


@pytest.mark.long
@pytest.mark.parametrize("is_few", [True, False])
def test_after_any_history_the_tables_are_those_of_a_first_read_and_only_changed_files_were_read(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files_read: list[set[Path]],
    seed: int,
    is_few: bool,
    request: pytest.FixtureRequest,
) -> None:
    if is_few:
        request.getfixturevalue("few")
    disk, warehouse = Disk(tmp_path / "disk", random.Random(seed)), tmp_path / "warehouse"
    before: dict[Path, Stamp] = {}
    for number in range(ROUNDS):
        for log in disk.logs if number else ():
            for _ in range(STEPS):
                log.step()
        if number:
            interrupt_once(monkeypatch, INTERRUPTED_BEFORE[number])
            with pytest.raises(InterruptedRunError):
                read(spark, disk.folder, warehouse)
        files_read.clear()

        reading = read(spark, disk.folder, warehouse)

        now = disk.stamps()
        changed = {file for file, stamp in now.items() if before.get(file) != stamp}
        if number < 2:  # else the run that was interrupted had read some
            assert set().union(*files_read) == _others(now, before)
        logs = {file.parent for file in changed | (before.keys() - now.keys())}
        assert reading.changed == len(logs)
        found = table_rows(spark, warehouse, INTERNAL_RECORDS)
        assert in_order(found) == in_order(rows_now(now))
        fresh = tmp_path / f"fresh-{number}"
        assert read(spark, disk.folder, fresh).sums == reading.sums
        assert file_rows(spark, warehouse) == file_rows(spark, fresh)
        before = now
    for table in METADATA_TABLES:
        ours, firsts = (table_rows(spark, one, table) for one in (warehouse, fresh))
        assert sorted(map(str, ours)) == sorted(map(str, firsts)), table.name


@pytest.mark.slow
def test_of_a_long_history_spark_writes_only_the_tables_with_many_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "MOST_ROWS", 1)
    topics = [metadata_logs.topic(name, number) for number, name in enumerate("ab")]
    changes = [*topics, metadata_logs.feature("metadata.version", 25), metadata_logs.no_op()]
    disk = tmp_path / "disk"
    metadata_logs.log_dir(disk, {f"{0:020d}.log": metadata_logs.log_bytes(changes)})

    read(spark, disk, tmp_path / "warehouse")

    rows = {table.name: table_rows(spark, tmp_path / "warehouse", table) for table in TWO}
    assert [[row["from_offset"] for row in found] for found in rows.values()] == [[0, 1], [2]]
    logs = [tmp_path / "warehouse" / name / "_delta_log" for name in rows]
    commits = [(log / f"{1:020d}.json").read_text() for log in logs]
    assert ["Apache-Spark" in commit for commit in commits] == [True, False]
    others = [table for table in METADATA_TABLES if table not in TWO]
    assert [Warehouse(spark, str(tmp_path / "warehouse")).version(one) for one in others] == [0] * 4


@pytest.mark.parametrize("most_rows", [MOST_ROWS, pytest.param(0, marks=pytest.mark.slow)])
def test_tables_of_metadata_whose_rows_are_the_same_keep_their_version(
    spark: SparkSession, tmp_path: Path, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``most_rows`` 0: Spark compares them."""
    monkeypatch.setattr(engines, "MOST_ROWS", most_rows)
    disk, warehouse = tmp_path / "disk", tmp_path / "warehouse"
    first = [metadata_logs.topic("a", 1), metadata_logs.partition(1, 0), metadata_logs.no_op()]
    changes = [[], [metadata_logs.no_op()], [metadata_logs.leader(1, 0, 2)]]
    tables = (*METADATA_TABLES, METADATA_PROBLEMS)
    found = []
    for number in range(len(changes)):
        records = [*first, *itertools.chain(*changes[: number + 1])]
        shutil.rmtree(disk, ignore_errors=True)
        metadata_logs.log_dir(disk, {f"{0:020d}.log": metadata_logs.log_bytes(records)})
        read(spark, disk, warehouse)
        at = Warehouse(spark, str(warehouse))
        found.append({table: at.version(table) for table in (*tables, INTERNAL_RECORDS)})

    written = [{of for of in now if now[of] != then[of]} for then, now in itertools.pairwise(found)]
    assert written == [{INTERNAL_RECORDS}, {INTERNAL_RECORDS, METADATA_PARTITIONS}]
    partitions = table_rows(spark, warehouse, METADATA_PARTITIONS)
    assert sorted((row["from_offset"], row["leader"]) for row in partitions) == [(1, 1), (4, 2)]


@pytest.mark.usefixtures("few")
def test_a_file_without_a_record_is_one_row_and_is_read_once(
    spark: SparkSession, tmp_path: Path, files_read: list[set[Path]]
) -> None:
    log = tmp_path / "disk" / "__consumer_offsets-0"
    log.mkdir(parents=True)
    (log / f"{0:020d}.log").write_bytes(v2_batch(7, [], record_count=0))

    first = read(spark, tmp_path / "disk", tmp_path / "warehouse")
    files_read.clear()
    again = read(spark, tmp_path / "disk", tmp_path / "warehouse")

    (row,) = table_rows(spark, tmp_path / "warehouse", INTERNAL_RECORDS)
    assert (row["offset"], row["kind"], row["problem"], row["row"]) == (None, None, None, 0)
    assert (first.changed, again.changed, files_read) == (1, 0, [])


@pytest.mark.parametrize("more_bytes", [0, 1])
@pytest.mark.usefixtures("few")
def test_files_of_many_bytes_are_taken_for_many_rows(
    spark: SparkSession, tmp_path: Path, more_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = v2_batch(7, [], record_count=0)
    for number in range(2):
        log = tmp_path / "disk" / f"__consumer_offsets-{number}"
        log.mkdir(parents=True)
        (log / f"{0:020d}.log").write_bytes(batch)
    monkeypatch.setitem(MOST, Work.DECODE, Load(0, 2 * len(batch) - more_bytes))

    read(spark, tmp_path / "disk", tmp_path / "warehouse")

    assert has_few_rows(spark) is not bool(more_bytes)
