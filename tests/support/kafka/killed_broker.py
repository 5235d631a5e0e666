"""A broker that is killed under a drawn load, and what its next start says of its recovery."""

import os
import random
import re
import shutil
from pathlib import Path
from typing import NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException

from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import producer

_RECOVERING = re.compile(r"LogLoader partition=(\S+), dir=\S+\] Recovering unflushed segment (\d+)")
_LOADED = re.compile(r"Loaded \d+ logs in (\d+)ms")
_CORRUPT = re.compile(r"partition=(\S+), dir=\S+\] Corruption found in segment (\d+), truncating")
_EVERY = 50  # transactions of so many batches


class Load(NamedTuple):
    """A load: sizes in bytes, ``checkpoint_ms`` of the recovery points.

    ``transactional``: the share of the batches that transactions write.
    """

    partitions: int
    segment_bytes: int
    batch_bytes: int
    written_bytes: int
    checkpoint_ms: int
    transactional: float

    @classmethod
    def draw(cls, seed: int, written_bytes: int) -> Self:
        """Draw a load."""
        chance = random.Random(seed)
        return cls(
            partitions=chance.randint(3, 8),
            segment_bytes=chance.choice([1, 2, 4]) * 1024 * 1024,
            batch_bytes=chance.choice([2000, 4000, 16_000]),
            written_bytes=written_bytes,
            checkpoint_ms=chance.choice([1000, 3_600_000]),
            transactional=chance.choice([0.0, 0.5]),
        )


class Start(NamedTuple):
    """What a start logs: segments recovered, segments cut, ms for all logs."""

    recovered: set[tuple[str, int]]
    cut: set[tuple[str, int]]
    loaded_ms: int


class KilledBroker(KafkaBroker):
    """A broker with settings of its own; ``close`` kills it."""

    def __init__(self, folder: Path, **settings: object) -> None:
        """Prepare it; ``settings`` are the broker's with ``_`` for ``.``."""
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder)
        named = {name.replace("_", "."): value for name, value in settings.items()}
        with self._config.open("a") as config:
            config.writelines(f"{name}={value}\n" for name, value in named.items())


def kill_under_load(folder: Path, load: Load, *, seed: int) -> Path:
    """Start a broker, write the load, and kill it while it is written; return its log directory."""
    broker = KilledBroker(
        folder,
        log_segment_bytes=load.segment_bytes,
        log_flush_offset_checkpoint_interval_ms=load.checkpoint_ms,
        log_initial_task_delay_ms=load.checkpoint_ms,
    )
    with broker:
        broker.start_broker()
        broker.create({"plain": load.partitions, "held": load.partitions})
        _write(broker.bootstrap, load, random.Random(seed))
    return broker.log_dir


def _write(bootstrap: str, load: Load, chance: random.Random) -> None:
    """Write batches of one message each; the last tenth is on its way when it returns."""
    plain = producer(bootstrap, acks=1, linger_ms=0, batch_size=1, message_max_bytes=100_000)
    held = producer(
        bootstrap,
        transactional_id="x",
        transaction_timeout_ms=600_000,
        linger_ms=0,
        batch_size=1,
    )
    held.init_transactions(60)
    held.begin_transaction()
    count = load.written_bytes // load.batch_bytes
    for number in range(count):
        is_held = chance.random() < load.transactional
        sender, topic = (held, "held") if is_held else (plain, "plain")
        value = chance.randbytes(load.batch_bytes - 80)
        while True:
            try:
                sender.produce(topic, value, partition=number // 8 % load.partitions)
                break
            except BufferError:
                sender.poll(0.05)
        if number % 200 == 0:
            plain.poll(0)
            held.poll(0)
        if number % (8 * _EVERY) == 8 * _EVERY - 1 and number < count - 1:
            _end(held, aborts=number % 3 == 0)
        if number == count * 9 // 10:
            plain.flush(120)


def _end(sender: object, *, aborts: bool) -> None:
    sender.flush(60)  # an abort would throw away what is on its way, and the next one fail
    try:
        (sender.abort_transaction if aborts else sender.commit_transaction)(60)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._STATE:
            raise
    sender.begin_transaction()


def start_copy(log_dir: Path, folder: Path, **settings: object) -> KilledBroker:
    """Prepare a broker on a copy of a log directory; it is not started yet."""
    broker = KilledBroker(folder, **settings)
    copy_logs(log_dir, broker.log_dir)
    return broker


def copy_logs(log_dir: Path, copy: Path) -> None:
    """Copy a log directory.

    Logs but for the last of a partition, which no start changes if they are sound, are linked.
    """
    copy.mkdir()
    for source in sorted(log_dir.rglob("*")):
        target = copy / source.relative_to(log_dir)
        if source.is_dir():
            target.mkdir(parents=True)
        elif source.suffix == ".log" and source != max(source.parent.glob("*.log")):
            os.link(source, target)
        else:
            shutil.copy2(source, target)


def started(broker: KilledBroker) -> Start:
    """Start a broker, kill it, and return what its log says."""
    with broker:
        broker.start_broker()
    text = broker.log_file.read_text()
    loaded = _LOADED.search(text)
    assert loaded is not None, text[-2000:]
    return Start(_found(_RECOVERING, text), _found(_CORRUPT, text), int(loaded[1]))


def _found(pattern: re.Pattern[str], text: str) -> set[tuple[str, int]]:
    return {(found[1], int(found[2])) for found in pattern.finditer(text)}
