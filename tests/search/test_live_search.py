"""Search, lag and failover against brokers that run, asked by a client of their own."""

import csv
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.cli import cli
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.find.failover.run import FailoverOptions, run_failover
from kafka_segments.verbs.find.lag.run import LagOptions, run_lag
from kafka_segments.verbs.find.search.log_tables import LogChoice, LogTables
from kafka_segments.verbs.find.search.run import search_names, search_times
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import (
    Sent,
    admin_client,
    consumer,
    create,
    list_offsets,
    producer,
    read,
    send,
)
from support.kafka.kafka_referee import KAFKA_JARS
from support.logs.strategies import v2_batch

SEED = int(os.environ.get("SEARCH_SEED", "8"))
QUESTIONS = int(os.environ.get("SEARCH_QUESTIONS", "300"))
T0 = 1_600_000_000_000
NOW_MS = 1_800_000_000_000
FUTURE_MS = 4_000_000_000_000
MAX_LATENCY_MS = 500
NAMES = (-1, -2, -3)
TIMED = ("ordered", "unordered", "equal", "future", "append-time", "transactions", "old")
RECORDS = 1_500  # of 1 KB in each of these partitions: two segments
COMMITTED = {0: 170, 1: 120}
OLD = ("v0-v1-v2-multi-segment", "v1-lz4-out-of-order")


class Cluster(NamedTuple):
    """A broker that runs, and a copy of its log directory with tables."""

    broker: KafkaBroker
    copy: Path
    warehouse: str


