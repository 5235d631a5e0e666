"""A broker of an older release, with JARs of its own, and ZooKeeper where it needs one."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from kafka_segments.kafka.broker_rules.versions import parse_version
from support.kafka.kafka_broker import CLUSTER_ID, free_ports
from support.kafka.kafka_referee import SOURCES as REFEREE_SOURCES

SOURCES = Path(__file__).resolve().parents[2] / "older"
_KRAFT_SINCE = (3, 0)
_TIERED_SINCE = (3, 6)
_PATIENCE_SECONDS = 90.0
_TICK_MS = 1000  # sessions in ZooKeeper last 2 ticks at least
_SESSION_SECONDS = 7.0
_LIGHT_JVM = ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>x</groupId><artifactId>x</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{release}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""
_LOGGING = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={file}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%p %c %m%n
"""
_COMMON = """\
log.dirs={logs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
num.network.threads=1
num.io.threads=2
background.threads=1
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=4194304
log.retention.ms=-1
group.initial.rebalance.delay.ms=0
listeners={listeners}
advertised.listeners=PLAINTEXT://localhost:{broker}
"""
_KRAFT = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{other}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
metadata.log.max.record.bytes.between.snapshots=2000
"""
_ZOOKEEPER = """\
broker.id=1
zookeeper.connect=localhost:{other}
zookeeper.session.timeout.ms=4000
"""
_TIERED = """\
remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=FolderStorage
rsm.config.folder={objects}
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor=1
rlmm.config.remote.log.metadata.topic.num.partitions=1
remote.log.manager.task.interval.ms=500
log.initial.task.delay.ms=500
"""


def fetch(release: str, folder: Path) -> Path:
    """Fetch the JARs of a release with Maven if they are not there; return their folder."""
    jars = folder / "jars"
    if jars.exists():
        return jars
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_POM.format(release=release))
    options = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    subprocess.run(["mvn", "-q", "-B", _COPY, *options], cwd=folder, check=True)
    return jars


def has_kraft(release: str) -> bool:
    """Tell whether brokers of a release run without ZooKeeper here."""
    return parse_version(release) >= _KRAFT_SINCE


def has_tiers(release: str) -> bool:
    """Tell whether brokers of a release have tiered storage."""
    return parse_version(release) >= _TIERED_SINCE


class OlderBroker:
    """A broker of a release; use it in a ``with`` statement, which does not start it."""

    def __init__(
        self, jars: Path, release: str, folder: Path, properties: Mapping[str, object]
    ) -> None:
        """Prepare a broker whose files all lie in ``folder``; ``properties`` are further ones."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._class_path = f"{jars}/*"
        self._is_kraft = has_kraft(release)
        self._processes: list[subprocess.Popen[bytes]] = []
        broker, self._other = free_ports(2)
        self.bootstrap = f"localhost:{broker}"
        self.log_dir, self.log_file = folder / "logs", folder / "server.log"
        listeners = f"PLAINTEXT://localhost:{broker}"
        if self._is_kraft:
            listeners += f",CONTROLLER://localhost:{self._other}"
        text = (_KRAFT if self._is_kraft else _ZOOKEEPER) + _COMMON
        if has_tiers(release):
            text += _TIERED
            self._class_path += f":{_compiled_storage(jars, folder)}"
        self._config = folder / "server.properties"
        self._config.write_text(
            text.format(
                other=self._other,
                broker=broker,
                listeners=listeners,
                logs=self.log_dir,
                objects=folder / "objects",
            )
            + "".join(f"{name}={value}\n" for name, value in properties.items())
        )
        (folder / "log4j.properties").write_text(_LOGGING.format(file=self.log_file))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def start(self) -> None:
        """Start the broker, and what it needs besides at its first start."""
        if self._is_kraft and not self.log_dir.exists():
            tool = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._config))
            subprocess.run([*self._java(), *tool], check=True, stdout=subprocess.DEVNULL)
        if not self._is_kraft and not self._processes:
            server = "org.apache.zookeeper.server.ZooKeeperServerMain"
            self._run(server, str(self._other), str(self._folder / "zookeeper"), str(_TICK_MS))
            _wait_for(self._other)
        if not self._is_kraft and self.log_dir.exists():
            time.sleep(_SESSION_SECONDS)  # until ZooKeeper forgets a broker that was killed
        self._run("kafka.Kafka", str(self._config))
        _wait_for(int(self.bootstrap.rpartition(":")[2]))

    def stop(self) -> None:
        """Stop the broker cleanly."""
        self._processes[-1].send_signal(signal.SIGTERM)
        self._processes.pop().wait(_PATIENCE_SECONDS)

    def kill(self) -> None:
        """End the broker as a power cut does, as far as a process can."""
        self._processes[-1].kill()
        self._processes.pop().wait()

    def client(self, name: str, *given: str) -> str:
        """Run one of the programs in ``tests/older`` with the JARs; return what it prints."""
        program = ["java", *_LIGHT_JVM, "-cp", self._class_path, str(SOURCES / f"{name}.java")]
        done = subprocess.run([*program, *given], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def _java(self) -> list[str]:
        logging = f"-Dlog4j.configuration=file:{self._folder / 'log4j.properties'}"
        return ["java", *_LIGHT_JVM, logging, "-cp", self._class_path]

    def _run(self, *program: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._processes.append(subprocess.Popen([*self._java(), *program], **quiet))


def _compiled_storage(jars: Path, folder: Path) -> Path:
    """Compile the plugin that keeps remote segments in a folder; return its classes."""
    classes = folder / "classes"
    plugin = str(REFEREE_SOURCES / "FolderStorage.java")
    subprocess.run(["javac", "-d", str(classes), "-cp", f"{jars}/*", plugin], check=True)
    return classes


def _wait_for(port: int) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("localhost", port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
        else:
            return
