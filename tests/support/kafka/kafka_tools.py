"""Kafka's own command line tools, by the names that they have in a distribution."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.kafka.kafka_referee import KAFKA_JARS, QUIET

_TOOLS = {
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}


class KafkaTools:
    """Runs parts of a shell script that call the tools; its files lie in ``folder``."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        programs = folder / "bin"
        programs.mkdir(parents=True)
        java = " ".join(("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", *QUIET))
        for name, main in _TOOLS.items():
            program = programs / name
            program.write_text(f"#!/bin/sh\nexec {java} -cp '{KAFKA_JARS}/*' {main} \"$@\"\n")
            program.chmod(0o755)
        self._folder = folder
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path, "BOOTSTRAP": bootstrap}

    def run(self, script: str) -> str:
        """Run lines of a shell script; gives what they print, fails where they fail."""
        done = subprocess.run(
            ["sh", "-e"],
            input=script,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def follow(self, script: str, heed: Callable[[str], None]) -> str:
        """Run a whole script by bash; ``heed`` is called with each line that it prints, at once."""
        file = self._folder / "script.sh"
        file.write_text(script)
        said = ""
        with subprocess.Popen(
            ["bash", str(file)],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        ) as running:
            try:
                for line in running.stdout or ():
                    said += line
                    heed(line)
            except BaseException:
                running.kill()
                raise
        assert running.returncode == 0, f"{script}\n{said}"
        return said
