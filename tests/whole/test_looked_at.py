"""What verbs make of segments that are known by a first look: as of all read, or refused."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import kafka_segments
from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS, OFFSET_INDEX, RUNS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.kafka.messages.records import TRANSACTIONS_TOPIC
from kafka_segments.settings import Settings
from kafka_segments.verbs.change.migrate.inventory.run import InventoryOptions, run_inventory
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.run import RetentionOptions
from kafka_segments.verbs.judge.retention.run_plan import run_plan
from kafka_segments.verbs.scan.summary import BuildSummary
from kafka_segments.verbs.tell.report.report import render_report
from kafka_segments.verbs.tell.report.run import ReportData, ReportOptions, run_report
from kafka_segments.verbs.tell.validate.run import ValidateOptions, run_validate
from support.model.plain_decoder import plain_records, positions
from support.spark.filled_tables import fill
from support.spark.stored_builds import NOW_MS, build_few
from support.stores.tiered_objects import put_log

KEY = ("topic", "partition", "base_offset")
CLAIMED = (
    *("size_bytes", "last_modified_ms", "valid_bytes", "truncated_bytes", "next_offset"),
    *("first_batch_timestamp_ms", "max_timestamp_ms", "offset_of_max_timestamp", "damage"),
    *("largest_timestamp_ms", "largest_timestamp_source", "is_active"),
)
UNKNOWN = (
    *("batch_count", "record_count", "min_timestamp_ms", "magics", "codecs", "timestamp_types"),
    *("leader_epochs", "producer_count", "control_batch_count", "transactional_batch_count"),
    *("producer_end_offset", "producers", "transaction_steps", "index_entries"),
    *("time_index_entries", "txn_index_entries", "max_batch_bytes", "max_record_bytes"),
)
LYING = ("ct-none", 0, 1597)  # its time index lacks the last entry


pytestmark = pytest.mark.usefixtures("few")


class Warehouses(NamedTuple):
    """One log directory, known by first looks and by reading all of it."""

    looked: Path
    read: Path
    summary: BuildSummary


@pytest.fixture(scope="module")
def warehouses(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> Warehouses:
    folder = tmp_path_factory.mktemp("looked-at")
    logs = folder / "logs"
    for name in ("ct-none-0", "ct-out-of-order-0", "txn-0"):
        for part in ("logs", "rebuilt"):
            shutil.copytree(broker / part / name, logs / name, dirs_exist_ok=True)
    index = logs / "ct-none-0" / f"{LYING[2]:020d}.timeindex"
    index.write_bytes(index.read_bytes()[:-12])
    looked = build_few(spark, str(logs), str(folder / "looked"), is_first_look=True)
    build_few(spark, str(logs), str(folder / "read"))
    return Warehouses(folder / "looked", folder / "read", looked)


def _rows(spark: SparkSession, warehouse: Path) -> dict[tuple[Any, ...], Row]:
    rows = Warehouse(spark, str(warehouse)).read(SEGMENTS).collect()
    return {tuple(row[name] for name in KEY): row for row in rows}


def test_rows_of_first_looks_agree_with_those_of_reading_all(
    spark: SparkSession, warehouses: Warehouses
) -> None:
    looked = warehouses.summary
    found, read = _rows(spark, warehouses.looked), _rows(spark, warehouses.read)

    assert {key: [row[name] for name in CLAIMED] for key, row in found.items()} == {
        key: [row[name] for name in CLAIMED] for key, row in read.items()
    }
    known = {key: row for key, row in found.items() if row["checked"] == "index"}
    assert {tuple(row[name] for name in UNKNOWN) for row in known.values()} == {
        (None,) * len(UNKNOWN)
    }
    doubted = {key: row["checked_why"] for key, row in found.items() if row["checked_why"]}
    assert list(doubted) == [LYING]
    assert "a later batch has" in doubted[LYING]
    small = [key for key, row in found.items() if row["size_bytes"] <= 64 * 1024]
    assert len(known) + len(doubted) + len(small) == len(found)
    assert {row["checked"] for row in read.values()} == {"full"}
    assert all(row["checked_bytes"] == row["valid_bytes"] for row in read.values())
    assert (looked.segments_looked_at, looked.segments_doubted) == (len(known), 1)


def test_what_crosses_segments_is_not_known_and_entries_are_those_of_whole_segments(
    spark: SparkSession, warehouses: Warehouses
) -> None:
    found = _rows(spark, warehouses.looked)
    whole = {key: row for key, row in found.items() if row["checked"] == "full"}
    tables = Warehouse(spark, str(warehouses.looked))

    unfolded = {key[0] for key, row in whole.items() if row["txn_index_entries"] is None}
    assert unfolded == {"txn"}
    entries = tables.read(OFFSET_INDEX).select(*KEY).distinct().collect()
    with_entries = {tuple(row) for row in entries}
    assert LYING in with_entries <= set(whole)
    run = tables.read(RUNS).collect()[0]
    assert run["bytes_scanned"] == warehouses.summary.bytes_scanned
    assert run["bytes_scanned"] < sum(row["size_bytes"] for row in found.values()) / 3


@pytest.fixture
def both(
    spark: SparkSession, warehouses: Warehouses
) -> Iterator[tuple[kafka_segments.OpenWarehouse, kafka_segments.OpenWarehouse]]:
    with (
        kafka_segments.open(warehouses.looked, spark) as looked,
        kafka_segments.open(warehouses.read, spark) as read,
    ):
        yield looked, read


@pytest.mark.slow
def test_retention_decides_as_if_all_had_been_read(
    both: tuple[kafka_segments.OpenWarehouse, kafka_segments.OpenWarehouse],
) -> None:
    looked, read = (
        opened.retention(now=NOW_MS).drop("run_id", "decided_at").collect() for opened in both
    )

    assert sorted(map(tuple, looked), key=str) == sorted(map(tuple, read), key=str)


def test_the_least_timestamps_of_segments_that_a_look_knows_are_not_known(
    both: tuple[kafka_segments.OpenWarehouse, kafka_segments.OpenWarehouse],
) -> None:
    spans = both[0].retention_what_if({"retention_ms": [-1]}, now=NOW_MS).collect()

    assert {row["span_ms"] for row in spans} == {None}


@pytest.mark.slow
@pytest.mark.parametrize(
    "times",
    [("EARLIEST", "LATEST", "MAX_TIMESTAMP"), (1_700_000_000_000, 1_795_000_000_000)],
    ids=["names", "moments"],
)
def test_search_answers_as_if_all_had_been_read(
    both: tuple[kafka_segments.OpenWarehouse, kafka_segments.OpenWarehouse], times: tuple[Any, ...]
) -> None:
    def answers(opened: kafka_segments.OpenWarehouse) -> list[tuple[Any, ...]]:
        asked = opened.search(*times, now=NOW_MS)
        is_named = asked["target_ms"] < 0  # without the log's epochs, which no leader file has here
        epoch = F.when(~is_named, asked["kafka_leader_epoch"])
        found = asked.withColumn("kafka_leader_epoch", epoch).drop("bytes_read")
        return sorted(map(tuple, found.collect()), key=str)

    looked, read = both
    assert answers(looked) == answers(read)


@pytest.mark.slow
def test_a_search_that_meets_damage_in_what_a_look_passed_over_says_so(
    spark: SparkSession, broker: Path, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "ct-none-0"
    for part in ("logs", "rebuilt"):
        shutil.copytree(broker / part / log.name, log, dirs_exist_ok=True)
    (file, *_) = sorted(log.glob("*.log"))
    data = bytearray(file.read_bytes())
    times = {record.timestamp: record.batch_position for record in plain_records(bytes(data))}
    batches = [start for start, _ in positions(data)]
    damaged = batches[len(batches) // 2]
    data[damaged + 8 : damaged + 12] = bytes(4)
    file.write_bytes(data)
    build_few(spark, str(tmp_path / "logs"), str(tmp_path / "tables"), is_first_look=True)
    before, within, behind = (
        next(time for time, batch in times.items() if batch == batches[n])
        for n in (1, len(batches) // 2, -2)
    )

    with kafka_segments.open(tmp_path / "tables", spark) as looked:
        rows = looked.search(before, within, behind, now=NOW_MS).orderBy("target_ms").collect()

    assert _rows(spark, tmp_path / "tables")["ct-none", 0, 0]["checked"] == "index"
    assert [row["problem"] for row in rows] == [
        None,
        f"{file}: batch at byte {damaged}: batch length is 0, the least is 14; what follows was not"
        " searched: run `kafka-segments build` to read all",
        None,
    ]
    assert (rows[0]["true_timestamp_ms"], rows[2]["true_timestamp_ms"]) == (before, behind)
    assert rows[1]["kafka_offset"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "lost",
    [
        *("nothing", "an offset"),
        *(
            pytest.param(lost, marks=pytest.mark.long)
            for lost in ("a timestamp", ".index", "entries")
        ),
    ],
)
def test_a_search_begins_where_index_files_lead_and_at_the_start_where_they_lie(
    spark: SparkSession, broker: Path, tmp_path: Path, lost: str
) -> None:
    log = tmp_path / "logs" / "ct-none-0"
    for part in ("logs", "rebuilt"):
        shutil.copytree(broker / part / log.name, log, dirs_exist_ok=True)
    file = log / f"{0:020d}.log"
    records = list(plain_records(file.read_bytes()))
    asked = records[len(records) * 3 // 4]
    build_few(spark, str(log), str(tmp_path / "tables"), is_first_look=True)
    _lose(lost, file)

    with kafka_segments.open(tmp_path / "tables", spark) as looked:
        (row,) = looked.search(asked.timestamp, now=NOW_MS).collect()

    expected = next(one for one in records if one.timestamp >= asked.timestamp)
    answer = (row["kafka_offset"], row["true_offset"], row["position"], row["problem"])
    assert answer == (expected.offset, expected.offset, expected.batch_position, None)
    assert (row["bytes_read"] < 64 * 1024) == (lost == "nothing")


@pytest.mark.slow
def test_a_search_in_a_tier_goes_by_the_object_of_indexes(
    spark: SparkSession, broker: Path, tmp_path: Path
) -> None:
    log = put_log(tmp_path / "tier", broker, "ct-none-0")[0]
    records = list(plain_records((broker / "logs" / "ct-none-0" / f"{0:020d}.log").read_bytes()))
    asked = records[len(records) * 3 // 4]
    build_few(spark, str(tmp_path / "tier"), str(tmp_path / "tables"), is_first_look=True)

    with kafka_segments.open(tmp_path / "tables", spark) as looked:
        (row,) = looked.search(asked.timestamp, now=NOW_MS).collect()

    expected = next(one for one in records if one.timestamp >= asked.timestamp)
    assert (row["true_offset"], row["path"], row["problem"]) == (expected.offset, str(log), None)
    assert row["bytes_read"] < 64 * 1024


def _lose(what: str, log: Path) -> None:
    """Have the index files of a segment lie in what a search uses."""
    index, time_index = log.with_suffix(".index"), log.with_suffix(".timeindex")
    if what == "an offset":
        index.write_bytes(_raised(index.read_bytes(), 8, at=3))
    elif what == "a timestamp":
        time_index.write_bytes(_raised(time_index.read_bytes(), 12, at=7))
    elif what == ".index":
        index.unlink()
    elif what == "entries":
        time_index.write_bytes(time_index.read_bytes() + bytes([1]))


def _raised(data: bytes, width: int, *, at: int) -> bytes:
    """Raise one byte of each entry."""
    raised = bytearray(data)
    for start in range(at, len(data), width):
        raised[start] += 1
    return bytes(raised)


@pytest.mark.slow
def test_rolls_are_decided_by_the_index_files_beside_the_segments(
    both: tuple[kafka_segments.OpenWarehouse, kafka_segments.OpenWarehouse],
) -> None:
    rolls = [
        sorted(map(tuple, opened.roll(now=NOW_MS).drop("run_id", "decided_at").collect()), key=str)
        for opened in both
    ]

    assert rolls[0] == rolls[1]
    assert "unknown" not in str(rolls[0])


def _failed(spark: SparkSession, warehouse: Path) -> list[tuple[str, str, int]]:
    with few_rows(spark):
        found = run_validate(
            Warehouse(spark, str(warehouse)), ValidateOptions(NOW_MS), dry_run=True
        )
    return [
        (result.table, result.check, result.failed_rows)
        for result in found.results
        if result.failed_rows
    ]


@pytest.fixture(scope="module")
def failed_of_all(spark: SparkSession, warehouses: Warehouses) -> list[tuple[str, str, int]]:
    return _failed(spark, warehouses.read)


@pytest.mark.long
def test_a_validation_finds_no_more_but_that_not_all_was_read(
    spark: SparkSession, warehouses: Warehouses, failed_of_all: list[tuple[str, str, int]]
) -> None:
    looked_at = warehouses.summary.segments_looked_at

    failed = _failed(spark, warehouses.looked)

    assert looked_at and ("segments", "checksums_verified", looked_at) in failed
    assert [one for one in failed if one[1] != "checksums_verified"] == failed_of_all


@pytest.mark.slow
def test_a_plan_refuses_what_only_a_look_knows(spark: SparkSession, warehouses: Warehouses) -> None:
    configs = TopicConfigs.load(Settings(retention_ms=1))
    retention = RetentionOptions(configs, RetentionRules.of("4.3"), NOW_MS)

    _, planned = run_plan(
        Warehouse(spark, str(warehouses.looked)), retention, has_digests=False, dry_run=True
    )
    problems = [row["problem"] for row in planned.collect()]

    assert len([text for text in problems if text and "first look" in text]) > 0


@pytest.mark.long
def test_an_inventory_counts_the_formats_of_segments_that_a_look_knows(
    spark: SparkSession, warehouses: Warehouses
) -> None:
    configs = TopicConfigs.load(Settings())

    def inventory(warehouse: Path) -> list[tuple[Any, ...]]:
        options = RetentionOptions(configs, RetentionRules.of("4.3"), NOW_MS)
        taken = run_inventory(
            Warehouse(spark, str(warehouse)), InventoryOptions(options), dry_run=True
        )
        return sorted(map(tuple, taken.segments.drop("run_id").collect()), key=str)

    found, read = inventory(warehouses.looked), inventory(warehouses.read)

    assert found == read


def test_what_only_all_batches_tell_is_refused(
    both: tuple[kafka_segments.OpenWarehouse, kafka_segments.OpenWarehouse], warehouses: Warehouses
) -> None:
    with pytest.raises(UsageError, match="known by a first look alone"):
        both[0].roll_what_if({"segment_bytes": [1 << 20]})
    for verb in (
        ["search", "--time", "LATEST", "--isolation-level", "read_committed"],
        ["recovery", "forecast"],
    ):
        done = CliRunner().invoke(cli, [*verb, "--warehouse", str(warehouses.looked)])
        assert (done.exit_code, "known by a first look alone" in done.stderr) == (2, True), verb


@pytest.fixture(scope="module")
def reported(spark: SparkSession, warehouses: Warehouses) -> ReportData:
    """The report of what all was read of."""
    with few_rows(spark):
        return run_report(Warehouse(spark, str(warehouses.read)), ReportOptions(NOW_MS))


@pytest.mark.slow
def test_the_report_says_how_many_segments_a_first_look_knows(
    spark: SparkSession, warehouses: Warehouses, reported: ReportData
) -> None:
    looked = run_report(Warehouse(spark, str(warehouses.looked)), ReportOptions(NOW_MS))

    assert (looked.looked_at, reported.looked_at) == (warehouses.summary.segments_looked_at, 0)
    unverified = {"unverified": looked.looked_at}
    assert looked.totals.asDict() == {**reported.totals.asDict(), **unverified}
    assert looked.crashes == []  # how many batches are to be recovered is not known
    assert {row["oldest_ms"] for row in looked.lanes} == {None}
    assert [row["newest_ms"] for row in looked.lanes] == [
        row["newest_ms"] for row in reported.lanes
    ]


@pytest.mark.slow
def test_open_transactions_are_refused_and_the_report_says_that_they_are_not_known(
    spark: SparkSession, warehouses: Warehouses, tmp_path: Path
) -> None:
    known = tmp_path / "tables"
    shutil.copytree(warehouses.looked, known)
    record = {"cluster": "c", "topic": TRANSACTIONS_TOPIC, "kind": "TransactionLog", "offset": 0}
    with few_rows(spark):
        fill(Warehouse(spark, str(known)), INTERNAL_RECORDS, [record])
    why = "known by a first look alone, which does not tell which transactions are open"

    done = CliRunner().invoke(cli, ["internals", "transactions", "--warehouse", str(known)])
    with few_rows(spark):
        page = render_report(run_report(Warehouse(spark, str(known)), ReportOptions(NOW_MS)))

    assert (done.exit_code, done.stdout, why in done.stderr) == (2, "", True)
    with kafka_segments.open(known, spark) as opened, pytest.raises(UsageError, match=why):
        opened.internals.transactions()
    assert "It is not known which transactions are open: " in page
    assert why in page
    assert "No transaction is open" not in page
