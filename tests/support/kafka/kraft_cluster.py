"""A real KRaft cluster on the loopback interface: three nodes, each in a JVM of its own.

Each node is broker and controller and has two log directories. ``PYTHONPATH=tests python -m
support.kafka.kraft_cluster FOLDER`` lets one live by the script of ``cluster_life`` (``--seed``
draws another), writes FOLDER/cluster and packs it as FOLDER/cluster.tar.xz, which ``tests/golden``
keeps:

- ``disks/node-N/{a,b}``: the log directories as they were when all nodes that lived were killed at
  once, without index files; ``disks/objects`` names the objects of tiered storage;
- ``answers/*.json``: what Admin answered just before, and the steps of the life.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.kafka.kafka_broker import CLUSTER_ID, LOGGING, free_ports
from support.kafka.kafka_referee import Answer, Referee

NODES = (1, 2, 3)
DIRECTORIES = ("a", "b")
COORDINATORS = 2
PATIENCE_SECONDS = 90.0
INDEX_FILES = (".index", ".timeindex", ".lock", ".deleted")
_METADATA_DIRECTORY = "node{}AAAAAAAAAAAAAAAAA"
_LIGHT_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PROPERTIES = """\
process.roles=broker,controller
node.id={node}
broker.rack=rack-{node}
controller.quorum.bootstrap.servers={controllers}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{broker}
log.dirs={folder}/a,{folder}/b
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
auto.create.topics.enable=false
default.replication.factor=3
offsets.topic.replication.factor=3
offsets.topic.num.partitions={coordinators}
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=1
transaction.state.log.num.partitions={coordinators}
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
share.coordinator.snapshot.update.records.per.snapshot=5
group.initial.rebalance.delay.ms=0
group.streams.initial.rebalance.delay.ms=0
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
replica.lag.time.max.ms=4000
controlled.shutdown.max.retries=1
log.initial.task.delay.ms=500
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=4194304
metadata.log.max.record.bytes.between.snapshots=6000
metadata.log.max.snapshot.interval.ms=0
metadata.log.segment.ms=20000
remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=FolderStorage
rsm.config.folder={objects}
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor=3
rlmm.config.remote.log.metadata.topic.num.partitions=2
remote.log.manager.task.interval.ms=500
num.network.threads=1
num.io.threads=2
num.replica.fetchers=1
background.threads=2
"""


LIVE = {"log.retention.ms": "-1", "log.retention.check.interval.ms": "1000"}


class MortalReferee(Referee):
    """A JVM that can be killed."""

    def kill(self) -> None:
        """End the JVM at once."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def pause(self) -> None:
        """Stop the JVM where it stands, until ``resume``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the JVM go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class KafkaNode(MortalReferee):
    """One node, which can be stopped or killed and started on its log directories again."""

    def __init__(self, folder: Path, properties: str, controllers: str) -> None:
        """Prepare a node whose files all lie in ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self._config = folder / "server.properties"
        self._properties = properties
        self._controllers = controllers
        self.more_properties: Mapping[str, str] = {}
        logging = folder / "log4j2.xml"
        logging.write_text(LOGGING.format(file=folder / "server.log"))
        super().__init__(
            max_heap="320m", logging=(f"-Dlog4j2.configurationFile={logging}", *_LIGHT_JVM)
        )

    def start_node(self) -> None:
        """Format the log directories where that is still to be done, and start."""
        more = "".join(f"{name}={value}\n" for name, value in self.more_properties.items())
        self._config.write_text(self._properties + more)
        self.start()
        self._ask(
            "broker_start",
            config=str(self._config),
            cluster_id=CLUSTER_ID,
            formatting=["--initial-controllers", self._controllers],
        )

    def stop_node(self) -> None:
        """Stop cleanly: leaders move away first."""
        self._ask("broker_stop")
        self.close()


class ClusterClient(MortalReferee):
    """A JVM with an administrator and the clients of a cluster."""

    def connect(self, bootstrap: str) -> None:
        """Connect an Admin, and let clients that are made later know the brokers."""
        self._ask("cluster_connect", bootstrap=bootstrap)

    def change(self, change: str, **fields: object) -> None:
        """Change something by Admin; see ``ClusterChanges.java``."""
        self._ask("cluster_change", change=change, **fields)

    def client(self, action: str, **fields: object) -> Answer:
        """Let a producer or a member of a group act; see ``ClusterClients.java``."""
        return self._ask("cluster_client", action=action, **fields)

    def partitions(self) -> list[Answer]:
        """Give each partition with its leader, replicas and ISR."""
        partitions: list[Answer] = self._ask("cluster_topics")["partitions"]
        return partitions

    def producers(self) -> list[Answer]:
        """Give what the leader of each partition knows of each producer."""
        producers: list[Answer] = self._ask("cluster_producers")["producers"]
        return producers

    def answers(self) -> Answer:
        """Give all that Admin answers about the cluster."""
        return self._ask("cluster_answers")


