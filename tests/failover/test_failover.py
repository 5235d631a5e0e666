"""Failover and restore, on logs written by hand."""

import random
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows, has_few_rows
from kafka_segments.engine.derived.record_limits import read_record_limits
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.failover.run import (
    FailoverOptions,
    RestoreOptions,
    run_failover,
    run_restore,
)
from kafka_segments.verbs.find.search.log_tables import LogChoice
from support.kafka.kafka_referee import Referee
from support.logs.strategies import GZIP, v2_batch
from support.model.plain_decoder import plain_records
from support.spark.filled_tables import fill
from support.spark.stored_builds import build_few

HERE, THERE, GROUP = "here", "there", "g"
NOW_MS = 100_000_000
MAX_LATENCY_MS = 500
PARTITIONS = 6
LATE = 5  # partition with a message older than the margin allows
COMPRESSED = 1
COMMITTED = 60


def _messages(seed: int) -> list[tuple[int, bytes]]:
    """Draw the create times and values of 100 messages."""
    draw = random.Random(seed)
    return [(10_000 + 100 * number + draw.randrange(90), b"%d" % number) for number in range(100)]


def _shuffled(messages: Sequence[tuple[int, bytes]], seed: int) -> list[tuple[int, bytes]]:
    """Let each message arrive up to half the greatest latency late."""
    draw = random.Random(seed)
    late = [(time + draw.randrange(MAX_LATENCY_MS // 2), time, value) for time, value in messages]
    return [(time, value) for _, time, value in sorted(late)]


def _log(messages: Sequence[tuple[int, bytes]], batch: int = 3, codec: int = 0) -> bytes:
    records = [(time, None, value) for time, value in messages]
    return b"".join(
        v2_batch(first, records[first : first + batch], codec=codec)
        for first in range(0, len(messages), batch)
    )


def _write(folder: Path, data: bytes, base_offset: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{base_offset:020d}.log").write_bytes(data)


@pytest.fixture(scope="module")
def clusters(
    spark: SparkSession, referee: Referee, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Two clusters with the same messages in another order, and a group in the first."""
    folder = tmp_path_factory.mktemp("clusters")
    for partition in range(PARTITIONS):
        messages = _messages(partition)
        if partition == LATE:
            messages.insert(80, (9_000, b"late"))
        first = _shuffled(_messages(partition), partition)
        if partition == LATE:
            first.append((9_000, b"late"))
        there = _shuffled(messages, partition + 100)
        codec = GZIP if partition == COMPRESSED else 0
        _write(folder / HERE / f"t-{partition}", _log(first, codec=codec))
        _write(folder / THERE / f"t-{partition}", _log(there, codec=codec))
    commits = [
        {
            "group": GROUP,
            "topic": "t",
            "partition": partition,
            "offset": COMMITTED,
            "metadata": "",
            "commit_timestamp_ms": 50_000,
            "leader_epoch": 0,
            "version": 4,
        }
        for partition in range(PARTITIONS)
    ]
    records = [
        (50_000, bytes.fromhex(record["key"]), bytes.fromhex(record["value"]))
        for record in referee.write_commits(commits, partitions=1)
    ]
    _write(folder / HERE / "__consumer_offsets-0", v2_batch(0, records))
    for name in (HERE, THERE):
        logs, warehouse = folder / name, folder / f"wh-{name}"
        build_few(spark, str(logs), str(warehouse), now_ms=NOW_MS, cluster=name)
    return folder


def _of(spark: SparkSession, clusters: Path, name: str) -> Warehouse:
    return Warehouse(spark, str(clusters / f"wh-{name}"))


@pytest.mark.usefixtures("few")
def test_a_log_is_cut_before_its_first_record_later_than_the_moment(
    spark: SparkSession, caches: ExitStack, clusters: Path
) -> None:
    at_ms = 14_000
    asked = RestoreOptions(LogChoice(topics=("t",)), at_ms)

    plan = run_restore(_of(spark, clusters, HERE), asked, caches).collect()

    assert len(plan) == PARTITIONS
    for row in plan:
        log = clusters / HERE / f"t-{row['partition']}" / f"{0:020d}.log"
        records = list(plain_records(log.read_bytes()))
        first = next(record for record in records if record.timestamp > at_ms)
        kept = [r.offset for r in records if r.batch_position < first.batch_position]
        assert (row["cut_position"], row["bytes_needed"]) == (first.batch_position,) * 2
        assert row["last_offset_kept"] == kept[-1]
        assert row["early_records"] == first.offset - kept[-1] - 1
        assert (row["file"], row["segments_needed"], row["problem"]) == (str(log), 1, None)


@pytest.mark.usefixtures("few")
def test_a_log_without_a_later_record_is_kept_whole(
    spark: SparkSession, caches: ExitStack, clusters: Path
) -> None:
    choice = LogChoice(topics=("t",), partitions=(0,))
    asked = RestoreOptions(choice, NOW_MS)

    (row,) = run_restore(_of(spark, clusters, HERE), asked, caches).collect()

    size = (clusters / HERE / "t-0" / f"{0:020d}.log").stat().st_size
    assert (row["last_offset_kept"], row["cut_position"], row["bytes_needed"]) == (99, None, size)


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_times_are_looked_up_as_by_the_release_that_is_named(
    spark: SparkSession, caches: ExitStack, clusters: Path
) -> None:
    there = str(clusters / f"wh-{THERE}")
    choice = LogChoice(topics=("t",), partitions=(COMPRESSED,))
    release = {"kafka_version": (4, 4), "most_record_bytes": 1}
    restore = RestoreOptions(choice, 14_000, **release)
    failover = FailoverOptions(choice, there, choice, GROUP, MAX_LATENCY_MS, NOW_MS, **release)

    (cut,) = run_restore(_of(spark, clusters, HERE), restore, caches).collect()
    (moved,) = run_failover(_of(spark, clusters, HERE), failover, caches).collect()

    for row, offset in ((cut, "last_offset_kept"), (moved, "to_offset")):
        assert row[offset] is None
        assert "exceeds max.decompressed.message.bytes, 1" in row["problem"]


@pytest.mark.usefixtures("few")
def test_the_limit_of_records_is_the_one_that_the_metadata_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    limit = {"cluster": "c", "name": "max.decompressed.message.bytes", "from_offset": 3}
    fill(
        Warehouse(spark, str(tmp_path)),
        METADATA_CONFIGS,
        [
            {**limit, "resource_type": "topic", "resource_name": "t", "value": "9"},
            {**limit, "resource_type": "broker", "resource_name": "", "value": "7"},
            {**limit, "resource_type": "topic", "resource_name": "was", "value": "5"}
            | {"until_offset": 4},
            {**limit, "resource_type": "topic", "resource_name": "t", "value": "1"}
            | {"name": "retention.ms"},
        ],
    )

    assert read_record_limits(str(tmp_path)) == {("c", "topic", "t"): 9, ("c", "broker", ""): 7}
    assert read_record_limits(str(tmp_path / "nothing")) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("few_and_many")
def test_a_group_that_moves_to_another_cluster_skips_no_message(
    spark: SparkSession, caches: ExitStack, clusters: Path
) -> None:
    there = str(clusters / f"wh-{THERE}")
    choice = LogChoice(topics=("t",))
    asked = FailoverOptions(choice, there, choice, GROUP, MAX_LATENCY_MS, NOW_MS)
    plan = run_failover(_of(spark, clusters, HERE), asked, caches).collect()

    assert len(plan) == PARTITIONS
    for row in plan:
        name = f"t-{row['partition']}/{0:020d}.log"
        here = list(plain_records((clusters / HERE / name).read_bytes()))
        there = list(plain_records((clusters / THERE / name).read_bytes()))
        unread = {record.value for record in here[COMMITTED:]}
        skipped = {record.value for record in there[: row["to_offset"]]}
        again = {record.value for record in there[row["to_offset"] :]} - unread
        assert not unread & skipped
        assert row["is_margin_enough"] == (row["partition"] != LATE)
        assert len(again) <= row["most_duplicates"]
        assert 0 <= row["expected_duplicates"] <= row["most_duplicates"]
        assert row["last_timestamp_ms"] == here[COMMITTED - 1].timestamp


@pytest.mark.long
def test_few_rows_and_many_lead_to_the_same_plan(
    spark: SparkSession, caches: ExitStack, clusters: Path
) -> None:
    there = str(clusters / f"wh-{THERE}")
    asked = FailoverOptions(LogChoice(), there, LogChoice(), GROUP, MAX_LATENCY_MS, NOW_MS)

    def plan() -> tuple[list[str], list[str]]:
        rows = run_failover(_of(spark, clusters, HERE), asked, caches)
        return rows.columns, sorted(map(repr, rows.collect()))

    of_many = plan()
    with few_rows(spark):
        of_few = plan()
        assert has_few_rows(spark)

    assert of_few == of_many
    assert of_few[1]
