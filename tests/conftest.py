"""Fixtures that tests share: golden data, one Spark session, one JVM with Kafka's classes."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from kafka_segments.compiled_sources import compiled_sources
from support.house.ci import is_ci
from support.spark import fresh_session
from support.stores.memory_folders import MEMORY, has_plenty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.kafka.kafka_referee import Referee
    from support.spark.ready_builds import LentBuild, ReadyBuild
    from support.stores.mini_hdfs import MiniHdfs
    from support.stores.object_store import ObjectStore

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).with_name("golden")
os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
if not is_ci():  # there no command makes an archive of classes when it ends
    os.environ.setdefault("KAFKA_SEGMENTS_CLASS_ARCHIVE", "off")
# A shell starts what runs in the background without SIGINT, and so would the tests' processes.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# PySpark ends a process whose main module has no file, as those of pytest-xdist: it takes it for
# one of its doctests.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__
# What numba has compiled lies by the hash of all that may go into it. Processes that tests start
# inherit the variable; who sets another (a fuzzing run, a mutant's) keeps it.
LIBRARY = ROOT / "lib"
COMPILED = ROOT / "build" / "compiled" / compiled_sources(LIBRARY / "kafka_segments")
os.environ.setdefault("NUMBA_CACHE_DIR", str(COMPILED))
# What is published, and what Kafka writes, is synced to its disk file by file. Folders of tests lie
# in memory where the machine has plenty.
if has_plenty():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# The longest first: Airflow's scheduler, submitted clusters, other stores, brokers and faults at
# length. Single tests of other files have the marker, too.
SLOW = (
    "test_dags",
    "test_cluster",
    "test_object_store_run",
    "test_verbs_on_s3",
    "test_hdfs",
    "test_hostile_names",
    "test_broker",
    "test_cluster_retention",
    "test_live_search",
    "test_migrated_broker",
    "test_faults",
)
LONG = (
    *("test_connect", "test_every_verb", "test_leftovers", "test_lived_cluster", "test_few_rows"),
    *("test_lost_records", "test_kit_broker", "test_forecast_broker", "test_quiet_cluster"),
)
"""Other files with slow tests of a minute or more."""
AT_LENGTH = (
    *("test_cluster", "test_cluster_retention", "test_forecast_broker", "test_lost_records"),
    "test_quiet_cluster",
)
"""Files of which each test is long: clusters that live, are disturbed or killed."""
MANY_IN_CI = ("test_latency",)
"""Files of which the tests that run for few rows and for many are not long for many."""
COMPILE_MOST = ("test_conversion", "test_record_form")
JVM = {"spark", "hdfs", "referee"}

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
    """Remove, once, what was compiled from other sources, beside them and here; register a plugin.

    numba looks at a function's own file alone, not at those of the functions that it calls.
    """
    config.pluginmanager.register(fresh_session)
    if COMPILED.exists() or hasattr(config, "workerinput"):  # xdist: the first process does it
        return
    shutil.rmtree(COMPILED.parent, ignore_errors=True)
    for compiled in LIBRARY.rglob("*.nb[ic]"):
        compiled.unlink()
    COMPILED.mkdir(parents=True)


def pytest_report_header() -> str:
    """Show what repeats this run's random input."""
    return f"REFEREE_SEED={SEED}"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the JVMs of CI's tests start sooner; elsewhere `make setup` has seen to it."""
    if is_ci() and not hasattr(session.config, "workerinput"):
        making = [sys.executable, "-m", "kafka_segments.class_archive"]
        subprocess.run(making, env=os.environ | {"PYTHONPATH": str(LIBRARY)}, check=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the JVM they need, so that ``-m "not spark"`` is quick."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        for jvm in JVM.intersection(names):
            item.add_marker(jvm)
        if "airflow_dags" in item.path.parts:
            item.add_marker("airflow")
        if item.path.stem in SLOW:
            item.add_marker("slow")
        if item.path.stem in AT_LENGTH or _is_many_at_length(item):
            item.add_marker("long")
        if "seed" in names:
            item.add_marker("drawn")
    if hasattr(config, "workerinput"):
        _put_long_files_first(items)


def _is_many_at_length(item: pytest.Item) -> bool:
    """Tell if a test of few rows and of many runs for many, and CI does without."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    kinds = {params.get("few_and_many"), params.get("asked_few_and_many")}
    return "many" in kinds and item.path.stem not in MANY_IN_CI


def _put_long_files_first(items: list[pytest.Item]) -> None:
    """Let the processes of pytest-xdist, which take file after file, come to short ones last.

    Before all others they have most functions compiled, each its own.
    """
    with_jvm = {item.path for item in items if any(map(item.get_closest_marker, JVM))}
    first = (*COMPILE_MOST, *SLOW, *LONG)

    def turn(item: pytest.Item) -> tuple[int, bool]:
        stem = item.path.stem
        return first.index(stem) if stem in first else len(first), item.path not in with_jvm

    items.sort(key=turn)


@pytest.fixture(scope="session")
def seed() -> int:
    """What a test draws its random input from."""
    return SEED


@pytest.fixture(autouse=True)
def _pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let drawn tests read by pieces of drawn sizes, too."""
    if "seed" not in request.fixturenames:
        yield
        return
    from support.logs.small_pieces import small_pieces

    with small_pieces(random.Random(f"{SEED} {request.node.nodeid}")):
        yield


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
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Disks of a KRaft cluster that lived, and what Kafka answered; see kraft_cluster.py."""
    return _unpacked("cluster", tmp_path_factory.mktemp("golden"))


@pytest.fixture
def node(cluster: Path, tmp_path: Path) -> Path:
    """The two log directories of a node that was killed, without what was to be deleted."""
    target = tmp_path / "node"
    found = next(cluster.rglob("node-1"))
    shutil.copytree(found, target)
    for folder in target.glob("*/*-delete"):
        shutil.rmtree(folder)
    return target


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What brokers of older releases wrote; see older_lives.py."""
    return _unpacked("older", tmp_path_factory.mktemp("golden"))


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
    from support.stores.object_store import ObjectStore

    store = ObjectStore(s3_socket)
    yield store
    store.close()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator["MiniHdfs"]:
    """Hadoop's mini cluster; each test takes a folder of its own."""
    from support.stores.mini_hdfs import MiniHdfs

    with MiniHdfs(tmp_path_factory.mktemp("hdfs")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(
    s3_socket: socket.socket, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SparkSession"]:
    """One session for all tests, made as the commands make theirs."""
    from kafka_segments.engine.spark import session as sessions

    # One JVM for many tests: it needs room, and keeps the code that Spark makes for a query. It
    # shares two cores with another one: what compiles and collects at the side costs too much, and
    # with the optimizing compiler what is done for the first time takes twice as long.
    options = f"{sessions._LOCAL[sessions._JAVA_OPTIONS]} -XX:+UseSerialGC"
    options += " -XX:ReservedCodeCacheSize=480m"
    long_run = {
        "spark.driver.memory": "5g",
        sessions._JAVA_OPTIONS: options,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    here = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("spark"))  # Spark leaves folders where it is started
    try:
        with ExitStack() as stack:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sessions, "_LOCAL", {**sessions._LOCAL, **long_run})
                patch.delenv("KAFKA_SEGMENTS_CLASS_ARCHIVE", raising=False)  # one there may be used
                session = stack.enter_context(
                    sessions.spark_session("tests", root=ROOT, master="local[2]")
                )
            _warm_up(session, tmp_path_factory.mktemp("warm-up"))
            yield session
    finally:
        os.chdir(here)


def _warm_up(spark: "SparkSession", folder: Path) -> None:
    """Do what costs seconds once: classes are loaded, Python's workers started, tables made.

    Else the first test of a session that reads or builds would take as much longer.
    """
    from support.logs.strategies import v2_batch
    from support.spark.stored_builds import build_few

    spark.range(2).repartition(2).mapInArrow(lambda rows: rows, "id long").toArrow()
    (folder / "logs" / "t-0").mkdir(parents=True)
    (folder / "logs" / "t-0" / f"{0:020d}.log").write_bytes(v2_batch(0, [(1, None, b"x")]))
    build_few(spark, str(folder / "logs"), str(folder / "warehouse"))
    spark.read.format("delta").load(str(folder / "warehouse" / "segments")).collect()


@pytest.fixture
def caches() -> Iterator[ExitStack]:
    """What a test's searches keep in memory, given up at its end."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def few(spark: "SparkSession") -> Iterator[None]:
    """What a test reads is taken for few rows, as the commands do, which is quicker."""
    from kafka_segments.engine.choose import few_rows

    with few_rows(spark):
        yield


@pytest.fixture(params=["few", pytest.param("many", marks=pytest.mark.slow)])
def few_and_many(spark: "SparkSession", request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test twice: what is read is taken for few rows, as commands do, and (slow) for many."""
    from kafka_segments.engine.choose import few_rows

    with few_rows(spark) if request.param == "few" else nullcontext():
        yield


def _no_few_rows(*_: object, **__: object) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.fixture(params=["few", pytest.param("many", marks=pytest.mark.slow)])
def asked_few_and_many(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Run a test of commands twice: as they are, and (slow) so that they take all for many rows."""
    if request.param == "many":
        monkeypatch.setattr("kafka_segments.engine.choose.few_rows", _no_few_rows)
    yield


@pytest.fixture(scope="session")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Referee"]:
    """One JVM with Kafka's own classes, which has recovered segments once, as our kernel has."""
    from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
    from support.kafka.kafka_referee import Referee
    from support.kafka.side_by_side import recovered_by_us

    with Referee(scratch=tmp_path_factory.mktemp("referee")) as started:
        partition = started.generate(tmp_path_factory.mktemp("warm-up"), 1)
        recovered_by_us(partition, RecoveryOptions())
        started.recover(partition)
        yield started


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: nothing in it waits for a disk."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


TWO_PARTITIONS = ("ct-two-partitions-0", "ct-two-partitions-1")


def _copy_two_partitions(broker: Path, target: Path) -> Path:
    for name in TWO_PARTITIONS:
        shutil.copytree(broker / "logs" / name, target / name)
    return target


@pytest.fixture
def log_dir(broker: Path, tmp_path: Path) -> Path:
    """A log directory of its own for a test that changes it: two partitions of a broker."""
    return _copy_two_partitions(broker, tmp_path / "logs")


@pytest.fixture(scope="session")
def broker_build(
    spark: "SparkSession", broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> "ReadyBuild":
    """A build of all of the broker's logs, taken for many rows; no test changes it."""
    from support.spark.ready_builds import build_once
    from support.spark.stored_builds import build

    folder = tmp_path_factory.mktemp("broker-build")
    return build_once(spark, broker / "logs", folder, build=build)


@pytest.fixture(scope="session")
def cookbook_warehouse(
    spark: "SparkSession", broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tables of docs/cookbook.md; no test changes them."""
    from support.house.cookbook import sample_warehouse

    return Path(sample_warehouse(spark, broker, tmp_path_factory.mktemp("cookbook")))


@pytest.fixture(scope="session")
def lent_build(
    spark: "SparkSession", broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> "LentBuild":
    """A build of two partitions of the broker, lent to tests that change what it is made of."""
    from support.spark.ready_builds import LentBuild, build_once

    folder = tmp_path_factory.mktemp("lent-build")
    logs = _copy_two_partitions(broker, folder / "logs")
    return LentBuild(build_once(spark, logs, folder), folder / "kept")