class KraftCluster:
    """Three nodes and their clients; use it in a ``with`` statement."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] = LIVE,
        of_nodes: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        """Prepare a cluster whose files all lie in ``folder``.

        ``properties`` are all nodes', ``of_nodes`` those that a node has for itself.
        """
        self.properties = properties
        self._of_nodes = of_nodes or {}
        self.folder = folder
        self.objects = folder / "objects"
        self.objects.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * len(NODES))
        brokers = dict(zip(NODES, ports[: len(NODES)], strict=True))
        controllers = dict(zip(NODES, ports[len(NODES) :], strict=True))
        voters = ",".join(
            f"{node}@localhost:{port}:{_METADATA_DIRECTORY.format(node)}"
            for node, port in controllers.items()
        )
        addresses = ",".join(f"localhost:{port}" for port in controllers.values())
        self.bootstrap = ",".join(f"localhost:{port}" for port in brokers.values())
        self.nodes = {
            node: KafkaNode(
                self.node_folder(node),
                _PROPERTIES.format(
                    node=node,
                    controllers=addresses,
                    broker=brokers[node],
                    controller=controllers[node],
                    folder=self.node_folder(node),
                    objects=self.objects,
                    coordinators=COORDINATORS,
                ),
                voters,
            )
            for node in NODES
        }
        self.client = ClusterClient(max_heap="320m", logging=("-Dlog4j2.level=OFF", *_LIGHT_JVM))

    def node_folder(self, node: int) -> Path:
        """Give the folder of a node's log directories."""
        return self.folder / f"node-{node}"

    def __enter__(self) -> KraftCluster:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def start(self) -> None:
        """Start all nodes, of which none runs, and the clients."""
        for number, node in self.nodes.items():
            node.more_properties = {**self.properties, **self._of_nodes.get(number, {})}
        with ThreadPoolExecutor() as threads:
            list(threads.map(KafkaNode.start_node, self.nodes.values()))
        self.client.start()
        self.client.connect(self.bootstrap)

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End all JVMs at once, so that what lies on the disks is of one moment."""
        for one in (*self.nodes.values(), self.client):
            one.kill()

    def wait_until(self, holds: Callable[[Answer], bool], what: str) -> None:
        """Wait until something holds of every partition."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            wrong = [found for found in self.client.partitions() if not holds(found)]
            if not wrong:
                return
            time.sleep(0.2)
        raise AssertionError(f"{what}: still not so of {wrong}")

    def wait_until_in_sync(self) -> None:
        """Wait until every replica is in the ISR of its partition, and a leader is there."""
        self.wait_until(
            lambda found: found["leader"] > 0 and set(found["isr"]) == set(found["replicas"]),
            "all replicas in sync",
        )


def copy_disks(cluster: KraftCluster, target: Path) -> None:
    """Copy the log directories of nodes that are dead, without what recovery makes anew."""
    for node in NODES:
        for name in DIRECTORIES:
            shutil.copytree(
                cluster.node_folder(node) / name,
                target / f"node-{node}" / name,
                ignore=lambda _, names: [one for one in names if one.endswith(INDEX_FILES)],
            )
    objects = sorted(
        str(file.relative_to(cluster.objects))
        for file in cluster.objects.rglob("*")
        if file.is_file()
    )
    (target / "objects").write_text("".join(f"{name}\n" for name in objects))


def write_answers(answers: Answer, target: Path) -> None:
    """Write each of Admin's answers to a file of its own."""
    target.mkdir(parents=True)
    for name, answer in answers.items():
        (target / f"{name}.json").write_text(json.dumps(answer, indent=1) + "\n")


def let_live(folder: Path, target: Path, seed: int) -> None:
    """Let a cluster live in ``folder``, and keep its answers and its disks in ``target``."""
    from support.kafka.cluster_life import ClusterLife

    with KraftCluster(folder) as cluster:
        life = ClusterLife(cluster, seed)
        life.live()
        answers = cluster.client.answers()
        cluster.kill()
    copy_disks(cluster, target / "disks")
    write_answers({**answers, "life": life.steps}, target / "answers")


def main() -> None:
    """Make the archive of ``tests/golden`` anew."""
    parser = argparse.ArgumentParser(description="let a KRaft cluster live and pack its disks")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    target = options.folder / "cluster"
    with tempfile.TemporaryDirectory() as scratch:
        let_live(Path(scratch), target, options.seed)
    with tarfile.open(options.folder / "cluster.tar.xz", "w:xz", preset=9) as archive:
        archive.add(target, "cluster")


if __name__ == "__main__":
    main()
