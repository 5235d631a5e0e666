"""A kit made on Spark is the kit that threads make."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.verbs.change.recovery.kit.listing import plan_kit
from kafka_segments.verbs.change.recovery.kit.run import run_kit
from kafka_segments.verbs.change.recovery.kit.tasks import SparkReader
from kafka_segments.verbs.change.recovery.kit_manifest import KitState
from support.verbs.recovery_kits import NOW_MS, crashed_log, flip, kit_options, made_kit

CASE = "v2-txn-interleaved-multi-segment"


def _files(kit: Path) -> dict[str, bytes]:
    return {str(p.relative_to(kit)): p.read_bytes() for p in kit.rglob("*") if p.is_file()}


@pytest.fixture
def log_dir(synthetic: Path, tmp_path: Path) -> Path:
    """A log directory with three crashed logs; one has a torn tail, one damage in the middle."""
    for topic, torn in (("t", b""), ("u", bytes(100)), ("w", b"torn")):
        segments = tmp_path / "segments" / f"{topic}-0"
        shutil.copytree(synthetic / CASE / "t-0", segments)
        crashed_log(tmp_path / "logs", segments, torn=torn)
    flip(min((tmp_path / "logs" / "w-0").glob("*.log")), 200)
    return tmp_path / "logs"


@pytest.mark.slow
def test_spark_and_threads_make_the_same_kit(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    threads = made_kit(log_dir, tmp_path / "threads", has_digests=True)
    work = plan_kit([str(log_dir)], str(tmp_path / "spark"))
    options = kit_options(tmp_path / "spark", has_digests=True)
    on_spark = list(run_kit(options, work=work, read=SparkReader(spark), made_ms=NOW_MS))

    assert {log.log: log for log in on_spark} == threads
    assert {log.state for log in on_spark} == {KitState.READY, KitState.REFUSED}
    assert _files(tmp_path / "spark") == _files(tmp_path / "threads")


def test_the_command_takes_the_engine_that_is_asked_for_and_says_which(
    spark: SparkSession, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, *engine: str) -> Result:
        words = ("kit", "--source", str(log_dir), "--out", str(tmp_path / name))
        now = ("--now-ms", str(NOW_MS))
        return CliRunner().invoke(cli, ["recovery", *words, *now, *engine])

    threads, few = run("threads", "--engine", "threads"), run("few")
    on_spark = run("spark", "--engine", "spark")
    monkeypatch.setattr(
        "kafka_segments.verbs.change.recovery.kit.run.is_quicker_in_threads", lambda *_, **__: False
    )
    many = run("many")

    assert [done.exit_code for done in (threads, few, on_spark, many)] == [1] * 4, on_spark.output
    assert sorted(on_spark.stdout.splitlines()) == sorted(threads.stdout.splitlines())
    assert all("threads of this process" in done.stderr for done in (threads, few))
    assert all("segments are read by Spark" in done.stderr for done in (on_spark, many))
    files = _files(tmp_path / "threads")
    assert all(_files(tmp_path / name) == files for name in ("few", "spark", "many"))
