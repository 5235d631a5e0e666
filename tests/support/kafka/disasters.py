"""Disks of real brokers in the states that the sections of docs/runbook.md begin with."""

from __future__ import annotations

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

from confluent_kafka.admin import NewTopic

from support.kafka.crashed_broker import lose
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import Sent, admin_client, create, producer, send
from support.kafka.kraft_cluster import KraftCluster
from support.kafka.waiting import wait_until

START_MS = 1_790_000_000_000
RECORD_BYTES = 1_000
_OF_BROKER = {
    "log.initial.task.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
_CHECKPOINTED_SECONDS = 3.0


class Site(ABC):
    """What runs at the place of a disaster; ``close`` ends it.

    Attributes:
        bootstrap: where clients reach it, while it runs.
    """

    bootstrap: str

    @abstractmethod
    def start(self, node: str = "") -> None:
        """Start a broker that does not run; ``node``: its number, where there are several."""

    @abstractmethod
    def stop(self, node: str = "") -> None:
        """Stop a broker cleanly."""

    @abstractmethod
    def close(self) -> None:
        """Kill what runs."""


class OneBroker(Site):
    """A broker on ``folder``/logs; its other files lie in ``scratch``."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        """Prepare it; it is not started yet."""
        self.log_dir = folder / "logs"
        self._scratch = scratch
        self._starts = 0
        self._broker: KafkaBroker | None = None

    def start(self, node: str = "") -> None:
        """Start it in a JVM of its own."""
        self.close()
        self._starts += 1
        own = self._scratch / f"start-{self._starts}"
        own.mkdir(parents=True)
        self._broker = KafkaBroker(own, _OF_BROKER | {"log.dirs": str(self.log_dir)})
        self._broker.start()
        self._broker.start_broker()
        self.bootstrap = self._broker.bootstrap

    def stop(self, node: str = "") -> None:
        """Stop it cleanly, and end its JVM."""
        assert self._broker is not None
        self._broker.stop_broker()
        self.close()

    def close(self) -> None:
        """Kill it, if it runs."""
        if self._broker is not None:
            self._broker.close()
            self._broker = None


def fill(bootstrap: str, topic: str, records: Iterable[int], partitions: int = 1) -> None:
    """Send records one by one, so that each is a batch of its own."""
    sender = producer(bootstrap, linger_ms=0, batch_num_messages=1)
    send(
        sender,
        (Sent(topic, number % partitions, START_MS + number, _value(number)) for number in records),
    )


def _value(number: int) -> bytes:
    return f"{number} ".encode().ljust(RECORD_BYTES, b"x")


def does_not_start(folder: Path, scratch: Path) -> Site:
    """Leave zeros where a checkpoint was, as file systems do after a power cut."""
    site = OneBroker(folder, scratch)
    site.start()
    create(site.bootstrap, {"orders": 2})
    fill(site.bootstrap, "orders", range(4_000), partitions=2)
    time.sleep(_CHECKPOINTED_SECONDS)
    site.close()
    checkpoint = site.log_dir / "recovery-point-offset-checkpoint"
    checkpoint.write_bytes(bytes(checkpoint.stat().st_size))
    return site


def disk_is_full(folder: Path, scratch: Path) -> Site:
    """Fill the disk by a topic without retention until its broker ends."""
    site = OneBroker(folder, scratch)
    site.start()
    create(site.bootstrap, {"clicks": 1, "orders": 1}, retention_ms="-1")
    fill(site.bootstrap, "orders", range(1_000))
    fill(site.bootstrap, "clicks", range(20_000))
    time.sleep(_CHECKPOINTED_SECONDS)
    site.close()
    return site


def topic_is_deleted(folder: Path, scratch: Path) -> Site:
    """Delete a topic by mistake; its folders are there for another minute."""
    site = OneBroker(folder, scratch)
    site.start()
    create(site.bootstrap, {"orders": 2}, retention_ms="-1")
    fill(site.bootstrap, "orders", range(4_000), partitions=2)
    time.sleep(_CHECKPOINTED_SECONDS)
    admin = admin_client(site.bootstrap)
    admin.delete_topics(["orders"])["orders"].result()
    folders = "orders-*-delete"
    wait_until(lambda: len(list(site.log_dir.glob(folders))) == 2, "both folders are marked")
    return site


def power_is_lost(folder: Path, scratch: Path) -> Site:
    """Leave what was not on the disk when the power went: zeros at the end, a torn batch."""
    site = OneBroker(folder, scratch)
    site.start()
    create(site.bootstrap, {"orders": 1, "clicks": 1, "audit": 1})
    for topic in ("orders", "clicks", "audit"):
        fill(site.bootstrap, topic, range(2_500))
    time.sleep(_CHECKPOINTED_SECONDS)
    site.close()
    lost = _last(site.log_dir / "orders-0")
    lose(lost, lost.stat().st_size - 8192, lost.stat().st_size)
    torn = _last(site.log_dir / "clicks-0")
    with torn.open("r+b") as stream:
        stream.truncate(torn.stat().st_size - 300)
    return site


def disk_is_restored(folder: Path, scratch: Path) -> Site:
    """Put a snapshot in the place of a disk whose broker went on for a while after it."""
    site = OneBroker(folder, scratch)
    site.start()
    create(site.bootstrap, {"orders": 1})
    fill(site.bootstrap, "orders", range(2_500))
    snapshot = folder / "snapshot"
    shutil.copytree(site.log_dir, snapshot)
    fill(site.bootstrap, "orders", range(2_500, 4_000))
    site.close()
    shutil.rmtree(site.log_dir)
    snapshot.rename(site.log_dir)
    return site


class ThreeBrokers(Site):
    """A cluster whose nodes have ``folder``/node-1 to node-3."""

    def __init__(self, folder: Path) -> None:
        """Start it."""
        self.cluster = KraftCluster(folder)
        self.cluster.start()
        self.bootstrap = self.cluster.bootstrap

    def start(self, node: str = "") -> None:
        """Start a node, and wait until its replicas are in sync."""
        self.cluster.nodes[int(node)].start_node()
        self.cluster.wait_until_in_sync()

    def stop(self, node: str = "") -> None:
        """Stop a node cleanly."""
        self.cluster.nodes[int(node)].stop_node()

    def close(self) -> None:
        """Kill all nodes."""
        self.cluster.kill()


def replica_is_rotten(folder: Path, scratch: Path) -> Site:
    """Flip a bit in an old batch of one replica of three, which no broker reads again."""
    site = ThreeBrokers(folder)
    admin = admin_client(site.bootstrap)
    admin.create_topics([NewTopic("orders", 1, replica_assignment=[[1, 2, 3]])])["orders"].result()
    fill(site.bootstrap, "orders", range(4_000))
    site.stop("2")
    (log,) = (folder / "node-2").glob("?/orders-0/*.log")
    with log.open("r+b") as stream:
        stream.seek(1_000_000)
        (value,) = stream.read(1)
        stream.seek(-1, 1)
        stream.write(bytes([value ^ 4]))
    site.start("2")
    return site


DISASTERS: dict[str, Callable[[Path, Path], Site]] = {
    "The broker does not start": does_not_start,
    "The disk is full": disk_is_full,
    "A topic was deleted by mistake": topic_is_deleted,
    "The power was lost": power_is_lost,
    "The disk was restored from a snapshot": disk_is_restored,
    "One replica is rotten": replica_is_rotten,
}
"""By the title of their section."""


def _last(log: Path) -> Path:
    return max(log.glob("*.log"))
