"""A real Spark standalone cluster on this machine, and the package as users ship it to one."""

import os
import shutil
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from hashlib import sha1
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
HOSTS = ("127.0.0.1", "localhost")  # Spark runs a speculative copy on another host only
_PATIENCE_SECONDS = 120


class SparkCluster:
    """A master and two workers with four cores each, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        options = ("--host", HOSTS[0], "--port", "0", "--webui-port", "0")
        self._start("master.Master", *options, log="master.log")
        self.url = self._said("master.log", "Starting Spark master at ", "spark://")
        self.start_workers()

    def start_workers(self) -> None:
        """Start the workers that are not running; wait until the master has them."""
        for host in HOSTS:
            if host in self._workers and self._workers[host].poll() is None:
                continue
            log = f"worker-{host}-{len(self._processes)}.log"
            self._workers[host] = self._start(
                *("worker.Worker", "--host", host, "--cores", "4", "--memory", "2g"),
                *("--work-dir", str(self.folder / "work"), "--webui-port", "0", self.url),
                log=log,
            )
            self._said(log, "Successfully registered with master ", "spark://")

    def lost_workers(self) -> list[str]:
        """Name the hosts whose worker has ended."""
        return [host for host, worker in self._workers.items() if worker.poll() is not None]

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait()

    def _start(self, name: str, *options: str, log: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "SPARK_LOCAL_IP": HOSTS[0],
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
        }
        for ours in ("PYTHONPATH", "NUMBA_CACHE_DIR"):  # executors have what was shipped
            environment.pop(ours, None)
        with (self.folder / log).open("wb") as out:
            process = subprocess.Popen(
                [str(BIN / "spark-class"), f"org.apache.spark.deploy.{name}", *options],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=environment,
            )
        self._processes.append(process)
        return process

    def _said(self, log: str, before: str, wanted: str) -> str:
        """Wait until a process has logged ``before``; gives the word after it."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end and self._processes[-1].poll() is None:
            text = (self.folder / log).read_text()
            word = (text.partition(before)[2].split() or [""])[0]
            if word.startswith(wanted) and text.endswith("\n"):
                return word
            time.sleep(0.05)
        raise AssertionError((self.folder / log).read_text())


def package_zip(folder: Path) -> Path:
    """Make the zip that ``make build`` makes for --py-files."""
    archive = folder / "kafka_segments.zip"
    with zipfile.ZipFile(_wheel(folder)) as wheel, zipfile.ZipFile(archive, "w") as package:
        for name in wheel.namelist():
            if name.startswith("kafka_segments/"):
                package.writestr(name, wheel.read(name))
    return archive


def packed_environment(folder: Path) -> Path:
    """Make the archive that ``make environment`` makes, with links for the dependencies.

    The package in it comes from the wheel, with what numba has compiled here so far;
    ``faulty_daemon`` lies beside it.
    """
    packages = bare_environment(folder)
    with zipfile.ZipFile(_wheel(folder)) as wheel:
        wheel.extractall(packages)
    for room in (ROOT / "lib" / "kafka_segments").iterdir():
        # As numba names it; what executors compiled lies beside it.
        name = f"{room.name}_{sha1(str(room).encode()).hexdigest()}"
        compiled = Path(os.environ["NUMBA_CACHE_DIR"]) / name
        if compiled.exists():
            shutil.copytree(compiled, packages / "kafka_segments" / room.name / "__pycache__")
    shutil.copy(Path(__file__).with_name("faulty_daemon.py"), packages)
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(folder / "environment", arcname=".")
    return archive


def bare_environment(folder: Path) -> Path:
    """Make an environment with links to the dependencies, without the package."""
    venv.create(folder / "environment", symlinks=True, with_pip=False)
    (packages,) = (folder / "environment").glob("lib/python*/site-packages")
    installed = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for entry in installed.iterdir():
        if "kafka_segments" not in entry.name and "editable" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    return packages


def _wheel(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))
