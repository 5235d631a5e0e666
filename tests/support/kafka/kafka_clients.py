"""Clients of a broker that are not Kafka's own: confluent-kafka."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, IsolationLevel, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

WAIT_SECONDS = 120.0
_NAMES = {-1: OffsetSpec.latest, -2: OffsetSpec.earliest, -3: OffsetSpec.max_timestamp}
Partition = tuple[str, int]


class Sent(NamedTuple):
    """A message to send."""

    topic: str
    partition: int
    timestamp_ms: int
    value: bytes


def admin_client(bootstrap: str) -> AdminClient:
    """Give an admin client."""
    return AdminClient({"bootstrap.servers": bootstrap})


def create(bootstrap: str, topics: Mapping[str, int], **config: str) -> None:
    """Create topics of so many partitions; ``config`` is theirs with ``_`` for ``.``."""
    named = {name.replace("_", "."): value for name, value in config.items()}
    wanted = [NewTopic(topic, count, 1, config=named) for topic, count in topics.items()]
    admin = admin_client(bootstrap)
    for future in admin.create_topics(wanted, request_timeout=WAIT_SECONDS).values():
        future.result(WAIT_SECONDS)


def producer(bootstrap: str, **settings: object) -> Producer:
    """Give a producer; ``settings`` are librdkafka's with ``_`` for ``.``."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap, **named})


def send(sender: Producer, messages: Iterable[Sent]) -> None:
    """Send messages and wait until the broker has them all."""
    failures: list[str] = []
    for message in messages:
        sender.produce(
            message.topic,
            message.value,
            partition=message.partition,
            timestamp=message.timestamp_ms,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        sender.poll(0)
    assert sender.flush(WAIT_SECONDS) == 0
    assert not failures


def list_offsets(
    admin: AdminClient, asked: Mapping[Partition, Sequence[int]], *, is_read_committed: bool
) -> dict[tuple[str, int, int], tuple[int, int]]:
    """Ask a broker for offsets by timestamp or the number of a name; gives offset, timestamp."""
    level = IsolationLevel.READ_COMMITTED if is_read_committed else IsolationLevel.READ_UNCOMMITTED
    waiting = []
    for round_number in range(max(map(len, asked.values()))):
        specs = {
            TopicPartition(*name): _spec(targets[round_number])
            for name, targets in asked.items()
            if round_number < len(targets)
        }
        futures = admin.list_offsets(specs, isolation_level=level, request_timeout=WAIT_SECONDS)
        waiting.append((round_number, futures))
    answers = {}
    for round_number, futures in waiting:
        for partition, future in futures.items():
            target = asked[partition.topic, partition.partition][round_number]
            found = future.result(WAIT_SECONDS)
            answers[partition.topic, partition.partition, target] = (found.offset, found.timestamp)
    return answers


def _spec(target: int) -> OffsetSpec:
    return OffsetSpec.for_timestamp(target) if target >= 0 else _NAMES[target]()


def consumer(bootstrap: str, group: str, *, is_read_committed: bool = False) -> Consumer:
    """Give a consumer that commits when it is told to."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if is_read_committed else "read_uncommitted",
        }
    )


def read(reader: Consumer, count: int) -> list[Message]:
    """Read so many messages."""
    messages: list[Message] = []
    while len(messages) < count:
        found = reader.consume(count - len(messages), timeout=WAIT_SECONDS)
        assert found, f"{len(messages)} messages, {count} expected"
        for message in found:
            assert message.error() is None, message.error()
        messages += found
    return messages
