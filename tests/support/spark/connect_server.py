"""A real Spark Connect server, and commands as its clients: each a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_segments.engine.spark import session as sessions
from support.house.ci import OWN_MOUNTS
from support.spark.connect_client import Done

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = "Spark Connect server started at: "
_PATIENCE_SECONDS = 420  # of a busy machine, on which a server and its client compile
_MOUNTED = 'mount --bind "$0" "$1" && shift && exec "$@"'


class ConnectServer:
    """A server on this machine, on a port of its own; with Delta unless ``has_delta`` is false.

    ``mounts``: a folder, and the one in whose place it sees that one, as a container may.
    """

    def __init__(
        self, folder: Path, *, has_delta: bool = True, mounts: tuple[Path, Path] | None = None
    ) -> None:
        self.folder = folder
        self._log = folder / "server.log"
        settings = {
            **(_with_delta() if has_delta else {}),
            "spark.master": "local[2]",
            "spark.driver.memory": "3g",
            "spark.driver.extraJavaOptions": f"{sessions.SHORT_RUN_OPTIONS} -XX:+UseSerialGC",
            "spark.ui.enabled": "false",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
            "spark.log.structuredLogging.enabled": "false",
        }
        options = (part for pair in settings.items() for part in ("--conf", "=".join(pair)))
        within = () if mounts is None else (*OWN_MOUNTS, "sh", "-c", _MOUNTED, *map(str, mounts))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*within, str(BIN / "spark-submit"), "--class", _SERVER, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=_environment(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable),
            )
        self.url = f"sc://127.0.0.1:{self._port()}"

    def run(
        self,
        *arguments: object,
        variables: Mapping[str, str] | None = None,
        typed: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of ours against this server, to its end; ``typed`` is its stdin."""
        return subprocess.run(
            [sys.executable, "-m", "kafka_segments", *map(str, arguments)],
            cwd=self.folder,
            env=_environment(SPARK_REMOTE=self.url, **(variables or {})),
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )

    def run_all(self, verbs: Sequence[Sequence[object]]) -> list[Done]:
        """Run verbs in one session of one client process; gives what became of each."""
        asked = "".join(json.dumps(list(map(str, verb))) + "\n" for verb in verbs)
        client = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("connect_client.py"))],
            input=asked,
            cwd=self.folder,
            env=_environment(SPARK_REMOTE=self.url),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS * len(verbs),
        )
        done = [Done(*json.loads(line)) for line in client.stdout.splitlines()]
        assert len(done) == len(verbs), client.stderr[-3000:]
        return done

    def ask(self, script: str, *arguments: object) -> Any:
        """Run a script of the tests as a client; return what it tells as JSON."""
        client = subprocess.run(
            [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)],
            cwd=self.folder,
            env=_environment(SPARK_REMOTE=self.url),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
        said = [line for line in client.stderr.splitlines() if not line.lstrip().startswith("at ")]
        assert client.returncode == 0, "\n".join(said)[-3000:]
        return json.loads(client.stdout)

    def close(self) -> None:
        """End the server, at once where it does not end by itself."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _port(self) -> int:
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            said = self._log.read_text().partition(_STARTED)[2].partition("\n")[0]
            if said:
                return int(said.strip().rpartition(":")[2])
            time.sleep(0.2)
        raise AssertionError(self._log.read_text())


def _with_delta() -> dict[str, str]:
    jars = ",".join(map(str, sessions.jars_of(ROOT)))
    return {
        "spark.jars": jars,
        "spark.sql.extensions": sessions._ALWAYS["spark.sql.extensions"],
        "spark.sql.catalog.spark_catalog": sessions._ALWAYS["spark.sql.catalog.spark_catalog"],
    }


def _environment(**variables: str) -> dict[str, str]:
    """Give a process this package and its tests, and none of the variables of another session."""
    others = {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT"}
    kept = {key: value for key, value in os.environ.items() if key not in others}
    return kept | {"PYTHONPATH": f"{ROOT}/lib{os.pathsep}{ROOT}/tests"} | variables