def _draw_times(draw: random.Random, topic: str) -> list[int]:
    """Draw the create times of a partition's records."""
    if topic == "ordered":
        return [T0 + 10 * number for number in range(RECORDS)]
    if topic == "equal":
        return [T0 + 100_000 * (number // 700) for number in range(RECORDS)]
    ahead = FUTURE_MS if topic == "future" else T0 + 20_000
    return [
        ahead + number if draw.random() < 0.002 else T0 + draw.randrange(20_000)
        for number in range(RECORDS)
    ]


def _fill(broker: KafkaBroker, draw: random.Random) -> None:
    codecs = ("none", "gzip", "lz4", "zstd")
    for number, topic in enumerate(TIMED[:5]):
        times = _draw_times(draw, topic)
        sender = producer(
            broker.bootstrap, compression_type=codecs[number % 4], batch_num_messages=7
        )
        send(sender, [Sent(topic, 0, time, draw.randbytes(1_000)) for time in times])


def _transactions(bootstrap: str) -> list[Producer]:
    """Commit and abort some transactions, and leave one open; gives who must live for that."""
    first, second = (
        producer(bootstrap, transactional_id=name, transaction_timeout_ms=600_000)
        for name in ("first", "second")
    )
    clock = iter(range(T0, T0 + 10_000, 10))
    for sender in (first, second):
        sender.init_transactions()

    def write(sender: Producer, count: int) -> None:
        send(sender, [Sent("transactions", 0, next(clock), b"x") for _ in range(count)])

    for end in (first.commit_transaction, first.abort_transaction):
        first.begin_transaction()
        write(first, 5)
        end()
    second.begin_transaction()
    write(second, 3)
    first.begin_transaction()
    write(first, 4)
    first.commit_transaction()
    return [first, second]


def _plant(broker: KafkaBroker, synthetic: Path, draw: random.Random) -> None:
    """Put segments that no client could write today into the log directory of a stopped broker."""
    for partition, case in enumerate(OLD):
        _replace(broker.log_dir / f"old-{partition}", synthetic / case / "t-0")
    missing = broker.log_dir / "missing"
    missing.mkdir()
    for base_offset in (0, 400):
        batches = [
            v2_batch(
                first, [(draw.choice([-1, T0 + draw.randrange(5_000)]), None, b"v") for _ in "ab"]
            )
            for first in range(base_offset, base_offset + 400, 2)
        ]
        (missing / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    _replace(broker.log_dir / f"old-{len(OLD)}", missing)
    shutil.rmtree(missing)


def _replace(folder: Path, segments: Path) -> None:
    for file in folder.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for log in segments.glob("*.log"):
        shutil.copy(log, folder)
        os.utime(folder / log.name, (T0 // 1000 + 5, T0 // 1000 + 5))


def _snapshot(spark: SparkSession, broker: KafkaBroker, folder: Path, cluster: str) -> Cluster:
    """Copy the log directory of a running broker, and build the copy's tables."""
    copy, warehouse = folder / "copy", str(folder / "warehouse")
    shutil.copytree(broker.log_dir, copy, ignore=shutil.ignore_patterns("__cluster*"))
    options = BuildOptions((str(copy),), RecoveryOptions(), NOW_MS, cluster=cluster)
    run_build(Warehouse(spark, warehouse), options)
    return Cluster(broker, copy, warehouse)


@pytest.fixture(scope="module")
def here(
    spark: SparkSession, synthetic: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A broker with a topic of each kind, and a group that has read a part of two."""
    folder, draw = tmp_path_factory.mktemp("here"), random.Random(SEED)
    with KafkaBroker(folder) as broker:
        broker.start_broker()
        plain = {"old": 3, "move": 2, "ordered": 1, "unordered": 1, "equal": 1, "transactions": 1}
        create(broker.bootstrap, plain)
        create(broker.bootstrap, {"future": 1}, message_timestamp_after_max_ms=str(2**63 - 1))
        create(broker.bootstrap, {"append-time": 1}, message_timestamp_type="LogAppendTime")
        broker.stop_broker()
        _plant(broker, synthetic, draw)
        broker.start_broker()
        _fill(broker, draw)
        senders = _transactions(broker.bootstrap)
        _send_moving(broker, draw)
        _consume_a_part(broker)
        yield _snapshot(spark, broker, folder, "here")
        del senders


def _send_moving(broker: KafkaBroker, draw: random.Random) -> None:
    for partition in range(2):
        late = [
            (time + draw.randrange(MAX_LATENCY_MS // 2), time)
            for time in (T0 + 50 * number for number in range(400))
        ]
        messages = [
            Sent("move", partition, time, b"%d-%d" % (partition, time)) for _, time in sorted(late)
        ]
        send(producer(broker.bootstrap), messages)


def _consume_a_part(broker: KafkaBroker) -> None:
    """Let a group read a part of each partition, and commit on the way."""
    reader = consumer(broker.bootstrap, "g")
    reader.subscribe(["move"])
    left = dict(COMMITTED)
    while left:
        (message,) = read(reader, 1)
        partition, offset = message.partition(), message.offset() + 1
        if partition not in left or (offset < left[partition] and offset % 50):
            continue
        reader.commit(offsets=[TopicPartition("move", partition, offset)], asynchronous=False)
        if offset >= left[partition]:
            reader.pause([TopicPartition("move", partition)])
            del left[partition]
    reader.close()


def test_a_broker_gives_the_same_answers_to_hundreds_of_questions(
    spark: SparkSession, here: Cluster
) -> None:
    draw = random.Random(SEED)
    partitions = [*((topic, 0) for topic in TIMED), ("old", 1), ("old", 2)]
    asked = {
        is_read_committed: {partition: _draw_targets(draw) for partition in partitions}
        for is_read_committed in (False, True)
    }
    for is_read_committed, questions in asked.items():
        admin = admin_client(here.broker.bootstrap)
        expected = list_offsets(admin, questions, is_read_committed=is_read_committed)
        ours = _ask(spark, here.warehouse, questions, is_read_committed=is_read_committed)
        assert ours == expected, f"SEARCH_SEED={SEED}"


def _draw_targets(draw: random.Random) -> list[int]:
    """Draw a partition's share of the questions, all distinct, and add the names."""
    targets = {*NAMES}
    while len(targets) < QUESTIONS / 18 + len(NAMES):
        near = T0 + draw.randrange(-100, 41_000)
        far = [draw.randrange(NOW_MS), FUTURE_MS + draw.randrange(2_000), 2**62]
        targets.add(draw.choice([near, near, near, T0 + draw.randrange(300), *far]))
    return sorted(targets)


def _ask(
    spark: SparkSession,
    warehouse: str,
    questions: dict[tuple[str, int], list[int]],
    *,
    is_read_committed: bool,
) -> dict[tuple[str, int, int], tuple[int, int]]:
    rows = [
        (*partition, str(target), target)
        for partition, targets in questions.items()
        for target in targets
    ]
    asked = spark.createDataFrame(
        rows, "topic string, partition int, question string, target_ms long"
    )
    with ExitStack() as caches:
        tables = LogTables(
            Warehouse(spark, warehouse), LogChoice(), caches, is_read_committed=is_read_committed
        )
        of_logs = tables.logs.join(F.broadcast(asked), ["topic", "partition"], how="inner")
        times = search_times(tables, of_logs.where("target_ms >= 0"), kafka_version=(4, 3))
        names = search_names(tables, of_logs.where("target_ms < 0"), kafka_version=(4, 3))
        return {
            (row["topic"], row["partition"], row["target_ms"]): (
                row["kafka_offset"],
                row["kafka_timestamp_ms"],
            )
            for row in times.unionByName(names).collect()
        }


def test_a_group_that_is_reset_with_our_file_starts_at_the_first_record_of_the_time(
    here: Cluster, tmp_path: Path
) -> None:
    target = T0 + 9_990
    file = tmp_path / "offsets.csv"
    done = CliRunner().invoke(
        cli,
        [
            *("search", "--warehouse", here.warehouse, "--output", "reset-offsets"),
            *("--topic", "ordered", "--topic", "unordered", "--topic", "move"),
            *("--time", str(target)),
        ],
    )
    file.write_text(done.stdout)

    _reset(here.broker, "reset", file)

    for topic, partition, offset in csv.reader(done.stdout.splitlines()):
        reader = consumer(here.broker.bootstrap, "reset")
        reader.assign([TopicPartition(topic, int(partition))])
        (first,) = read(reader, 1)
        reader.assign([TopicPartition(topic, int(partition), 0)])
        before = read(reader, int(offset))
        reader.close()
        assert first.offset() == int(offset)
        assert first.timestamp()[1] >= target
        assert all(message.timestamp()[1] < target for message in before)


def _reset(broker: KafkaBroker, group: str, file: Path) -> None:
    """Do what ``kafka-consumer-groups.sh --reset-offsets --from-file`` does."""
    command = [
        *("java", "-Xmx256m", "-Dlog4j2.level=OFF", "-cp", f"{KAFKA_JARS}/*"),
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", broker.bootstrap, "--group", group),
        *("--reset-offsets", "--from-file", str(file), "--execute"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout


def test_the_lag_of_a_group_is_the_clients_own_arithmetic(
    spark: SparkSession, here: Cluster, caches: ExitStack
) -> None:
    reader = consumer(here.broker.bootstrap, "g")
    expected = {}
    for (committed,) in (reader.committed([TopicPartition("move", each)]) for each in range(2)):
        _, end = reader.get_watermark_offsets(committed)
        reader.assign([committed])
        first = read(reader, 1)[0] if committed.offset < end else None
        time_lag = 0 if first is None else NOW_MS - first.timestamp()[1]
        expected[committed.partition] = (committed.offset, end, end - committed.offset, time_lag)
    reader.close()

    asked = LagOptions(LogChoice(), NOW_MS, groups=("g",))
    rows = run_lag(Warehouse(spark, here.warehouse), asked, caches).collect()

    assert {
        row["partition"]: (
            row["committed_offset"],
            row["end_offset"],
            row["offset_lag"],
            row["time_lag_ms"],
        )
        for row in rows
    } == expected
    assert {partition: committed for partition, (committed, *_) in expected.items()} == COMMITTED


@pytest.mark.long
def test_a_group_that_fails_over_to_another_broker_misses_no_message(
    spark: SparkSession, here: Cluster, tmp_path: Path, caches: ExitStack
) -> None:
    draw = random.Random(SEED)
    with KafkaBroker(tmp_path) as broker:
        broker.start_broker()
        create(broker.bootstrap, {"move": 2})
        _copy_messages(here.broker, broker, draw)
        there = _snapshot(spark, broker, tmp_path, "there")
        choice = LogChoice(topics=("move",))
        asked = FailoverOptions(choice, there.warehouse, choice, "g", MAX_LATENCY_MS, NOW_MS)
        plan = run_failover(Warehouse(spark, here.warehouse), asked, caches).collect()

        assert [row["is_margin_enough"] for row in plan] == [True, True]
        for row in plan:
            unread = set(_values(here.broker, row["partition"], row["committed_offset"]))
            again = _values(broker, row["partition"], row["to_offset"])
            assert unread <= set(again)
            assert len(again) - len(unread) <= row["most_duplicates"]


def _copy_messages(source: KafkaBroker, target: KafkaBroker, draw: random.Random) -> None:
    """Copy a topic as a mirror does: later, in another order, to other offsets."""
    for partition in range(2):
        reader = consumer(source.bootstrap, "mirror")
        reader.assign([TopicPartition("move", partition, 0)])
        copied = [
            (message.timestamp()[1] + draw.randrange(MAX_LATENCY_MS // 2), message)
            for message in read(reader, 400)
        ]
        reader.close()
        older = [Sent("move", partition, T0 - 1_000, b"older") for _ in range(17)]
        mirrored = [
            Sent("move", partition, message.timestamp()[1], message.value())
            for _, message in sorted(copied, key=lambda each: each[0])
        ]
        send(producer(target.bootstrap), older + mirrored)


def _values(broker: KafkaBroker, partition: int, offset: int) -> list[bytes]:
    """Read a partition from an offset to its end."""
    reader = consumer(broker.bootstrap, "all")
    start = TopicPartition("move", partition, offset)
    reader.assign([start])
    _, end = reader.get_watermark_offsets(start)
    values = [message.value() for message in read(reader, end - offset)]
    reader.close()
    return values
