"""Ways to cluster the entries of offset indexes: files and seconds that lookups take."""

import tempfile
import time

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sections import ROOT, Section

from kafka_segments.spark.session import spark_session

ENTRIES_A_SEGMENT, SEGMENTS_A_LOG, PARTITIONS = 100, 50, 20
COMMITS, ROUNDS = 10, 5
FILE_BYTES = 1024 * 1024
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
        (base + entry * 100 + F.pmod(F.xxhash64("id"), F.lit(100))).alias("offset"),
        (entry * 16_384 + F.pmod(F.xxhash64("id"), F.lit(12_000))).alias("position"),
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


def bench_clustering(*, quick: bool) -> Section:
    """Write, optimize and ask the same entries in each layout."""
    count = 100_000 if quick else 10_000_000
    section = Section("How entries are clustered")
    section.lines += [
        f"{count:,} entries of offset indexes, {ENTRIES_A_SEGMENT} a segment, {SEGMENTS_A_LOG}"
        f" segments a log, {PARTITIONS} logs a topic, in {COMMITS} interleaved commits, then"
        f" OPTIMIZE with files of {FILE_BYTES >> 20} MiB (a large table's files scaled down); files"
        " opened and the quickest of five rounds of each lookup.",
        "",
    ]
    section.table("clustered by", "write s", "OPTIMIZE s", "files", *LOOKUPS)
    with tempfile.TemporaryDirectory() as folder, spark_session("bench", root=ROOT) as spark:
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(FILE_BYTES))
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
            files = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first()["numFiles"]
            found = [look_up(spark, table, condition) for condition in LOOKUPS.values()]
            section.row(
                ", ".join(columns) or "nothing",
                f"{written - started:.1f}",
                f"{optimized - written:.1f}",
                str(files),
                *(f"{opened} files, {seconds * 1000:.0f} ms" for opened, seconds in found),
            )
    return section
