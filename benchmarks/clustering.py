"""Compare ways to cluster the entries of offset indexes: files and seconds that lookups take.

Run: python benchmarks/clustering.py [entries, default 10000000]
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.spark.session import spark_session

ROOT = Path(__file__).resolve().parents[1]
ENTRIES_A_SEGMENT, SEGMENTS_A_LOG, PARTITIONS = 100, 50, 20
COMMITS, ROUNDS = 10, 5
FILE_BYTES = 4 * 1024 * 1024
LAYOUTS = (
    (),
    ("topic",),
    ("topic", "partition"),
    ("topic", "partition", "base_offset"),
    ("topic", "partition", "base_offset", "offset"),
    ("base_offset",),
)
LOOKUPS = {
    "a segment": "topic = 'topic-3' AND partition = 7 AND base_offset = 240000",
    "a log": "topic = 'topic-3' AND partition = 7",
    "a topic": "topic = 'topic-3'",
    "an offset in a log": "topic = 'topic-3' AND partition = 7 AND offset = 241700",
}


def entries(spark: SparkSession, commit: int, count: int) -> DataFrame:
    """Make the entries of every tenth segment: commits interleave, as runs of build do."""
    segment = F.floor(F.col("id") / ENTRIES_A_SEGMENT) * COMMITS + commit
    log = F.floor(segment / SEGMENTS_A_LOG)
    base = (segment % SEGMENTS_A_LOG) * 10_000
    entry = F.col("id") % ENTRIES_A_SEGMENT
    return spark.range(count // COMMITS).select(
        F.lit("bench").alias("cluster"),
        F.lit(1).alias("broker_id"),
        F.lit("/data").alias("log_dir"),
        F.concat(F.lit("topic-"), F.floor(log / PARTITIONS)).alias("topic"),
        (log % PARTITIONS).cast("int").alias("partition"),
        base.alias("base_offset"),
        (base + entry * 100).alias("offset"),
        (entry * 4_200).alias("position"),
    )


def look_up(spark: SparkSession, table: str, condition: str) -> tuple[int, float]:
    """Give how many files a lookup opens, and the seconds of its quickest round."""
    seconds, files = [], 0
    for _ in range(ROUNDS):
        rows = spark.read.format("delta").load(table).where(condition)
        started = time.perf_counter()
        rows.collect()
        seconds.append(time.perf_counter() - started)
        leaves = rows._jdf.queryExecution().executedPlan().collectLeaves()
        files = leaves.apply(0).metrics().apply("numFiles").value()
    return files, min(seconds)


def main() -> None:
    """Print a row a layout: seconds to write and to optimize, files and ms of each lookup."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    folder = tempfile.mkdtemp(prefix="clustering-")
    with spark_session("clustering", root=ROOT) as spark:
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(FILE_BYTES))
        print(f"| clustered by | write s | OPTIMIZE s | {' | '.join(LOOKUPS)} |")
        print("|---|---|---|" + "---|" * len(LOOKUPS))
        for number, columns in enumerate(LAYOUTS):
            table = f"{folder}/{number}"
            builder = DeltaTable.create(spark).location(table)
            builder = builder.addColumns(entries(spark, 0, count).schema)
            (builder.clusterBy(*columns) if columns else builder).execute()
            started = time.perf_counter()
            for commit in range(COMMITS):
                entries(spark, commit, count).write.format("delta").mode("append").save(table)
            written = time.perf_counter()
            spark.sql(f"OPTIMIZE delta.`{table}`")
            optimized = time.perf_counter()
            found = [look_up(spark, table, condition) for condition in LOOKUPS.values()]
            cells = [f"{files} files, {seconds * 1000:.0f} ms" for files, seconds in found]
            spent = f"{written - started:.1f} | {optimized - written:.1f}"
            name = ", ".join(columns) or "nothing"
            print(f"| {name} | {spent} | {' | '.join(cells)} |", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
