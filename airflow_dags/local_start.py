"""Start Airflow on this machine; at the end, however it comes, end all that was started.

The API server comes first: a task that starts before it answers fails. `airflow standalone` does
not wait, its log servers listen on all addresses, and of a SIGTERM it says nothing to its children.
Here nothing but the API server listens; it reads the tasks' logs from the disk.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from types import FrameType
from typing import Any, NoReturn

import psutil

_MARK = "AIRFLOW_LOCAL_RUN"  # in the environment of all that is started here, and of no other
_COMPONENTS = (("dag-processor",), ("scheduler", "--skip-serve-logs"))
_GRACE_SECONDS = 20
_POLL_SECONDS = 0.5
_PR_SET_CHILD_SUBREAPER = 36


def main(dags: list[str]) -> int:
    """Start all of it and switch on ``dags``; gives the status of the first process that ends."""
    os.environ[_MARK] = uuid.uuid4().hex
    _adopt_orphans()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    url = f"http://{os.environ['AIRFLOW__API__HOST']}:{os.environ['AIRFLOW__API__PORT']}"
    try:
        _finish("db", "migrate")
        _finish("pools", "set", "kafka_segments", "1", "Spark jobs at a time")
        processes = [_start("api-server")]
        _until_answered(processes, f"{url}/api/v2/monitor/health")
        processes += [_start(*component) for component in _COMPONENTS]
        token = _until_answered(processes, f"{url}/auth/token")["access_token"]
        for dag in dags:
            _until_answered(
                processes, f"{url}/api/v2/dags/{dag}", token=token, change={"is_paused": False}
            )
        print(f"Airflow: {os.environ['AIRFLOW__API__BASE_URL']}   stop: Ctrl-C", flush=True)
        while not (ended := _ended(processes)):
            time.sleep(_POLL_SECONDS)
        return _say_ended(ended)
    finally:
        _end_all()


def _adopt_orphans() -> None:
    """Become the parent of all below that lose theirs, where the kernel is Linux.

    Workers that have overwritten their environment, and whose scheduler is gone, are found so.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _finish(*command: str) -> None:
    """Run an airflow command to its end; its output is shown where it fails."""
    done = subprocess.run(
        ["airflow", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        sys.exit(f"airflow {' '.join(command)} ended with {done.returncode}")


def _start(*command: str) -> "subprocess.Popen[bytes]":
    # Ctrl-C goes to a terminal's whole group: out of it, they end in the order of _end_all.
    return subprocess.Popen(["airflow", *command], process_group=0)


def _until_answered(
    processes: "list[subprocess.Popen[bytes]]",
    url: str,
    *,
    token: str | None = None,
    change: dict[str, Any] | None = None,
) -> Any:
    """Ask until there is an answer; leave where a process ends first."""
    request = urllib.request.Request(
        url,
        method="PATCH" if change else "GET",
        data=json.dumps(change).encode() if change else None,
        headers={"Content-Type": "application/json"},
    )
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
        if ended := _ended(processes):
            sys.exit(_say_ended(ended))
        time.sleep(_POLL_SECONDS)


def _ended(processes: "list[subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes] | None":
    return next((process for process in processes if process.poll() is not None), None)


def _say_ended(process: "subprocess.Popen[bytes]") -> int:
    print(f"{' '.join(map(str, process.args))} ended with {process.returncode}", file=sys.stderr)
    return process.returncode or 1


def _end_all() -> None:
    """End all that was started, tasks and their Spark drivers too, wherever they hang now."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    started: set[psutil.Process] = set()
    for signal_number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        started |= _started()
        for process in started:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal_number)
        psutil.wait_procs(started, timeout=_GRACE_SECONDS)


def _started() -> set[psutil.Process]:
    """Find what was started: below this process, or with its mark.

    Airflow's own processes overwrite their environment with their title, and a driver whose task
    was killed has lost its parent; one that has lost both has this process as its parent.
    """
    own = psutil.Process()
    found = set(own.children(recursive=True))
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process != own and process.environ().get(_MARK) == os.environ[_MARK]:
                found.add(process)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
