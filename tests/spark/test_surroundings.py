"""What need not keep Spark from starting: limits, a foreign Spark, folders for a while."""

import os
import resource
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from kafka_segments.engine.spark import surroundings
from kafka_segments.engine.spark.home import foreign_home, spark_home
from kafka_segments.errors import UsageError


def _spark(home: Path, release: str) -> Path:
    program = home / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    (home / "jars").mkdir()
    (home / "jars" / f"spark-core_2.13-{release}.jar").touch()
    return home


@pytest.mark.parametrize(
    ("soft", "hard", "set_to"),
    [
        (256, 4096, (4096, 4096)),
        (1024, 1 << 20, (1 << 16, 1 << 20)),
        (256, resource.RLIM_INFINITY, (1 << 16, resource.RLIM_INFINITY)),
        (256, 256, None),
        (1 << 17, 1 << 20, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_it_may(
    soft: int, hard: int, set_to: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: given.append(limits))

    surroundings.allow_open_files()

    assert given == ([] if set_to is None else [set_to])


def test_a_foreign_spark_home_is_named_and_left_aside_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = _spark(tmp_path, "3.5.1")
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    ours = ".".join(version("pyspark").split(".")[:2])

    with surroundings.without_strangers():
        assert "SPARK_HOME" not in os.environ
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"

    assert os.environ["SPARK_HOME"] == str(home)
    assert "SPARK_LOCAL_IP" not in os.environ
    assert capsys.readouterr().err == (
        f"kafka-segments: SPARK_HOME is {home}, which has Spark 3.5, and PySpark is {ours}: left"
        " aside, PySpark's own Spark is taken; unset SPARK_HOME\n"
    )
    assert spark_home() != home


def test_a_spark_of_our_release_stays_and_so_does_an_address_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = _spark(tmp_path, f"{version('pyspark')}-amzn-1")
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.2")

    with surroundings.without_strangers():
        assert os.environ["SPARK_HOME"] == str(home)
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.2"

    assert capsys.readouterr().err == ""
    assert foreign_home() is None
    assert spark_home() == home


def test_where_no_folder_takes_temporary_files_it_is_said_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_of_them() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_of_them)

    with pytest.raises(UsageError, match=r"no folder takes temporary files.*set TMPDIR"):
        surroundings.require_temporary_folder()


def test_a_folder_that_is_gone_is_named_before_spark_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    surroundings.require_current_folder()
    (tmp_path / "gone").rmdir()

    with pytest.raises(UsageError, match="was started is gone: change to another"):
        surroundings.require_current_folder()
