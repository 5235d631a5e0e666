"""A real KRaft broker on the loopback interface, in a JVM of its own."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.kafka.kafka_referee import Referee

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{broker}
log.dirs={log_dir}
num.partitions=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.retention.ms=-1
log.retention.bytes=-1
log.segment.bytes=1048576
num.network.threads=1
num.io.threads=2
background.threads=1
log.cleaner.enable=false
group.initial.rebalance.delay.ms=0
"""
LOGGING = """\
<Configuration status="OFF">
  <Appenders>
    <File name="file" fileName="{file}"><PatternLayout pattern="%p %c %m%n"/></File>
  </Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="file"/></Root></Loggers>
</Configuration>
"""


class KafkaBroker(Referee):
    """A broker that can be started on one log directory again and again."""

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        """Prepare a broker whose files all lie in ``folder``; ``properties`` are further ones."""
        self.log_dir = folder / "logs"
        self.log_file = folder / "server.log"
        self._config = folder / "server.properties"
        broker, controller = free_ports(2)
        self.bootstrap = f"localhost:{broker}"
        own = _PROPERTIES.format(broker=broker, controller=controller, log_dir=self.log_dir)
        more = "".join(f"{name}={value}\n" for name, value in (properties or {}).items())
        self._config.write_text(own + more)
        logging = folder / "log4j2.xml"
        logging.write_text(LOGGING.format(file=self.log_file))
        super().__init__(logging=(f"-Dlog4j2.configurationFile={logging}",))

    def start_broker(self) -> None:
        """Format the log directory where that is still to be done, and start."""
        self._ask("broker_start", config=str(self._config), cluster_id=CLUSTER_ID, formatting=[])

    def close(self) -> None:
        """End the JVM, and with it a broker that still runs."""
        if self._process is not None:
            self._process.kill()
        super().close()

    def stop_broker(self) -> None:
        """Stop cleanly."""
        self._ask("broker_stop")

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics of so many partitions."""
        self._ask("broker_create", topics=dict(topics))

    def list_offsets(
        self, queries: Mapping[str, Sequence[str]]
    ) -> dict[str, list[tuple[int, int]]]:
        """Ask for offsets by timestamp, or EARLIEST, LATEST, MAX_TIMESTAMP, by ``topic-partition``.

        Gives (offset, timestamp) for each, -1 for none.
        """
        answer = self._ask("broker_list_offsets", queries=queries)["offsets"]
        return {name: [(row[0], row[1]) for row in rows] for name, rows in answer.items()}

    def producers(self, partition: str) -> list[str]:
        """Ask what the broker knows of each producer of a partition; gives a line for each."""
        lines: list[str] = self._ask("broker_producers", partition=partition)["producers"]
        return lines

    def kill(self) -> None:
        """End the JVM as a power cut does, as far as a process can: no file is closed or synced."""
        self.close()

    def fetch(self, partition: str, target: Path, *, first: int = 0) -> None:
        """Read a partition to its end; writes lines as ``Referee.records`` does."""
        self._ask("broker_fetch", partition=partition, first=first, target=str(target))

    def read_on(self, partition: str, seeks: Sequence[int]) -> tuple[int, list[tuple[int, str]]]:
        """Read a partition to its end; where the consumer throws, go on at the next of ``seeks``.

        Gives how many records came, and each position at which it threw, with the class.
        """
        answer = self._ask("broker_consume", partition=partition, seeks=list(seeks))
        return answer["records"], [(row[0], row[1]) for row in answer["thrown"]]


def free_ports(count: int) -> list[int]:
    """Give ports of the loopback interface on which nothing listens."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
