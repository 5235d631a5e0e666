"""A source and its mirror as a real MirrorMaker 2 writes it, which is killed on the way.

``PYTHONPATH=tests python -m support.kafka.mirror_maker FOLDER`` packs FOLDER/mirror.tar.xz, which
``tests/golden`` keeps:

- ``source``, ``mirror``: the log directories of two brokers (4.3.1), without index files; of the
  source's topics one is written in transactions, of which a third was aborted;
- ``answers.json``: the values of each partition of both as consumers of committed records read
  them.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import WAIT_SECONDS, create, producer

PREFIX = "west."
TOPICS = {"orders": 2, "orders-txn": 1}
_RELEASE = "4.3.1"
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fetch</groupId><artifactId>fetch</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId>
      <version>{_RELEASE}</version>
    </dependency>
  </dependencies>
</project>
"""
_PROPERTIES = """\
clusters=west, east
west.bootstrap.servers={source}
east.bootstrap.servers={mirror}
west->east.enabled=true
east->west.enabled=false
west->east.topics=orders.*
west.consumer.isolation.level=read_committed
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
tasks.max=1
offset.lag.max=10
refresh.topics.interval.seconds=2
sync.topic.acls.enabled=false
"""
_KEPT = ("orders", PREFIX, "mm2-offset-syncs", "meta", "log-start", "replication", "recovery")
_PLACES = {"source": "", "mirror": PREFIX}


class MirrorMaker:
    """A MirrorMaker 2 in a JVM of its own."""

    def __init__(self, folder: Path, source: KafkaBroker, mirror: KafkaBroker) -> None:
        """Fetch its JARs with Maven, if they are not there, and write its properties."""
        jars = folder / "jars"
        if not jars.exists():
            (folder / "pom.xml").write_text(_POM)
            fetched = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
            subprocess.run(["mvn", "-q", "-B", *fetched], cwd=folder, check=True)
        properties = folder / "mirror.properties"
        addresses = {"source": source.bootstrap, "mirror": mirror.bootstrap}
        properties.write_text(_PROPERTIES.format(**addresses))
        name = "org.apache.kafka.connect.mirror.MirrorMaker"
        self._command = ["java", "-Xmx512m", "-cp", f"{jars}/*", name, str(properties)]

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; return its process."""
        quiet = subprocess.DEVNULL
        return subprocess.Popen(self._command, stdout=quiet, stderr=quiet)


def main() -> None:
    """Write and mirror records, and pack what lies on the disks."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    for name in _PLACES:
        (folder / name).mkdir(parents=True)
    with KafkaBroker(folder / "source") as source, KafkaBroker(folder / "mirror") as mirror:
        for broker in (source, mirror):
            broker.start_broker()
        create(source.bootstrap, TOPICS)
        live(source, mirror, MirrorMaker(folder, source, mirror))
        brokers = {"source": source, "mirror": mirror}
        answers = {
            name: {
                f"{topic}-{partition}": values_of(broker, _PLACES[name] + topic, partition)
                for topic, count in TOPICS.items()
                for partition in range(count)
            }
            for name, broker in brokers.items()
        }
        for broker in brokers.values():
            broker.stop_broker()
    pack(folder, answers)


def live(source: KafkaBroker, mirror: KafkaBroker, maker: MirrorMaker) -> None:
    """Write three times; kill MirrorMaker after the second, with its offsets not yet noted."""
    plain = producer(source.bootstrap, linger_ms=5, compression_type="zstd")
    held = producer(source.bootstrap, transactional_id="t", linger_ms=5)
    held.init_transactions(WAIT_SECONDS)
    chance = random.Random(7)
    write(plain, held, chance, 300)
    running = maker.start()
    wait_until(lambda: end_of(mirror, "orders", 1) >= 150)
    write(plain, held, chance, 400)
    wait_until(lambda: end_of(mirror, "orders", 1) > 150)
    running.kill()
    running.wait()
    write(plain, held, chance, 300)
    running = maker.start()
    committed = len(values_of(source, "orders-txn", 0))
    wait_until(lambda: end_of(mirror, "orders-txn", 0) > committed)
    time.sleep(WAIT_SECONDS / 6)
    running.terminate()
    running.wait()


def write(plain: Producer, held: Producer, chance: random.Random, count: int) -> None:
    """Write so many records to one topic, and six transactions, two aborted, to the other."""
    for number in range(count):
        key = b"%d" % chance.randrange(500)
        plain.produce("orders", chance.randbytes(16), key=key, partition=number % 2)
    plain.flush(WAIT_SECONDS)
    for turn in range(6):
        held.begin_transaction()
        for number in range(12):
            held.produce("orders-txn", chance.randbytes(12), key=b"%d" % number, partition=0)
        held.flush(WAIT_SECONDS)
        (held.commit_transaction if turn % 3 else held.abort_transaction)(WAIT_SECONDS)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 4 * WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.5)


def end_of(mirror: KafkaBroker, topic: str, partition: int) -> int:
    """Return the end offset of a mirrored partition, 0 where there is none yet."""
    reader = Consumer({"bootstrap.servers": mirror.bootstrap, "group.id": "none"})
    try:
        wanted = TopicPartition(PREFIX + topic, partition)
        if wanted.topic not in reader.list_topics(timeout=WAIT_SECONDS).topics:
            return 0
        return int(reader.get_watermark_offsets(wanted, timeout=WAIT_SECONDS)[1])
    finally:
        reader.close()


def values_of(broker: KafkaBroker, topic: str, partition: int) -> list[str]:
    """Return the values of a partition's committed records, in hex."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "none",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    reader, found = Consumer(settings), []
    reader.assign([TopicPartition(topic, partition, 0)])
    while (message := reader.poll(WAIT_SECONDS)) is not None and message.error() is None:
        found.append((message.value() or b"").hex())
    reader.close()
    return found


def pack(folder: Path, answers: dict[str, dict[str, list[str]]]) -> None:
    """Pack the logs and checkpoints of both, and the answers."""
    packed = folder / "packed"
    for name in _PLACES:
        for path in sorted((folder / name / "logs").iterdir()):
            if path.name.startswith(_KEPT):
                ignored = shutil.ignore_patterns("*index")
                kept = packed / name / path.name
                if path.is_dir():
                    shutil.copytree(path, kept, ignore=ignored)
                else:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, kept)
    (packed / "answers.json").write_text(json.dumps(answers, indent=1))
    with tarfile.open(folder / "mirror.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(packed.iterdir()):
            archive.add(path, path.name)


if __name__ == "__main__":
    main()
