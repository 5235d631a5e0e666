"""Only files that changed are read anew; the tables are as if all were read for the first time."""

import itertools
import random
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.frames import engines
from kafka_segments.engine.frames.packing import TellLoad
from kafka_segments.engine.limits import MOST, MOST_ROWS, Load, Work
from kafka_segments.engine.tables.catalog import (
    INTERNAL_RECORDS,
    METADATA_FEATURES,
    METADATA_PARTITIONS,
    METADATA_PROBLEMS,
    METADATA_TABLES,
    METADATA_TOPICS,
    Table,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.wire.names import METADATA_TOPIC
from kafka_segments.verbs.find.internals import files, run
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, Reading, run_internals
from kafka_segments.verbs.find.internals.tasks import read_records
from support.logs import metadata_logs
from support.logs.internal_histories import LivingLog, Stamp
from support.logs.internal_rows import rows_of_file
from support.logs.strategies import v2_batch

pytestmark = pytest.mark.spark

PARTITIONS, ROUNDS, STEPS = 12, 3, 3
TWO = (METADATA_TOPICS, METADATA_FEATURES)


class InterruptedRunError(Exception):
    """The run ends before the rows are written that say what is done."""


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


def read(spark: SparkSession, folder: Path, warehouse: Path) -> Reading:
    """Read a log directory into tables, as the verb does."""
    origin = Origin((str(folder),), cluster="c", broker_id=1)
    with ExitStack() as caches:
        return run_internals(spark, InternalsOptions(str(warehouse), origin), caches)


def rows_now(stamps: dict[Path, Stamp]) -> list[dict[str, Any]]:
    """Give what a reader of all files finds, without Spark."""
    found = []
    for file, (_, modified, is_last) in stamps.items():
        is_active = is_last and file.suffix == ".log"
        rows = rows_of_file(file, is_active=is_active)
        found += [{**row, "mtime_ns": modified} for row in rows]
    return found


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["file"], row["row"]))


def table_rows(spark: SparkSession, warehouse: Path, table: Table) -> list[dict[str, Any]]:
    rows = Warehouse(spark, str(warehouse)).read(table).collect()
    return [row.asDict(recursive=True) for row in rows]


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[set[Path]]:
    """What each run reads: a set of paths for metadata, and one for the other topics."""
    calls: list[set[Path]] = []

    def spied(files: DataFrame, **tell: TellLoad) -> DataFrame:
        calls.append({Path(row["path"]) for row in files.select("path").collect()})
        return read_records(files, **tell)

    monkeypatch.setattr(run, "read_records", spied)
    return calls


def interrupt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next run end when it has written the history, and not yet the records."""
    fill = Warehouse.fill_changed

    def ended(tables: Warehouse, table: Table, rows: DataFrame, **named: Any) -> None:
        if table is INTERNAL_RECORDS:
            monkeypatch.setattr(Warehouse, "fill_changed", fill)
            raise InterruptedRunError
        fill(tables, table, rows, **named)

    monkeypatch.setattr(Warehouse, "fill_changed", ended)


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
        if number == 1:
            interrupt_once(monkeypatch)
            with pytest.raises(InterruptedRunError):
                read(spark, disk.folder, warehouse)
        files_read.clear()

        reading = read(spark, disk.folder, warehouse)

        now = disk.stamps()
        changed = {file for file, stamp in now.items() if before.get(file) != stamp}
        assert set().union(*files_read) == changed
        logs = {file.parent for file in changed | (before.keys() - now.keys())}
        assert reading.changed == len(logs)
        found = table_rows(spark, warehouse, INTERNAL_RECORDS)
        assert in_order(found) == in_order(rows_now(now))
        before = now
    read(spark, disk.folder, tmp_path / "fresh")
    for table in METADATA_TABLES:
        ours, firsts = (table_rows(spark, one, table) for one in (warehouse, tmp_path / "fresh"))
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
        log = tmp_path / f"__consumer_offsets-{number}"
        log.mkdir()
        (log / f"{0:020d}.log").write_bytes(batch)
    monkeypatch.setitem(MOST, Work.DECODE, Load(0, 2 * len(batch) - more_bytes))

    with ExitStack() as caches:
        found = files.find_files(spark, Origin((str(tmp_path),), cluster="c", broker_id=1), caches)

        assert found.files.count() == 2
        assert has_few_rows(spark) is not bool(more_bytes)
