"""A standalone cluster: jobs by spark-submit, and faults that end as if nothing had been."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables import catalog as tables
from support.spark.driver_process import (
    Driver,
    build_undisturbed,
    leftovers,
    same_tables,
    small_settings,
)
from support.spark.spark_cluster import (
    BIN,
    ROOT,
    SparkCluster,
    bare_environment,
    package_zip,
    packed_environment,
)
from support.spark.stored_builds import NOW_MS, rows

pytestmark = pytest.mark.timeout(1800)
NOW = ("--now-ms", "1795000000000")
SHIPPED_PYTHON = "./environment/bin/python"


class Shipped(NamedTuple):
    """How the package gets to the executors, and the interpreters there and in the driver."""

    options: tuple[str, str]
    executors_python: str
    drivers_python: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    started = SparkCluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed_environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def undisturbed(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What a local build of the broker's logs gives."""
    target = tmp_path_factory.mktemp("undisturbed")
    build_undisturbed(spark, broker / "logs", target)
    return target


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def driver(
    spark: SparkSession, cluster: SparkCluster, environment: Path, faults: Path
) -> Iterator[Driver]:
    """A driver whose executors suffer what is armed; stragglers get a second copy."""
    started = Driver(_faulty_settings(cluster, environment, faults), SHIPPED_PYTHON)
    yield started
    started.close()


def _faulty_settings(cluster: SparkCluster, environment: Path, faults: Path) -> dict[str, str]:
    return small_settings(cluster.url) | {
        "spark.archives": f"{environment}#environment",
        "spark.python.daemon.module": "faulty_daemon",
        "spark.executorEnv.FAULTS": str(faults),
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "3s",
    }


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """The zip alone; the dependencies are installed on every machine."""
    folder = tmp_path_factory.mktemp("zip")
    bare_environment(folder)
    python = str(folder / "environment" / "bin" / "python")
    return Shipped(("--py-files", str(package_zip(folder))), python, python)


@pytest.fixture(scope="module")
def packed(environment: Path) -> Shipped:
    """The environment with the package in it; the machines have an interpreter only."""
    python = str(environment.parent / "environment" / "bin" / "python")
    return Shipped(("--archives", f"{environment}#environment"), SHIPPED_PYTHON, python)


class Submitted(NamedTuple):
    """A job on its way; what it prints goes to files, so that nothing waits for a reader."""

    process: subprocess.Popen[bytes]
    out: Path

    def ended(self, *, status: int) -> str:
        """Wait for its end; gives its stdout."""
        assert self.process.wait() == status, self.out.with_suffix(".err").read_text()[-3000:]
        return self.out.read_text()


def _submit(cluster: SparkCluster, shipped: Shipped, job: str, *options: object) -> Submitted:
    settings = small_settings(cluster.url).items()
    variables = os.environ | {
        "PYSPARK_PYTHON": shipped.executors_python,
        "PYSPARK_DRIVER_PYTHON": shipped.drivers_python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    variables.pop("PYTHONPATH", None)
    out = Path(mkdtemp(dir=cluster.folder), job).with_suffix(".out")
    command = [
        str(BIN / "spark-submit"),
        *(part for pair in settings for part in ("--conf", "=".join(pair))),
        *shipped.options,
        *map(str, (ROOT / "jobs" / job, *options)),
    ]
    with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=cluster.folder, stdout=stdout, stderr=stderr, env=variables
        )
    return Submitted(process, out)


