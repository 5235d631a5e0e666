"""Measure the cookbook's ten queries, before and after OPTIMIZE: a section of docs/benchmarks.md.

Run alone it prints the section; ``--quick`` uses few rows: to see that it runs.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.spark.queries import run_query
from kafka_segments.spark.schemas import schema
from kafka_segments.spark.session import spark_session
from kafka_segments.spark.tables import RUNS, SEGMENTS, Warehouse
from kafka_segments.spark.views import register_views

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from decisions import NOW_MS, segments  # noqa: E402

from cookbook import PAGE, questions  # noqa: E402

SEGMENTS_A_LOG = 200
COMMITS = 10
ROUNDS = 3


def fill(spark: SparkSession, warehouse: Warehouse, count: int) -> None:
    """Write synthetic segments in several commits, and one run."""
    given = segments(spark, count, a_log=SEGMENTS_A_LOG).withColumns(
        {
            "path": F.concat("topic", F.lit("-"), "partition", F.lit("/"), "base_offset"),
            "valid_bytes": F.col("size_bytes"),
            "batch_count": F.lit(1000),
            "record_count": F.lit(1000),
            "index_entries": F.lit(1000),
            "time_index_entries": F.lit(1000),
            "index_format": F.lit("kafka"),
            "scanned_at": F.timestamp_millis(F.lit(NOW_MS)),
            "run_id": F.lit("bench"),
        }
    )
    whole = given.select(
        *(
            (F.col(field.name) if field.name in given.columns else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in schema("segments.v1")
        )
    )
    for table in (SEGMENTS, RUNS):
        warehouse.create(table)
    for commit in range(COMMITS):
        of_commit = F.pmod(F.xxhash64("topic", "partition", "base_offset"), F.lit(COMMITS))
        warehouse.append(SEGMENTS, whole.where(of_commit == commit))


def seconds(spark: SparkSession, query: str) -> float:
    """Give the seconds of a query's quickest round, its rows collected as the command does."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run_query(spark, query, now_ms=NOW_MS).collect()
        rounds.append(time.perf_counter() - started)
    return min(rounds)


def bench_queries(*, count: int) -> list[str]:
    """Time the queries; gives the lines of the report."""
    asked = questions(PAGE.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, spark_session("bench", root=ROOT) as spark:
        warehouse = Warehouse(spark, f"{folder}/warehouse")
        fill(spark, warehouse, count)
        register_views(spark, warehouse.root)
        before = [seconds(spark, question.query) for question in asked]
        DeltaTable.forPath(spark, warehouse.uri(SEGMENTS)).optimize().executeCompaction()
        register_views(spark, warehouse.root)
        after = [seconds(spark, question.query) for question in asked]
    report = [
        "## The cookbook's queries",
        "",
        f"{count:,} synthetic segments, {SEGMENTS_A_LOG} a log, written in {COMMITS} commits;"
        f" `local[*]`, default settings of the command; the quickest of {ROUNDS} rounds in one"
        " session.",
        "",
        "| question | s | s after OPTIMIZE |",
        "|---|---|---|",
    ]
    for question, first, second in zip(asked, before, after, strict=True):
        report.append(f"| {question.title} | {first:.2f} | {second:.2f} |")
    return [*report, ""]


def main() -> None:
    """Print the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    print("\n".join(bench_queries(count=100_000 if parser.parse_args().quick else 5_000_000)))


if __name__ == "__main__":
    main()
