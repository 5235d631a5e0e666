"""The disk of a broker that was killed under load, and what a broker answers on a copy of it."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import WAIT_SECONDS, create, producer
from support.kafka.killed_broker import KilledBroker

START_MS = 1_790_000_000_000
RECORD_BYTES = 10_000
MEGABYTES = {"long": 26, **dict.fromkeys(("torn", "zeros", "lost", "flipped", "hole", "bare"), 5)}
REFUSED = {"flipped", "hole"}  # after ``damage``
PAGE = 4096
_RECOVERED = re.compile(r"Recovering unflushed segment (\d+)\. .* for (\S+?)-(\d+)\.")
_TRANSACTIONS = 6
_SLOWNESS = ("EventPerformanceMonitor", "apiKey=CONTROLLER_REGISTRATION")


class Reached(Protocol):
    """A broker that clients reach, and that writes a log."""

    bootstrap: str
    log_file: Path


def crash(folder: Path, megabytes: Mapping[str, int], **settings: object) -> Path:
    """Load topics of one partition with so much each, and kill the broker; return its log dir.

    Of each topic a half was sent in transactions, some of them aborted; one is open in each.
    Topics that are there already are loaded further. ``settings`` are those of ``KilledBroker``.
    """
    with KilledBroker(folder, **settings) as broker:
        broker.start_broker()
        load(broker, megabytes)
        broker.kill()
    return broker.log_dir


def load(
    broker: Reached,
    megabytes: Mapping[str, int],
    *,
    start_ms: int = START_MS,
    record_bytes: int = RECORD_BYTES,
    **settings: object,
) -> None:
    """Send so much to each topic, and leave a transaction open in each.

    ``settings`` are the producers', see ``producer``.
    """
    records = {topic: size * 1_000_000 // record_bytes for topic, size in megabytes.items()}
    there = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=60).topics
    if new := dict.fromkeys(set(megabytes) - set(there), 1):
        create(broker.bootstrap, new)
    plain = producer(broker.bootstrap, enable_idempotence=True, linger_ms=5, **settings)
    senders = [
        producer(
            broker.bootstrap,
            transactional_id=f"t{number}",
            transaction_timeout_ms=900_000,
            linger_ms=5,
            **settings,
        )
        for number in range(2)
    ]
    for sender in senders:
        sender.init_transactions(WAIT_SECONDS)
    for turn in range(_TRANSACTIONS):
        _send(plain, records, turn, 2, start_ms, record_bytes)
        for number, sender in enumerate(senders):
            sender.begin_transaction()
            _send(sender, records, turn + number, 1, start_ms, record_bytes)
            if turn == _TRANSACTIONS - 1:
                continue
            if (turn + number) % 3:
                sender.commit_transaction(WAIT_SECONDS)
            else:
                sender.abort_transaction(WAIT_SECONDS)


def _send(
    sender: Producer,
    records: Mapping[str, int],
    turn: int,
    share: int,
    start_ms: int,
    record_bytes: int,
) -> None:
    """Send a part of what each topic is to have in records that do not compress."""
    for topic, count in records.items():
        for number in range(count * share // (4 * _TRANSACTIONS) + 1):
            text = f"{topic} {turn} {number}".encode()
            sender.produce(
                topic,
                hashlib.shake_128(text).digest(record_bytes),
                key=text,
                partition=0,
                timestamp=start_ms + 1000 * turn + number,
            )
            sender.poll(0)
    assert sender.flush(WAIT_SECONDS) == 0


def damage(log_dir: Path) -> None:
    """Leave what crashes leave: a torn tail, pages of zeros, a flipped bit, no snapshots."""
    torn = _logs(log_dir, "torn")[-1]
    with torn.open("ab") as stream:
        first = torn.read_bytes()[:5000]
        stream.write((10**6).to_bytes(8, "big") + first[8:])
    with _logs(log_dir, "zeros")[-1].open("ab") as stream:
        stream.write(bytes(PAGE))
    end = (last := _logs(log_dir, "lost")[-1]).stat().st_size
    lose(last, (end - 1) // PAGE * PAGE, end)
    lose(_logs(log_dir, "hole")[2], 100 * PAGE, 101 * PAGE)
    middle = _logs(log_dir, "flipped")[2]
    data = bytearray(middle.read_bytes())
    data[len(data) // 2] ^= 1
    middle.write_bytes(data)
    for snapshot in (log_dir / "bare-0").glob("*.snapshot"):
        snapshot.unlink()


def lose(log: Path, first: int, end: int) -> None:
    """Leave zeros in place of bytes, as of a page that was not written."""
    with log.open("r+b") as stream:
        stream.seek(first)
        stream.write(bytes(end - first))


def _logs(log_dir: Path, topic: str) -> list[Path]:
    return sorted((log_dir / f"{topic}-0").glob("*.log"))


@contextmanager
def started(folder: Path, **settings: object) -> Iterator[KafkaBroker]:
    """Start a broker on the copy of a disk in ``folder``/logs, and kill it at the end."""
    with KilledBroker(folder, **settings) as broker:
        broker.start_broker()
        yield broker


def recovered(broker: KafkaBroker) -> dict[str, list[int]]:
    """Return the base offsets of the segments that a broker says it recovers, by topic."""
    found: dict[str, list[int]] = {}
    for base_offset, topic, _ in _RECOVERED.findall(broker.log_file.read_text()):
        found.setdefault(topic, []).append(int(base_offset))
    return found


def errors(broker: Reached) -> list[str]:
    """Return the lines of a broker's log that say that something went wrong, but slowness."""
    return [
        line
        for line in broker.log_file.read_text().splitlines()
        if line.startswith(("ERROR", "FATAL")) and not any(slow in line for slow in _SLOWNESS)
    ]


def answers(broker: KafkaBroker, topics: list[str]) -> dict[str, object]:
    """Return all that clients can ask of the topics, and their leader epochs.

    That is offsets, producers, every record.
    """
    asked = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", *(str(START_MS + 1000 * i) for i in range(7))]
    found: dict[str, object] = {
        "offsets": broker.list_offsets({f"{topic}-0": asked for topic in topics})
    }
    for topic in topics:
        found[f"producers of {topic}"] = broker.producers(f"{topic}-0")
        epochs = broker.log_dir / f"{topic}-0" / LEADER_EPOCHS
        found[f"epochs of {topic}"] = epochs.read_text().splitlines()[2:]
        for isolation in ("read_uncommitted", "read_committed"):
            found[f"{topic} {isolation}"] = read_all(broker, topic, isolation)
    return found


def read_all(broker: Reached, topic: str, isolation: str) -> list[tuple[int, int, str]]:
    """Read a topic's partition as far as the isolation level lets; gives a digest of each record.

    An empty list at the end of a partition is not taken for the end: the position tells.
    """
    reader = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    records: list[tuple[int, int, str]] = []
    while True:
        message = reader.poll(WAIT_SECONDS)
        assert message is not None
        if message.error() is not None:
            break
        digest = hashlib.sha256((message.key() or b"") + (message.value() or b"")).hexdigest()
        records.append((message.offset(), message.timestamp()[1], digest))
    reader.close()
    return records


def produced(broker: Reached, topics: Sequence[str]) -> list[int]:
    """Produce to each topic, in a transaction that ends the open one; return their records."""
    sender = producer(broker.bootstrap, transactional_id="t0")
    sender.init_transactions(WAIT_SECONDS)
    sender.begin_transaction()
    for topic in topics:
        sender.produce(topic, b"more", partition=0)
    sender.commit_transaction(WAIT_SECONDS)
    return [len(read_all(broker, topic, "read_uncommitted")) for topic in topics]
