"""A real cluster whose replicas roll, compact, delete, recompress and tier each for itself."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path

from confluent_kafka import Producer

from support.kafka import kafka_clients
from support.kafka.kraft_cluster import DIRECTORIES, NODES, KraftCluster

CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer")
_LEAST = 3  # records that each partition gets each time
_ROLLED = {"segment.ms": "900", "segment.jitter.ms": "700"}
_CLEANED = {**_ROLLED, "min.cleanable.dirty.ratio": "0.01"}
_FORGETFUL = {**_CLEANED, "delete.retention.ms": "500"}
TOPICS: dict[str, dict[str, str]] = {
    "compacted": {**_FORGETFUL, "cleanup.policy": "compact"},
    "both": {**_FORGETFUL, "cleanup.policy": "compact,delete", "retention.ms": "6000"},
    "aging": {},  # rolled and deleted by each node as it is set
    "bounded": {**_ROLLED, "retention.bytes": "4000", "retention.ms": "-1"},
    "recoded": {**_CLEANED, "cleanup.policy": "compact"},
    "cut": {"retention.ms": "-1"},
    "tiered": {
        **_ROLLED,
        "remote.storage.enable": "true",
        "local.retention.ms": "1500",
        "retention.ms": "-1",
    },
}
PROPERTIES = {
    "log.retention.check.interval.ms": "700",
    "follower.fetch.last.tiered.offset.enable": "true",
    "rsm.config.names": "offsets",
}
SLOW = 3
"""The node that cleans and deletes nothing. It is not killed, so it leads what it led."""
OF_NODES = {
    1: {"log.retention.ms": "3000", "log.roll.ms": "700"},
    2: {"log.retention.ms": "4000", "log.roll.ms": "1300"},
    SLOW: {"log.retention.ms": "-1", "log.roll.ms": "2300", "log.cleaner.enable": "false"},
}
CERTAIN = {
    ("compacted", "compaction"),
    ("recoded", "recompressed"),  # the cleaner notes until when it keeps a tombstone
    ("aging", "later start"),
    ("tiered", "later start"),
    ("tiered", "behind"),  # the active segment is not in the tier
}
"""What comes between nodes with such settings, whatever is drawn."""


class BusyLife:
    """A drawn life, after which all replicas are in sync and all nodes are down."""

    def __init__(self, cluster: KraftCluster, rng: random.Random, kept: Path) -> None:
        """Prepare it; the disk of a node that is killed on the way is copied to ``kept``."""
        self._cluster = cluster
        self._rng = rng
        self._kept = kept
        self.steps: list[str] = []
        self._plain = self._producer()
        self._sender = self._producer(transactional_id="payments", transaction_timeout_ms=600_000)
        self._replicas: dict[str, list[int]] = {}
        self._written = 0

    def _producer(self, **settings: object) -> Producer:
        codec = self._rng.choice(["none", "gzip", "snappy", "lz4", "zstd"])
        return kafka_clients.producer(
            self._cluster.bootstrap, compression_type=codec, linger_ms=5, **settings
        )

    def live(self, rounds: int) -> None:
        """Live so many rounds; one node is killed in the middle of them and comes back."""
        change = self._cluster.client.change
        for topic, configs in TOPICS.items():
            assignments = self._rng.sample(list(permutations(NODES, 2)), 2)
            assignments = [list(one) for one in assignments]
            if topic in ("compacted", "recoded"):
                assignments = [list(self._rng.sample(NODES, 3)) for _ in range(2)]
            if topic == "aging":  # a leader that deletes nothing, a follower that does
                assignments[0] = [SLOW, self._rng.choice([node for node in NODES if node != SLOW])]
            self._replicas |= {f"{topic}-{at}": found for at, found in enumerate(assignments)}
            change("create", topic=topic, assignments=assignments, configs=configs)
        self._cluster.wait_until_in_sync()
        self._sender.init_transactions(kafka_clients.WAIT_SECONDS)
        scenes: list[Callable[[], None]] = [
            self._recode,
            self._cut,
            self._move,
            self._roll_otherwise,
        ]
        for number in range(rounds):
            self._write()
            self._pay()
            if number == rounds // 2:
                self._lose_a_node()
            else:
                self._rng.choice(scenes)()
            time.sleep(0.7)
        self._pay(is_open=True)
        self._cluster.wait_until_in_sync()
        time.sleep(3)  # cleaners, retention and tiering come to what is there
        self._write_to(["tiered-0"])  # retention rolled its active segment, and that is tiered
        for node in self._cluster.nodes.values():
            node.pause()  # all at one moment
        for node in self._cluster.nodes.values():
            node.kill()

    def _write(self) -> None:
        """Send records of few keys, some without a value, to all partitions."""
        self._write_to(self._replicas)
        self._written += 1

    def _write_to(self, partitions: Iterable[str]) -> None:
        rng = self._rng
        for partition in partitions:
            topic, _, number = partition.rpartition("-")
            for _ in range(rng.randint(_LEAST, 25)):
                value = None if rng.random() < 0.15 else rng.randbytes(rng.randint(1, 90))
                key = b"key %d" % rng.randrange(12)
                if topic == "recoded":
                    key = rng.randbytes(9)
                self._plain.produce(topic, value, key, partition=int(number))
            self._plain.poll(0)
        assert self._plain.flush(kafka_clients.WAIT_SECONDS) == 0

    def _pay(self, *, is_open: bool = False) -> None:
        """Send records in a transaction that commits, aborts or stays open."""
        rng = self._rng
        self._sender.begin_transaction()
        for partition in rng.sample(sorted(self._replicas), 5):
            topic, _, number = partition.rpartition("-")
            for _ in range(rng.randint(1, 5)):
                key = b"key %d" % rng.randrange(12)
                self._sender.produce(topic, rng.randbytes(20), key, partition=int(number))
        assert self._sender.flush(kafka_clients.WAIT_SECONDS) == 0
        if not is_open and rng.random() < 0.6:
            self._sender.commit_transaction(kafka_clients.WAIT_SECONDS)
        elif not is_open:
            self._sender.abort_transaction(kafka_clients.WAIT_SECONDS)

    def _set(self, topic: str, **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.steps.append(f"{topic}: {named}")
        self._cluster.client.change("alter_configs", type="TOPIC", name=topic, set=named, delete=[])

    def _recode(self) -> None:
        self._set("recoded", compression_type=self._rng.choice(CODECS))

    def _roll_otherwise(self) -> None:
        topics = sorted(TOPICS.keys() - {"aging", "cut"})
        self._set(self._rng.choice(topics), segment_ms=str(self._rng.randint(300, 2500)))

    def _cut(self) -> None:
        partition = f"cut-{self._rng.randrange(2)}"
        self.steps.append(f"cut {partition}")
        before = self._rng.randint(1, _LEAST * self._written)
        self._cluster.client.change("delete_records", partition=partition, before=before)

    def _move(self) -> None:
        """Give a partition another replica, which may begin where the tier ends."""
        partition = f"{self._rng.choice(['tiered', 'both'])}-{self._rng.randrange(2)}"
        self._replicas[partition] = found = self._rng.sample(NODES, 2)
        self.steps.append(f"move {partition} to {found}")
        self._cluster.client.change("reassign", replicas={partition: found})
        self._cluster.wait_until_in_sync()

    def _lose_a_node(self) -> None:
        node = self._rng.choice([node for node in NODES if node != SLOW])
        self.steps.append(f"kill {node}")
        self._cluster.nodes[node].kill()
        for name in DIRECTORIES:
            shutil.copytree(self._cluster.node_folder(node) / name, self._kept / name)
        self._cluster.wait_until(
            lambda found: found["leader"] != node and node not in found["isr"],
            f"node {node} out of every ISR",
        )
        self._write()
        self._cluster.nodes[node].start_node()
        self._cluster.wait_until_in_sync()
