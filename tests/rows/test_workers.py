"""The Python of Spark's workers: the driver's own where that can be, refused where it cannot do."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.rows import workers
from kafka_segments.engine.rows.workers import require_package, take_own_python
from kafka_segments.errors import UsageError

_DAEMON = "spark.python.daemon.module"


@pytest.fixture
def runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A local session like a notebook's, whose workers' Python a test may change."""
    before = spark.sparkContext.pythonExec
    conf: Any = spark._jvm.org.apache.spark.SparkEnv.get().conf()
    ours = conf.get(_DAEMON)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    conf.set(_DAEMON, "pyspark.daemon")
    yield monkeypatch
    conf.set(_DAEMON, ours)
    spark.sparkContext.pythonExec = before


def _wrapper(folder: Path, *lines: str) -> str:
    """Make a Python that sees less, or another package, than the driver's."""
    program = folder / "python-of-others"
    program.write_text("\n".join(("#!/bin/sh", *lines, f'exec {sys.executable} "$@"', "")))
    program.chmod(0o755)
    return str(program)


def test_a_local_session_runs_the_drivers_python(
    spark: SparkSession, runs: pytest.MonkeyPatch
) -> None:
    spark.sparkContext.pythonExec = "python3"

    take_own_python(spark)

    assert spark.sparkContext.pythonExec == sys.executable
    spark.sparkContext.pythonExec = "chosen"
    runs.setenv("PYSPARK_PYTHON", "chosen")
    take_own_python(spark)
    assert spark.sparkContext.pythonExec == "chosen"


@pytest.mark.slow
def test_workers_with_the_package_are_not_refused(
    spark: SparkSession, runs: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spark.sparkContext.pythonExec = _wrapper(tmp_path)

    require_package(spark)


@pytest.mark.parametrize(
    ("version", "has"), [(None, "no kafka-segments"), ("0.0.1", "kafka-segments 0.0.1, ")]
)
def test_workers_without_it_or_with_another_are_named_with_what_to_do(
    spark: SparkSession, runs: pytest.MonkeyPatch, tmp_path: Path, version: str | None, has: str
) -> None:
    text = "raise ImportError" if version is None else f"__version__ = '{version}'"
    (tmp_path / "kafka_segments").mkdir()
    (tmp_path / "kafka_segments" / "__init__.py").write_text(text)
    other = _wrapper(tmp_path, f'export PYTHONPATH="{tmp_path}:$PYTHONPATH"')
    spark.sparkContext.pythonExec = other

    with pytest.raises(UsageError) as refused:
        require_package(spark)

    assert str(refused.value).startswith(f"the Python of Spark's workers, {sys.executable}, has")
    assert has in str(refused.value)
    assert str(refused.value).endswith(
        f"unset PYSPARK_PYTHON, or set it to {sys.executable}, and start the session anew"
    )


def test_a_python_that_does_not_start_is_told_in_one_line(
    spark: SparkSession, runs: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spark.sparkContext.pythonExec = str(tmp_path / "no-python")

    with pytest.raises(UsageError) as refused:
        require_package(spark)

    assert f'Cannot run program "{tmp_path}/no-python"' in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("session", "says"),
    [
        (SimpleNamespace(), "the server of Spark Connect chooses it: install the package there"),
        (
            SimpleNamespace(sparkContext=SimpleNamespace(master="spark://m:7077")),
            "on every node before the session starts, or ship an environment",
        ),
    ],
)
def test_elsewhere_the_python_is_left_alone_and_the_way_is_said(session: Any, says: str) -> None:
    take_own_python(session)

    assert not hasattr(session, "pythonExec")
    assert says in workers._to_do(session)


def test_the_path_of_an_environment_is_not_resolved(
    spark: SparkSession, runs: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    link = tmp_path / "python"
    link.symlink_to(os.path.realpath(sys.executable))
    spark.sparkContext.pythonExec = str(link)

    assert not workers._is_own_python(spark)
    spark.sparkContext.pythonExec = sys.executable
    assert workers._is_own_python(spark)
