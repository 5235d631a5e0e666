"""A real Airflow for tests, in its own environment: all of it, with its API."""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".venv-airflow" / "bin" / "python"
LOCAL = ROOT / "airflow_dags" / "local.sh"
_LISTENS = "0A"
_TURNS = 10
# What the API says of a lock, by its status; 503 is for backfills.
_LOCKED = {500: b"Database error", 503: b"Database is locked"}
_Found = TypeVar("_Found")


class _NoTurnError(OSError):
    """The database was locked by another process of Airflow's."""


class LocalAirflow:
    """A home, a warehouse and an index folder below ``folder``, as ``make airflow`` has them."""

    def __init__(self, folder: Path, source: Path) -> None:
        if not PYTHON.exists():
            raise FileNotFoundError(f"{PYTHON}: run `make airflow-setup`")
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.indexes = folder / "indexes"
        self._sessions: set[int] = set()
        self.log_dirs = [{"name": "broker-0", "sources": [str(source)]}]
        self.env = os.environ | {
            "AIRFLOW_DEMO": str(folder),
            "JOBS_VENV": sys.prefix,
            "AIRFLOW_VAR_KAFKA_SEGMENTS_LOG_DIRS": json.dumps(self.log_dirs),
            "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
        }

    @contextlib.contextmanager
    def started(self, *dags: str) -> Iterator["Api"]:
        """Start all of it as ``make airflow`` does, with these DAGs on; end it at the end."""
        self.env["AIRFLOW__API__PORT"] = str(free_port())
        log = self.folder / "start.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(LOCAL), "start", *dags],
                env=self.env,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._sessions.add(process.pid)
        try:
            yield Api(self.env["AIRFLOW__API__PORT"], process, log)
        finally:
            self._stop(process)

    def run(self, *arguments: str) -> str:
        """Run one airflow command; gives its output, fails where it fails."""
        process = subprocess.Popen(
            [str(LOCAL), *arguments],
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._sessions.add(process.pid)
        try:
            output, _ = process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, output[-6000:]
        return output

    def processes(self) -> list[int]:
        """Give the processes that were started for this home, with or without a parent.

        By their session, and by their environment, which a process loses that sets its title.
        """
        home = f"AIRFLOW_HOME={self.folder}/home".encode()
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                process = int(environment.parent.name)
                is_ours = home in environment.read_bytes().split(b"\0")
                if is_ours or os.getsid(process) in self._sessions:
                    found.append(process)
        return found

    def task_log(self, dag: str, run: str, task: str) -> str:
        """Give the log of a task's tries."""
        run_id = unquote(run.rpartition("/")[2])
        folder = self.folder / "home" / "logs" / f"dag_id={dag}" / f"run_id={run_id}"
        files = sorted((folder / f"task_id={task}").rglob("attempt=*.log"))
        return "\n".join(file.read_text("utf-8") for file in files)

    def _stop(self, process: "subprocess.Popen[bytes]") -> None:
        """End it politely, which ends all it started; then what is left of a starter that hangs."""
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            for left in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.kill()
            process.wait()
            raise


class Api:
    """The REST API of a started Airflow."""

    def __init__(self, port: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._process = process
        self._log = log
        self._headers = {"Content-Type": "application/json"}
        token = self.wait("the API server", lambda: self._try("GET", "/auth/token"))
        self._headers["Authorization"] = f"Bearer {token['access_token']}"
        self.wait("the start", lambda: b"stop: Ctrl-C" in log.read_bytes())

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

    def trigger(self, dag: str, conf: object) -> str:
        """Ask for a run; gives its path."""
        body = {"logical_date": None, "conf": conf}
        run = self.call("POST", f"/dags/{dag}/dagRuns", body)
        return f"/dags/{dag}/dagRuns/{quote(run['dag_run_id'])}"

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Give the runs of a DAG."""
        found: list[dict[str, Any]] = self.call("GET", f"/dags/{dag}/dagRuns")["dag_runs"]
        return found

    def wait_ended(self, run: str) -> str:
        """Give the state in which a run ends."""

        def end() -> str | None:
            state = str(self.call("GET", run)["state"])
            return state if state in ("success", "failed") else None

        return self.wait(run, end)

    def state(self, run: str, task: str) -> str | None:
        """Give a task's state in a run; fails where the run has failed."""
        assert self.call("GET", run)["state"] != "failed", self.tail()
        return self.call("GET", f"{run}/taskInstances/{task}")["state"]

    def mapped(self, dag: str, task: str) -> set[str]:
        """Give the labels of a mapped task's instances that ended well, over all runs."""
        found = self.call("GET", f"/dags/{dag}/dagRuns/~/taskInstances")["task_instances"]
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
        """Call it, again where SQLite had no turn for it: nothing of such a call is kept."""
        for _ in range(_TURNS):
            with contextlib.suppress(_NoTurnError):
                return self._call_once(method, path, body)
            time.sleep(1)
        return self._call_once(method, path, body)

    def _call_once(self, method: str, path: str, body: object) -> Any:
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
                said = error.read()
            kind = _NoTurnError if _LOCKED.get(error.code, b"no lock") in said else OSError
            raise kind(f"{error.code} {method} {path}: {said!r}") from None


def listening_addresses(processes: Iterable[int]) -> set[str]:
    """Give the addresses on which processes listen for TCP."""
    sockets = set()
    for process in processes:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(str(descriptor.readlink()))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in sockets:
                found.add(_address(fields[1].partition(":")[0]))
    return found


def _address(text: str) -> str:
    """Read an address as the kernel writes it: words of 4 bytes in the machine's order."""
    words = [bytes.fromhex(text[at : at + 8]) for at in range(0, len(text), 8)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def free_port() -> int:
    """Give a port of the loopback interface that nobody has now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
