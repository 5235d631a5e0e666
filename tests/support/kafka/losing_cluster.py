"""A real cluster that loses records it has acknowledged, and clients that noted each of them.

One of the three nodes is down while the clients write, one stops for a moment and stays in sync all
the same, and the third one, which leads, is killed. Who takes over lacks records: those that
``acks=1`` was told of, and after an unclean election those that ``acks=all`` was told of, too.
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, TopicPartition

from support.kafka import kafka_clients
from support.kafka.kafka_referee import Answer
from support.kafka.kraft_cluster import DIRECTORIES, NODES, KraftCluster, copy_disks
from support.model.plain_decoder import plain_records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ONE, ALL = 1, -1
STOPPED_SECONDS = 1.0  # less than a broker's session and a replica's lag may last
TOPICS: dict[str, dict[str, str]] = {
    "pair": {},
    "bold": {"unclean.leader.election.enable": "true"},
    "trio": {},
    "careful": {"min.insync.replicas": "2"},
}


class Told(NamedTuple):
    """A record as a client knows it; what brokers or disks hold compares with it."""

    offset: int
    timestamp_ms: int
    digest: bytes


Records = dict[str, set[Told]]
"""Records by topic-partition."""


def digest_of(value: bytes | None) -> bytes:
    """Give a digest of a record's value."""
    return hashlib.sha256(value or b"").digest()


