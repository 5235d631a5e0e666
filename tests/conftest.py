"""Fixtures that tests share: golden data, one Spark session, one JVM with Kafka's classes."""

import hashlib
import os
import random
import shutil
import socket
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_referee import Referee
    from mini_hdfs import MiniHdfs
    from object_store import ObjectStore

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).with_name("golden")
os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
os.environ.setdefault("KAFKA_SEGMENTS_CLASS_ARCHIVE", "off")  # no process of ours outlives a test
# PySpark ends a process whose main module has no file, as those of pytest-xdist: it takes it for
# one of its doctests.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__
# Minutes each: Airflow's scheduler, submitted clusters, brokers and faults at length.
SLOW = {"test_dags", "test_cluster", "test_live_search", "test_migrated_broker", "test_faults"}

# Random input is the same in every run, unless new input is asked for: see `make test-random`.
IS_RANDOM = os.environ.get("REFEREE_SEED") == "random"
SEED = (
    random.SystemRandom().randrange(2**31)
    if IS_RANDOM
    else int(os.environ.get("REFEREE_SEED", "1"))
)
settings.register_profile(
    "untimed",
    derandomize=not IS_RANDOM,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Delete compiled code of other sources, once, before any test imports it.

    numba looks at a function's own file alone, not at those of the functions that it calls.
    """
    if hasattr(config, "workerinput"):  # a process of pytest-xdist: the first one did it
        return
    library, noted = ROOT / "lib", ROOT / "build" / "compiled-sources"
    digest = hashlib.sha256()
    for source in sorted(library.rglob("*.py")):
        digest.update(source.read_bytes())
    if noted.exists() and noted.read_text("utf-8") == digest.hexdigest():
        return
    for compiled in library.rglob("*.nb[ic]"):
        compiled.unlink()
    noted.parent.mkdir(exist_ok=True)
    noted.write_text(digest.hexdigest(), "utf-8")


def pytest_report_header() -> str:
    """Show what repeats this run's random input."""
    return f"REFEREE_SEED={SEED}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the JVM they need, so that ``-m "not spark"`` is quick."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "spark" in names:
            item.add_marker("spark")
        if "airflow_dags" in item.path.parts:
            item.add_marker("airflow")
        if item.path.stem in SLOW:
            item.add_marker("slow")
        if "hdfs" in names:
            item.add_marker("hdfs")
        if "referee" in names:
            item.add_marker("referee")
        if "seed" in names:
            item.add_marker("drawn")


@pytest.fixture(scope="session")
def seed() -> int:
    """What a test draws its random input from."""
    return SEED


def _unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)  # our own archive
    return folder / name


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases with the files Kafka 4.3.1 makes of them; see CONTRIBUTING.md."""
    return _unpacked("synthetic", tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mutated logs, the files that Kafka 4.3.1 makes of them, and what it throws."""
    return _unpacked("found", tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Log directories of a real broker, and the index files that it rebuilt."""
    return _unpacked("broker", tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="session")
def s3_socket() -> Iterator[socket.socket]:
    """Where tests' S3 server listens, known before Spark's processes inherit the environment."""
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*listening.getsockname()))
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTACCESSKEY")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret/that+nobody=sees")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield listening


@pytest.fixture(scope="session")
def object_store(s3_socket: socket.socket) -> Iterator["ObjectStore"]:
    """An S3 server; each test takes a bucket of its own."""
    from object_store import ObjectStore

    store = ObjectStore(s3_socket)
    yield store
    store.close()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator["MiniHdfs"]:
    """Hadoop's mini cluster; each test takes a folder of its own."""
    from mini_hdfs import MiniHdfs

    with MiniHdfs(tmp_path_factory.mktemp("hdfs")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(
    s3_socket: socket.socket, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SparkSession"]:
    """One session for all tests, made as the commands make theirs."""
    from kafka_segments.spark import session as sessions

    # One JVM for many tests: it needs room, and lives long enough for its second compiler.
    options = sessions._LOCAL[sessions._JAVA_OPTIONS].replace(sessions.SHORT_RUN_OPTIONS, "")
    long_run = {"spark.driver.memory": "5g", sessions._JAVA_OPTIONS: options}
    here = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("spark"))  # Spark leaves folders where it is started
    try:
        with ExitStack() as stack:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sessions, "_LOCAL", {**sessions._LOCAL, **long_run})
                session = stack.enter_context(sessions.spark_session("tests", root=ROOT))
            yield session
    finally:
        os.chdir(here)


@pytest.fixture
def caches() -> Iterator[ExitStack]:
    """What a test's searches keep in memory, given up at its end."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def referee() -> Iterator["Referee"]:
    """One JVM with Kafka's own classes."""
    from kafka_referee import Referee

    with Referee() as started:
        yield started


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: nothing in it waits for a disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def log_dir(broker: Path, tmp_path: Path) -> Path:
    """A log directory of its own for a test that changes it: two partitions of a broker."""
    copy = tmp_path / "logs"
    for name in ("ct-two-partitions-0", "ct-two-partitions-1"):
        shutil.copytree(broker / "logs" / name, copy / name)
    return copy
