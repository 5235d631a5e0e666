"""A real broker's tier: what is found of it, and its data served again by rebuilt records."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.house.doc_blocks import DOCS, blocks
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import Sent, admin_client, create, list_offsets, producer, send
from support.kafka.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPIC, BURSTS, A_BURST = "tiered", 4, 5
METADATA_PARTITIONS = 2
EARLIEST = -2
AHEAD_MS = 1_800_000
PATIENCE_SECONDS = 60.0
NO_COPIES = {
    "remote.log.copy.disable": "true",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
}
PROPERTIES = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "FolderStorage",
    "rsm.config.names": "offsets",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
    "remote.log.manager.task.interval.ms": "300",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
}
TIERED = {
    "remote_storage_enable": "true",
    "segment_ms": "500",
    "local_retention_ms": "500",
    "retention_ms": "-1",
}


def run(*arguments: object, findings: bool = False) -> Any:
    done = CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == int(findings), done.output
    return done


def internals(*arguments: object, findings: bool = False) -> list[dict[str, Any]]:
    """Run the verb; gives the rows that it prints."""
    done = run("internals", *arguments, "--output", "json", findings=findings)
    return [json.loads(line) for line in done.stdout.splitlines()]


def fill(broker: KafkaBroker) -> list[bytes]:
    """Write some bursts, each a segment of its own; wait until all but the last are only remote.

    The last is dated ahead of the clock: a broker rolls an active segment that local retention
    breaches, and would copy it too.
    """
    values = [b"record %d" % number for number in range(BURSTS * A_BURST)]
    sender = producer(broker.bootstrap)
    create(broker.bootstrap, {TOPIC: 1}, **TIERED)
    for first in range(0, len(values), A_BURST):
        some = values[first : first + A_BURST]
        is_last = first + A_BURST == len(values)
        written_ms = int(time.time() * 1000) + (AHEAD_MS if is_last else 0)
        send(sender, [Sent(TOPIC, 0, written_ms, value) for value in some])
        time.sleep(0.8)
    wait_until(lambda: local_begin(broker) >= len(values) - A_BURST, "local segments deleted")
    return values


def local_begin(broker: KafkaBroker) -> int:
    return min(int(log.stem) for log in (broker.log_dir / f"{TOPIC}-0").glob("*.log"))


def stop_copying(broker: KafkaBroker) -> None:
    """Stop copying, as the page says."""
    admin = admin_client(broker.bootstrap)
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in NO_COPIES.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(PATIENCE_SECONDS)


def read_from_the_start(broker: KafkaBroker, count: int, seconds: float) -> list[bytes]:
    """Read what a consumer that begins at offset 0 finds within a time."""
    reader = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes] = []
    end = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        message = reader.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value())
    reader.close()
    return found


def produce_as_the_page_says(broker: KafkaBroker, records: Path) -> None:
    """Run the program of docs/internals.md."""
    page = (DOCS / "internals.md").read_text("utf-8")
    (program,) = [block.code for block in blocks(page) if "b64decode" in block.code]
    told = program.replace("HOST:PORT", broker.bootstrap).replace("records.jsonl", str(records))
    exec(compile(told, "docs/internals.md", "exec"), {})


def test_lost_metadata_is_rebuilt_of_objects_and_the_broker_serves_the_tier_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    objects, records = tmp_path / "objects", tmp_path / "records.jsonl"
    objects.mkdir()
    properties = {**PROPERTIES, "rsm.config.folder": str(objects)}
    tier = ("--source", objects, "--warehouse", tmp_path / "warehouse")
    with KafkaBroker(tmp_path, properties) as broker:
        broker.start_broker()
        values = fill(broker)
        assert read_from_the_start(broker, len(values), PATIENCE_SECONDS) == values
        stop_copying(broker)
        broker.stop_broker()

        for folder in broker.log_dir.glob("__remote_log_metadata-*"):
            shutil.rmtree(folder)
        internals("--source", broker.log_dir, "--warehouse", tmp_path / "warehouse")
        asked: tuple[object, ...] = ("--check", "headers", "--rebuild", records)
        asked += ("--metadata-partitions", METADATA_PARTITIONS)
        internals("tier", *tier, *asked, findings=True)  # what those logs held is not known
        announced = [json.loads(line) for line in records.read_text().splitlines()]
        assert len(announced) == 2 * len(list(objects.rglob("*.log")))

        broker.start_broker()
        lost = read_from_the_start(broker, len(values), 5.0)
        assert lost != values
        produce_as_the_page_says(broker, records)

        found: list[bytes] = []

        def is_served() -> bool:
            found[:] = read_from_the_start(broker, len(values), 5.0)
            return found == values

        wait_until(is_served, "the tier is served")
        admin = admin_client(broker.bootstrap)
        begin = list_offsets(admin, {(TOPIC, 0): [EARLIEST]}, is_read_committed=False)
        assert begin[TOPIC, 0, EARLIEST][0] == 0


@pytest.mark.long
def test_of_a_sound_tier_nothing_is_found_until_an_object_goes_and_another_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    objects, warehouse = tmp_path / "objects", tmp_path / "warehouse"
    objects.mkdir()
    tier = ("tier", "--source", objects, "--warehouse", warehouse)
    with KafkaBroker(tmp_path, {**PROPERTIES, "rsm.config.folder": str(objects)}) as broker:
        broker.start_broker()
        values = fill(broker)
        broker.stop_broker()
    of_disk = ("--source", broker.log_dir, "--warehouse", warehouse)
    run("build", *of_disk, "--index-dir", tmp_path / "indexes")
    internals(*of_disk)
    logs = sorted((objects / f"{TOPIC}-0").glob("*.log"))

    sound = internals(*tier, "--check", "headers")
    gaps = internals(*tier, "--not-copied")

    assert [(row["state"], row["findings"]) for row in sound] == [
        ("COPY_SEGMENT_FINISHED", []) for _ in logs
    ]
    last = [(row["copies"], row["from_offset"], row["to_offset"]) for row in gaps]
    assert last == [(len(logs), len(values) - A_BURST, len(values) - 1)]

    lost, kept = logs[0], logs[1]
    stray = kept.with_name(f"{kept.name[:20]}-{'A' * 21}Q.log")
    shutil.copy(kept, stray)
    lost.unlink()

    found = internals(*tier, "--check", "headers", findings=True)
    gaps = internals(*tier, "--not-copied")

    wrong = {row["segment_id"]: row["findings"] for row in found if row["findings"]}
    assert wrong == {lost.stem[21:]: ["missing"], stray.stem[21:]: ["orphan"]}
    assert len(found) == len(logs) + 1
    left = [(row["copies"], row["from_offset"], row["to_offset"]) for row in gaps]
    assert left == [(len(logs) - 1, *last[0][1:])]
