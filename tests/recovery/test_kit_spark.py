"""A kit made on Spark is the kit that threads make."""

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from kafka_segments.recovery.kit_listing import plan_kit
from kafka_segments.recovery.kit_manifest import LogState
from kafka_segments.recovery.kit_run import make_kit
from kafka_segments.recovery.tasks_kit import SparkReader
from recovery_kits import NOW_MS, crashed_log, flip, kit_options, made_kit

CASE = "v2-txn-interleaved-multi-segment"


def _files(kit: Path) -> dict[str, bytes]:
    return {str(p.relative_to(kit)): p.read_bytes() for p in kit.rglob("*") if p.is_file()}


def test_spark_and_threads_make_the_same_kit(
    spark: SparkSession, synthetic: Path, tmp_path: Path
) -> None:
    for topic, torn in (("t", b""), ("u", bytes(100)), ("w", b"torn")):
        segments = tmp_path / "segments" / f"{topic}-0"
        shutil.copytree(synthetic / CASE / "t-0", segments)
        crashed_log(tmp_path / "logs", segments, torn=torn)
    flip(min((tmp_path / "logs" / "w-0").glob("*.log")), 200)

    threads = made_kit(tmp_path / "logs", tmp_path / "threads", has_digests=True)
    work = plan_kit([str(tmp_path / "logs")], str(tmp_path / "spark"))
    options = kit_options(tmp_path / "spark", has_digests=True)
    on_spark = list(make_kit(work, options, SparkReader(spark), made_ms=NOW_MS))

    assert {log.log: log for log in on_spark} == threads
    assert {log.state for log in on_spark} == {LogState.READY, LogState.REFUSED}
    assert _files(tmp_path / "spark") == _files(tmp_path / "threads")
