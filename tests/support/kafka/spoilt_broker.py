"""A real broker that writes logs and lives on with their files spoilt: what it then serves."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from support.kafka import kafka_clients as clients
from support.kafka.kafka_broker import KafkaBroker
from support.logs.spoiled_topics import DAY_MS, KINDS, Log

RECORDS, VALUE = 120, b"v" * 900
WAIT_SECONDS, SILENCE_SECONDS = 60, 5
LATEST = -1
COMPACTED, YOUNG_FROM = "sound-compacted", 30
NOW_MS = int(time.time() * 1000)
ASKED = (*range(0, 20, 5), *range(20, 60), 80, 100, 115)
OF_SEGMENTS = {
    "internal_segment_bytes": "50000",
    "retention_ms": "-1",
    "file_delete_delay_ms": "0",
}


class Seen(NamedTuple):
    """A log as its broker served it: the offsets that were read, answers by time, its end."""

    offsets: list[int]
    by_time: dict[int, int]
    end: int


def timestamp(topic: str, number: int) -> int:
    """Give the timestamps of a record: an hour old; the first ones of one topic two days."""
    if topic == "time-not-closed" and number < YOUNG_FROM:
        return NOW_MS - 2 * DAY_MS + number * 1000
    return NOW_MS - DAY_MS // 24 + number * 1000


def topics() -> list[str]:
    return [*KINDS, COMPACTED]


def sent(topic: str, first: int, count: int) -> Iterator[clients.Sent]:
    for number in range(first, first + count):
        yield clients.Sent(topic, 0, timestamp(topic, number), VALUE)


def fill(bootstrap: str) -> None:
    one_by_one = {"batch_num_messages": 1, "linger_ms": 0}
    sender = clients.producer(bootstrap, **one_by_one)
    for topic in topics():
        if topic != "txn-missing":
            clients.send(sender, sent(topic, 0, RECORDS))
    _abort(clients.producer(bootstrap, transactional_id="aborts", **one_by_one))
    clients.send(sender, sent("txn-missing", 10, RECORDS - 10))


def _abort(sender: Producer) -> None:
    sender.init_transactions(WAIT_SECONDS)
    sender.begin_transaction()
    clients.send(sender, sent("txn-missing", 0, 10))
    sender.abort_transaction(WAIT_SECONDS)


def read_on(
    bootstrap: str, firsts: dict[str, int], *, is_read_committed: bool = False
) -> dict[str, list[int]]:
    """Read topics on from an offset each as long as something comes; gives the offsets."""
    reader = clients.consumer(bootstrap, "reader", is_read_committed=is_read_committed)
    offsets: dict[str, list[int]] = {topic: [] for topic in firsts}
    try:
        reader.assign([TopicPartition(topic, 0, first) for topic, first in firsts.items()])
        while found := reader.consume(500, timeout=SILENCE_SECONDS):
            for each in found:
                if each.error() is None:
                    offsets[each.topic() or ""].append(each.offset() or 0)
        return offsets
    finally:
        reader.close()


def look(bootstrap: str, names: list[str]) -> dict[str, Seen]:
    asked = {topic: [timestamp(topic, number) for number in ASKED] for topic in names}
    by_partition = {(topic, 0): [*times, LATEST] for topic, times in asked.items()}
    admin = clients.admin_client(bootstrap)
    answers = clients.list_offsets(admin, by_partition, is_read_committed=False)
    offsets = read_on(bootstrap, dict.fromkeys(names, 0))
    return {
        topic: Seen(
            offsets[topic],
            {when: answers[topic, 0, when][0] for when in asked[topic]},
            answers[topic, 0, LATEST][0],
        )
        for topic in names
    }


def _set(admin: AdminClient, names: list[str], **config: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resources = [
        ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries) for topic in names
    ]
    for future in admin.incremental_alter_configs(resources).values():
        future.result(WAIT_SECONDS)


Said = dict[str, list[dict[str, Any]]]
"""The rows of an audit by topic."""


class Lived(NamedTuple):
    """What was said, and what was seen: before, after the start, then on disk."""

    said: Said
    before: dict[str, Seen]
    after: dict[str, Seen]
    sound: Path  # the folders as they were before they were spoilt
    started: Path  # ... after the start
    log_dir: Path  # ... and after records were appended and retention ran
    appended: dict[str, list[int]]
    spoilt: dict[str, Path]
    committed: list[int]
    firsts: dict[tuple[str, int], int | None]
    errors: list[str]

    def left(self, topic: str) -> list[str]:
        return sorted(each.name for each in (self.log_dir / f"{topic}-0").glob("*.log"))

    def first_went(self, topic: str) -> bool:
        """Tell whether retention deleted the first segment."""
        return f"{0:020d}.log" not in self.left(topic)


def _looked_up_wrong() -> list[str]:
    return [
        topic
        for topic, kind in KINDS.items()
        if kind.effect == "wrong_lookups" and topic != "txn-missing"
    ]


def _near(sound: Path, spoilt: Path) -> list[int]:
    """Give the offsets of some entries that an index had, and of those beside them."""
    entries = (sound / spoilt.parent.name / spoilt.name).read_bytes()
    offsets = [int.from_bytes(entries[at : at + 4], "big") for at in range(0, len(entries), 8)]
    return [offsets[5] - 1, offsets[5], offsets[-1], offsets[-1] + 1]


def _first_read(bootstrap: str, near: dict[str, list[int]]) -> dict[tuple[str, int], int | None]:
    """Give the first offset that is read by each fetch, None where none comes."""
    firsts: dict[tuple[str, int], int | None] = {}
    for turn in range(4):
        asked = {topic: offsets[turn] for topic, offsets in near.items()}
        for topic, offsets in read_on(bootstrap, asked).items():
            firsts[topic, asked[topic]] = next(iter(offsets), None)
    return firsts


def append(bootstrap: str) -> dict[str, list[int]]:
    """Append to each log until its segment has rolled; gives the offsets of the new records."""
    offsets: dict[str, list[int]] = {topic: [] for topic in topics()}
    sender = clients.producer(bootstrap, batch_num_messages=1, linger_ms=0)
    for topic in topics():
        for message in sent(topic, RECORDS, 60):
            sender.produce(
                topic,
                message.value,
                partition=0,
                timestamp=message.timestamp_ms,
                on_delivery=lambda error, given: offsets[given.topic()].append(
                    -1 if error else given.offset()
                ),
            )
            sender.poll(0)
        assert sender.flush(WAIT_SECONDS) == 0
    return offsets


def live(folder: Path, audit: Callable[[Path], Said]) -> Lived:
    """Let a broker write logs, spoil them, ask ``audit``, and let the broker live on."""
    checks = {"log.retention.check.interval.ms": "2000", "log.initial.task.delay.ms": "1000"}
    with KafkaBroker(folder, checks) as broker:
        broker.start_broker()
        clients.create(broker.bootstrap, dict.fromkeys(topics(), 1), **OF_SEGMENTS)
        fill(broker.bootstrap)
        before = look(broker.bootstrap, topics())
        broker.stop_broker()
        shutil.copytree(broker.log_dir, folder / "sound")
        spoilt = {
            topic: spoilt.spoil(Log(broker.log_dir / f"{topic}-0"))
            for topic, spoilt in KINDS.items()
        }
        said = audit(broker.log_dir)
        broker.log_file.write_text("")
        broker.start_broker()
        shutil.copytree(broker.log_dir, folder / "started", symlinks=True)
        after = look(broker.bootstrap, topics())
        committed = read_on(broker.bootstrap, {"txn-missing": 0}, is_read_committed=True)
        near = {topic: _near(folder / "sound", spoilt[topic]) for topic in _looked_up_wrong()}
        firsts = _first_read(broker.bootstrap, near)
        appended = append(broker.bootstrap)
        admin = clients.admin_client(broker.bootstrap)
        _set(admin, [COMPACTED], cleanup_policy="compact,delete", retention_bytes="1")
        _set(admin, topics(), retention_ms=str(DAY_MS))
        time.sleep(15)
        errors = [
            line for line in broker.log_file.read_text().splitlines() if line.startswith("ERROR")
        ]
        return Lived(
            said,
            before,
            after,
            folder / "sound",
            folder / "started",
            broker.log_dir,
            appended,
            spoilt,
            committed["txn-missing"],
            firsts,
            errors,
        )
