"""Build a log directory several times in one process; prints its figures as one JSON line."""

import argparse
import json
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from kafka_segments.verbs.scan.summary import BuildSummary
from segments import write_segment

ROOT = Path(__file__).resolve().parents[1]


def build(
    spark: SparkSession, source: Path, target: Path, *, is_first_look: bool = False
) -> BuildSummary:
    """Run one build as the command does: with index files and tables, or by first looks alone."""
    options = BuildOptions(
        (str(source),),
        RecoveryOptions(),
        time.time_ns() // 1_000_000,
        index_dir=None if is_first_look else str(target / "indexes"),
        is_first_look=is_first_look,
    )
    with few_rows(spark):
        return run_build(Warehouse(spark, str(target / "warehouse")), options)


def worker_peak_mib(spark: SparkSession) -> float:
    """Ask the Python workers for their greatest resident size."""

    def peak(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        yield pa.RecordBatch.from_pydict({"kib": [kib]})

    asked = spark.range(0, 100, 1, 4).mapInArrow(peak, "kib long").collect()
    return max(row["kib"] for row in asked) / 1024


def jvm_peak_mib(spark: SparkSession) -> float:
    """Read the driver JVM's greatest resident size."""
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Run the builds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--look", action="store_true", help="by first looks")
    parser.add_argument("--cores", default="*")
    given = parser.parse_args()
    shutil.rmtree(given.target, ignore_errors=True)
    figures: dict[str, float] = {}
    started = time.perf_counter()
    with spark_session("bench", root=ROOT, master=f"local[{given.cores}]") as spark:
        figures["session"] = time.perf_counter() - started
        target, looks = given.target / "first", given.look
        first = build(spark, given.source, target, is_first_look=looks)
        figures |= {"first": first.seconds, "bytes": first.bytes_scanned}
        figures["looked_at"] = first.segments_looked_at
        figures["unchanged"] = min(
            build(spark, given.source, target, is_first_look=looks).seconds for _ in range(2)
        )
        if not given.once:
            warm = [build(spark, given.source, given.target / f"warm-{n}") for n in range(3)]
            figures["build"] = min(run.seconds for run in warm)
            figures["scan"] = min(
                run.seconds_by_step["list"] + run.seconds_by_step["read"] for run in warm
            )
            figures["tables"] = min(run.seconds_by_step["tables"] for run in warm)
            tiny = given.target / "tiny" / "t-0" / f"{0:020d}.log"
            write_segment(tiny, batch_bytes=100, size_bytes=100)
            figures["fixed"] = min(
                build(spark, given.target / "tiny", given.target / f"tiny-{n}").seconds
                for n in range(2)
            )
        figures["tasks"] = 4 * spark.sparkContext.defaultParallelism
        figures["worker_mib"] = worker_peak_mib(spark)
        figures["driver_jvm_mib"] = jvm_peak_mib(spark)
        figures["driver_python_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shutil.rmtree(given.target)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