def _index_files(folder: Path) -> dict[str, bytes]:
    suffixes = (".index", ".timeindex", ".txnindex")
    files = (file for file in folder.rglob("*") if file.suffix in suffixes)
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_submitted_jobs_give_the_brokers_files_and_the_tables_of_a_local_run(
    cluster: SparkCluster,
    packed: Shipped,
    zipped: Shipped,
    spark: SparkSession,
    broker: Path,
    undisturbed: Path,
    tmp_path: Path,
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    partition = "ct-two-partitions-1"
    local = ("--warehouse", undisturbed / "wh", *NOW)
    on_cluster = ("--warehouse", one / "wh", *NOW)

    whole = _submit(
        *(cluster, packed, "build_indexes.py", "--source", broker / "logs"),
        *("--warehouse", one / "wh", "--index-dir", one / "indexes", "--now-ms", NOW_MS),
    )
    part = _submit(
        *(cluster, zipped, "build_indexes.py", "--source", broker / "logs" / partition),
        *("--warehouse", other / "wh", "--index-dir", other / "indexes", "--output", "csv"),
    )
    assert f",{partition[:-2]},1," in part.ended(status=0)
    assert whole.ended(status=0).count("\n") > 24
    for verb, shipped, job in (
        ("retention", zipped, "decide_retention.py"),
        ("validate", packed, "validate_tables.py"),
    ):
        submitted = _submit(cluster, shipped, job, *on_cluster)
        with pytest.raises(SystemExit) as ended:
            cli([verb, *map(str, local)])
        submitted.ended(status=ended.value.code)

    assert _index_files(one / "indexes") == _index_files(broker / "rebuilt")
    assert _index_files(other / "indexes") == _index_files(broker / "rebuilt" / partition)
    assert same_tables(spark, one, undisturbed)
    for table in (tables.RETENTION_DECISIONS, tables.VALIDATION_RESULTS):
        here = rows(spark, str(undisturbed / "wh"), table, without={"run_id"})
        assert rows(spark, str(one / "wh"), table, without={"run_id"}) == here


@pytest.mark.parametrize(
    "suffered", [("straggle",), ("kill_executor", "kill_worker")], ids=["speculation", "kills"]
)
def test_a_scan_that_is_disturbed_ends_as_if_nothing_had_been(
    suffered: tuple[str, ...],
    cluster: SparkCluster,
    driver: Driver,
    faults: Path,
    undisturbed: Path,
    spark: SparkSession,
    broker: Path,
    tmp_path: Path,
) -> None:
    for fault in suffered:
        (faults / fault).touch()

    summary = driver.build(broker / "logs", tmp_path).result()

    assert [(faults / f"{fault}.suffered").exists() for fault in suffered] == [True] * len(suffered)
    assert len(cluster.lost_workers()) == ("kill_worker" in suffered)
    cluster.start_workers()
    assert (summary.segments_scanned, summary.findings) == (24, 0)
    assert same_tables(spark, tmp_path, undisturbed)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("cores", "suffered"),
    [(1, ("kill_executor", "straggle")), (4, ("kill_executor",))],
    ids=["four executors of one core", "one of four"],
)
def test_executors_of_any_size_give_the_same_where_one_is_killed(
    cores: int,
    suffered: tuple[str, ...],
    cluster: SparkCluster,
    environment: Path,
    faults: Path,
    undisturbed: Path,
    spark: SparkSession,
    broker: Path,
    tmp_path: Path,
) -> None:
    of_size = _faulty_settings(cluster, environment, faults) | {
        "spark.cores.max": "4",
        "spark.executor.cores": str(cores),
        "spark.default.parallelism": "8",
    }
    for fault in suffered:
        (faults / f"{fault}.suffered").unlink(missing_ok=True)
        (faults / fault).touch()

    with closing(Driver(of_size, SHIPPED_PYTHON)) as driver:
        summary = driver.build(broker / "logs", tmp_path).result()

    assert [(faults / f"{fault}.suffered").exists() for fault in suffered] == [True] * len(suffered)
    assert (summary.segments_scanned, summary.findings) == (24, 0)
    assert same_tables(spark, tmp_path, undisturbed)
    assert leftovers(tmp_path) == []


def _aside(log: Path) -> Path:
    """Give where the faulty daemon looks for, and leaves, a segment's file: in no log's folder."""
    return log.parents[2] / f"{log.parent.name}-{log.name}"


def test_segments_that_change_and_vanish_while_they_are_read_are_right_after_the_next_run(
    driver: Driver, faults: Path, spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    _, active = sorted((log_dir / "ct-two-partitions-0").glob("*.log"))
    other_old, other_active = sorted((log_dir / "ct-two-partitions-1").glob("*.log"))
    shutil.copy(other_old, _aside(other_old))
    with _aside(other_old).open("r+b") as log:
        log.seek(500_000)
        log.write(b"other")
    for fault, log in (("vanish", active), ("replace", other_old), ("truncate", other_active)):
        (faults / fault).write_text(str(log))

    first = driver.build(log_dir, tmp_path / "disturbed").result()
    _aside(active).rename(active)
    second = driver.build(log_dir, tmp_path / "disturbed").result()
    build_undisturbed(spark, log_dir, tmp_path / "undisturbed")

    assert (first.segments_scanned, first.segments_damaged) == (4, 2)
    assert (second.segments_scanned, second.segments_damaged) == (3, 2)
    assert same_tables(spark, tmp_path / "disturbed", tmp_path / "undisturbed")
