"""A real Airflow for tests, in its own environment: one command, or all of it with its API."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv-airflow" / "bin" / "python"
LOCAL = ROOT / "airflow_dags" / "local.sh"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_Found = TypeVar("_Found")


class LocalAirflow:
    """A home, a warehouse and an index folder below ``folder``, as ``make airflow`` has them."""

    def __init__(self, folder: Path, source: Path) -> None:
        if not PYTHON.exists():
            raise FileNotFoundError(f"{PYTHON}: run `make airflow-setup`")
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.indexes = folder / "indexes"
        self.log_dirs = [{"name": "broker-0", "sources": [str(source)]}]
        self.env = os.environ | {
            "AIRFLOW_DEMO": str(folder),
            "JOBS_VENV": sys.prefix,
            "AIRFLOW_VAR_KAFKA_SEGMENTS_LOG_DIRS": json.dumps(self.log_dirs),
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
        }
        self.run("db", "migrate")
        self.run("pools", "set", "kafka_segments", "1", "Spark jobs at a time")

    def run(self, *arguments: str) -> str:
        """Run one airflow command; gives its output, fails where it fails."""
        done = self.try_run(*arguments)
        assert done.returncode == 0, done.stdout[-6000:]
        return done.stdout

    def try_run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one airflow command; stdout holds all of its output."""
        return subprocess.run(
            [str(LOCAL), *arguments],
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def test_dag(self, name: str, date: str, *more: str) -> str:
        """Run ``airflow dags test`` to its end."""
        return self.run("dags", "test", f"kafka_segments_{name}", date, *more)

    @contextlib.contextmanager
    def started(self) -> Iterator["Api"]:
        """Start the scheduler, the DAG processor and the API server; stop them at the end."""
        ports = _free_ports(3)
        self.env |= {
            "AIRFLOW__API__PORT": str(ports[0]),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports[1]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports[2]),
        }
        log = self.folder / "standalone.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(LOCAL), "standalone"],
                env=self.env,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield Api(ports[0], process, log)
        finally:
            _stop(process)


class Api:
    """The REST API of a started Airflow."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._process = process
        self._log = log
        self._headers = {"Content-Type": "application/json"}
        token = self.wait("the API server", lambda: self._try("GET", "/auth/token"))
        self._headers["Authorization"] = f"Bearer {token['access_token']}"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Call ``/api/v2``; gives the answer's JSON."""
        return self._call(method, f"/api/v2{path}", body)

    def wait(self, what: str, look: Callable[[], _Found | None]) -> _Found:
        """Ask until there is something; fails with Airflow's log where it stops or takes long."""
        for _ in range(1200):
            found = look()
            if found:
                return found
            assert self._process.poll() is None, self.tail()
            time.sleep(1)
        raise AssertionError(f"{what} did not come\n{self.tail()}")

    def pause(self, dag: str, *, paused: bool) -> None:
        """Stop a DAG or let it run, once the DAG processor has read it."""
        self.wait(dag, lambda: self._try("PATCH", f"/api/v2/dags/{dag}", {"is_paused": paused}))

    def succeeded(self, dag: str) -> set[str]:
        """Give the days of the runs that ended well; fails where one did not."""
        runs = self.call("GET", f"/dags/{dag}/dagRuns")["dag_runs"]
        assert not [run for run in runs if run["state"] == "failed"], self.tail()
        return {str(run["logical_date"])[:10] for run in runs if run["state"] == "success"}

    def state(self, run: str, task: str) -> str | None:
        """Give a task's state in a run; fails where the run has failed."""
        assert self.call("GET", run)["state"] != "failed", self.tail()
        return self.call("GET", f"{run}/taskInstances/{task}")["state"]

    def mapped(self, dag: str, task: str) -> set[str]:
        """Give the labels of a mapped task's instances that ended well, over all runs."""
        found = self.call("GET", f"/dags/{dag}/dagRuns/~/taskInstances")["task_instances"]
        assert not [one for one in found if one["state"] == "failed"], self.tail()
        return {
            str(one["rendered_map_index"])
            for one in found
            if one["task_id"] == task and one["state"] == "success"
        }

    def tail(self) -> str:
        """Give the end of Airflow's own output."""
        return self._log.read_text("utf-8", "replace")[-6000:]

    def _try(self, method: str, path: str, body: object = None) -> Any:
        with contextlib.suppress(OSError):
            return self._call(method, path, body)
        return None

    def _call(self, method: str, path: str, body: object) -> Any:
        request = urllib.request.Request(
            self._base + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=self._headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                raise OSError(f"{error.code} {method} {path}: {error.read()!r}") from None


def messages(output: str) -> list[str]:
    """Give the lines of a log without colours and times."""
    return [
        line.partition("] ")[2].partition(" [airflow.")[0].strip()
        for line in _COLOUR.sub("", output).splitlines()
    ]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its session: first politely, then what is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for found in sockets:
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in sockets]