class Clients:
    """Producers with ``acks=1`` and ``acks=all`` that note what they are told.

    Attributes:
        acknowledged: what a broker said it has, by acks.
        unanswered: values that were sent and of which no broker said so, as digests.
    """

    def __init__(self, bootstrap: str, rng: random.Random) -> None:
        self._bootstrap = bootstrap
        self._rng = rng
        self.acknowledged: dict[int, Records] = {ONE: defaultdict(set), ALL: defaultdict(set)}
        self.unanswered: set[bytes] = set()
        self._producers = {
            acks: kafka_clients.producer(
                bootstrap,
                acks=acks,
                compression_type=rng.choice(CODECS),
                batch_num_messages=rng.randint(1, 9),
                linger_ms=5,
                enable_idempotence=False,
                retries=0,  # sent again, a record could lie at two offsets
                topic_metadata_refresh_interval_ms=1000,
            )
            for acks in (ONE, ALL)
        }

    def send(self, partitions: Iterable[str], acks: int, most: int = 20) -> None:
        """Send drawn numbers of records and wait for the answers, at most so many a partition."""
        rng, sender = self._rng, self._producers[acks]
        for partition in partitions:
            topic, _, number = partition.rpartition("-")
            for _ in range(rng.randint(1, most)):
                value = rng.randbytes(rng.randint(16, 200))
                self.unanswered.add(digest_of(value))
                sender.produce(topic, value, partition=int(number), on_delivery=self._note(acks))
            sender.poll(0)
        sender.flush(STOPPED_SECONDS / 2 if acks == ALL else kafka_clients.WAIT_SECONDS)

    def wait(self) -> None:
        """Wait until everything has its answer."""
        for sender in self._producers.values():
            assert sender.flush(kafka_clients.WAIT_SECONDS) == 0

    def give_up(self) -> None:
        """Forget what has no answer yet, so that it is not sent again."""
        for sender in self._producers.values():
            sender.purge()
            sender.flush(1)

    def _note(self, acks: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                told = _told(message)
                name = f"{message.topic()}-{message.partition()}"
                self.acknowledged[acks][name].add(told)
                self.unanswered.discard(told.digest)

        return note

    def all_acknowledged(self, partition: str) -> set[Told]:
        """Give what was acknowledged of a partition with either."""
        return self.acknowledged[ONE][partition] | self.acknowledged[ALL][partition]

    def served(self, partitions: Iterable[str]) -> Records:
        """Read partitions to their ends, as their leaders serve them."""
        reader = kafka_clients.consumer(self._bootstrap, "none")
        found: Records = {}
        for partition in partitions:
            topic, _, number = partition.rpartition("-")
            place = TopicPartition(topic, int(number), 0)
            _, end = reader.get_watermark_offsets(place, timeout=kafka_clients.WAIT_SECONDS)
            reader.assign([place])
            messages = kafka_clients.read(reader, end)
            found[partition] = set(map(_told, messages))
        reader.close()
        return found


def _told(message: Message) -> Told:
    return Told(message.offset(), message.timestamp()[1], digest_of(message.value()))


class LosingCluster:
    """A cluster's life, drawn by a seed.

    Attributes:
        late: the node that is down while clients write.
        stopped: the one that stops for a moment.
        lost: the one that is killed and does not come back.
        assignments: the replicas of each partition of the clients' topics.
        served_first: what leaders served before the first end. served_last: before the last one.
        told_first: what was acknowledged until then. told_last: until the last one.
    """

    def __init__(self, cluster: KraftCluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self.late, self.stopped, self.lost = rng.sample(NODES, 3)
        replicas: dict[str, list[tuple[int, ...]]] = {
            "pair": [*permutations(NODES, 2)],
            "bold": [(self.lost, self.late), (self.late, self.lost)],
            "trio": [*permutations(NODES)],
            "careful": [(1, 2, 3), (2, 3, 1), (3, 1, 2)],
        }
        self.assignments = {
            f"{topic}-{number}": one
            for topic, found in replicas.items()
            for number, one in enumerate(found)
        }
        self.served_first: Records = {}
        self.served_last: Records = {}
        self.told_first: Records = {}
        self.told_last: Records = {}
        self.clients = Clients(cluster.bootstrap, rng)

    @property
    def offline(self) -> set[str]:
        """The partitions that nobody may lead once the lost node is gone."""
        both = {self.late, self.lost}
        return {
            name
            for name, replicas in self.assignments.items()
            if set(replicas) == both and not name.startswith("bold")
        }

    @property
    def online(self) -> list[str]:
        """The partitions that others lead then."""
        return sorted(self.assignments.keys() - self.offline)

    def live(self, disks: Path) -> None:
        """Live until all nodes are killed; their disks are copied to folders of ``disks``.

        That is ``first`` when others have taken over and nobody has written, and ``last`` after
        more was written.
        """
        cluster, rng, clients = self._cluster, self._rng, self.clients
        for topic, configs in TOPICS.items():
            found = [one for name, one in self.assignments.items() if name.startswith(topic)]
            cluster.client.change("create", topic=topic, assignments=found, configs=configs)
        cluster.wait_until_in_sync()
        clients.send(self.assignments, ONE)
        clients.send(self.assignments, ALL)
        clients.wait()

        cluster.nodes[self.late].kill()
        cluster.wait_until(lambda found: self.late not in found["isr"], "the late one is out")
        leaders = {
            f"{found['topic']}-{found['partition']}": found["leader"]
            for found in cluster.client.partitions()
        }
        clients.send(self.assignments, ONE)
        clients.send([name for name in self.assignments if not name.startswith("careful")], ALL)
        clients.wait()

        led = [name for name in self.assignments if leaders[name] == self.lost]
        followed = [name for name in led if self.stopped in self.assignments[name]]
        cluster.nodes[self.stopped].pause()
        clients.send(led, ONE, most=3)  # a fetch that waits may take these
        clients.send(led, ONE)
        clients.send(rng.sample(followed, len(followed) // 2), ALL, most=3)
        cluster.nodes[self.lost].kill()
        clients.give_up()
        cluster.nodes[self.stopped].resume()

        cluster.nodes[self.late].start_node()
        cluster.wait_until(self._is_settled, "others have taken over")
        self.served_first, self.told_first = self._end(disks / "first")

        with ThreadPoolExecutor() as threads:
            others = (self.late, self.stopped)
            list(threads.map(lambda node: cluster.nodes[node].start_node(), others))
        cluster.wait_until(self._is_settled, "the others are back")
        written = [name for name in self.online if not name.startswith("bold")]
        clients.send(written, ONE)
        clients.send(written, ALL)
        clients.wait()
        tails = rng.sample(written, len(written) // 2)
        self.served_last, self.told_last = self._end(disks / "last", tails)

    def _end(self, disks: Path, tails: Iterable[str] = ()) -> tuple[Records, Records]:
        """Kill all nodes and copy their disks; give what leaders served, and clients were told.

        Of ``tails`` the stopped one may hold records that its followers have not fetched.
        """
        served = self.clients.served(self.online)
        told = {name: self.clients.all_acknowledged(name) for name in self.assignments}
        leaders = self._cluster.client.partitions()
        led = {
            f"{found['topic']}-{found['partition']}"
            for found in leaders
            if found["leader"] == self.stopped
        }
        self.clients.send([name for name in tails if name in led], ONE)
        for node in (self.late, self.stopped):
            self._cluster.nodes[node].kill()
        copy_disks(self._cluster, disks)
        return served, told

    def _is_settled(self, found: Answer) -> bool:
        if f"{found['topic']}-{found['partition']}" in self.offline:
            return bool(found["leader"] < 0)
        return set(found["isr"]) == set(found["replicas"]) - {self.lost}


def put_disks(cluster: KraftCluster, disks: Path) -> None:
    """Put the disks of nodes that are down back to what ``copy_disks`` kept."""
    for node in NODES:
        for name in DIRECTORIES:
            folder = cluster.node_folder(node) / name
            shutil.rmtree(folder)
            shutil.copytree(disks / f"node-{node}" / name, folder)


def records_on(disks: Path, node: int) -> Records:
    """Read what a node's log directories hold of the clients' topics."""
    found: Records = defaultdict(set)
    for log in sorted((disks / f"node-{node}").glob("*/*/*.log")):
        if log.parent.name.rpartition("-")[0] in TOPICS:
            found[log.parent.name] |= {
                Told(record.offset, record.timestamp, digest_of(record.value))
                for record in plain_records(log.read_bytes())
            }
    return found
