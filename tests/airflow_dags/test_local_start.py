"""What ``make airflow`` starts, in which order, and that it ends: with a stand-in for Airflow."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support.house.local_airflow import PYTHON, ROOT, free_port

# Notes what it is asked for. The API server takes a while until it listens, and loses its first
# environment, as one that sets its title does; the scheduler leaves a process behind that has a
# session and a parent of its own, as a killed task's driver has, and one that has lost its
# environment, too, as a worker has whose scheduler died.
_STAND_IN = f"""#!{sys.executable}
import http.server, json, os, subprocess, sys, time

def note(what):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(what + "\\n")

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        note(f"{{self.command}} {{self.path}}")
        body = json.dumps({{"access_token": "t"}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PATCH = do_GET

    def log_message(self, *_):
        pass

if sys.argv[1] == "api-server" and os.environ.pop("AIRFLOW_LOCAL_RUN", None):
    os.execve(sys.argv[0], sys.argv, os.environ)
note(" ".join(sys.argv[1:]))
if sys.argv[1] == "api-server":
    note(f"left {{os.getpid()}}")
    time.sleep(1)
    address = (os.environ["AIRFLOW__API__HOST"], int(os.environ["AIRFLOW__API__PORT"]))
    http.server.HTTPServer(address, Answers).serve_forever()
if sys.argv[1] == "scheduler":
    for sleep in ("sleep 300", "env -i sleep 300"):
        shell = ["sh", "-c", sleep + " & echo $!"]
        left = subprocess.Popen(shell, stdout=-1, start_new_session=True)
        note("left " + left.stdout.readline().decode().strip())
if sys.argv[1] in ("scheduler", "dag-processor"):
    time.sleep(300)
sys.exit(int(os.environ.get("FAILS_WITH", 0)) if sys.argv[1] == "db" else 0)
"""


@contextlib.contextmanager
def _started(folder: Path, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    stand_in = folder / "airflow"
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    port = str(free_port())
    process = subprocess.Popen(
        [PYTHON, ROOT / "airflow_dags" / "local_start.py", "a_dag"],
        env=os.environ
        | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "NOTES": str(folder / "notes"),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": port,
            "AIRFLOW__API__BASE_URL": f"http://localhost:{port}",
            **more,
        },
        stdout=subprocess.PIPE,
    )
    try:
        with process:
            yield process
            process.terminate()
    finally:
        process.kill()


def _is_there(process: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    return False


def test_dags_are_on_once_the_api_answers_and_all_that_was_started_ends(tmp_path: Path) -> None:
    with _started(tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Airflow: http://localhost:")
        notes = ""
        while notes.count("left ") < 3 or "dag-processor" not in notes:
            time.sleep(0.1)
            notes = (tmp_path / "notes").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM

    lines = (tmp_path / "notes").read_text().splitlines()
    left = [int(line.split()[1]) for line in lines if line.startswith("left ")]
    asked = [line for line in lines if not line.startswith("left ")]
    assert asked[:4] == [
        "db migrate",
        "pools set kafka_segments 1 Spark jobs at a time",
        "api-server",
        "GET /api/v2/monitor/health",
    ]
    assert sorted(asked[4:]) == sorted(
        [
            "dag-processor",
            "scheduler --skip-serve-logs",
            "GET /auth/token",
            "PATCH /api/v2/dags/a_dag",
        ]
    )
    assert [process for process in left if _is_there(process)] == []


def test_a_database_that_cannot_be_made_ends_the_start(tmp_path: Path) -> None:
    with _started(tmp_path, FAILS_WITH="3") as process:
        assert process.wait(60) == 1

    assert (tmp_path / "notes").read_text() == "db migrate\n"
