"""Ways to cluster the entries of offset indexes: files and seconds that lookups take."""

import tempfile
import time
from collections.abc import Mapping

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sections import ROOT, Section

from kafka_segments.engine.spark.session import spark_session

ENTRIES_A_SEGMENT, PARTITIONS = 100, 20
SHORT_LOG, LONG_LOG = 50, 5_000  # segments
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
    "a segment": "topic = '{topic}' AND partition = 7 AND base_offset = 240000",
    "a log": "topic = '{topic}' AND partition = 7",
    "a topic": "topic = '{topic}'",
    "an offset in a log": "topic = '{topic}' AND partition = 7 AND offset = 241700",
}


def entries(spark: SparkSession, commit: int, count: int, segments_a_log: int) -> DataFrame:
    """Make the entries of every tenth segment: commits interleave, as runs of build do."""
    segment = F.floor(F.col("id") / ENTRIES_A_SEGMENT) * COMMITS + commit
    log = F.floor(segment / segments_a_log)
    base = (segment % segments_a_log) * 10_000
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
    """Write, optimize and ask the same entries in each layout: many logs share a file."""
    count = 100_000 if quick else 10_000_000
    section = Section("How entries are clustered")
    lookups = {name: text.format(topic="topic-3") for name, text in LOOKUPS.items()}
    _compare(section, LAYOUTS, count, segments_a_log=SHORT_LOG, lookups=lookups)
    return section


def bench_long_logs(*, quick: bool) -> Section:
    """Do the same where a log takes many files."""
    section = Section("How entries of long logs are clustered")
    count = PARTITIONS * LONG_LOG * (1 if quick else ENTRIES_A_SEGMENT)
    lookups = {name: text.format(topic="topic-0") for name, text in LOOKUPS.items()}
    del lookups["a topic"]  # all that there is
    _compare(section, LAYOUTS[2:-1], count, segments_a_log=LONG_LOG, lookups=lookups)
    return section


def _compare(
    section: Section,
    layouts: tuple[tuple[str, ...], ...],
    count: int,
    *,
    segments_a_log: int,
    lookups: Mapping[str, str],
) -> None:
    section.lines += [
        f"{count:,} entries of offset indexes, {ENTRIES_A_SEGMENT} a segment, {segments_a_log:,}"
        f" segments a log, {PARTITIONS} logs a topic, in {COMMITS} interleaved commits, then"
        f" OPTIMIZE with files of {FILE_BYTES >> 20} MiB (a large table's files scaled down); files"
        " opened and the quickest of five rounds of each lookup.",
        "",
    ]
    section.table("clustered by", "write s", "OPTIMIZE s", "files", *lookups)
    with tempfile.TemporaryDirectory() as folder, spark_session("bench", root=ROOT) as spark:
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(FILE_BYTES))
        for number, columns in enumerate(layouts):
            table = f"{folder}/{number}"
            builder = DeltaTable.create(spark).location(table)
            builder = builder.addColumns(entries(spark, 0, count, segments_a_log).schema)
            (builder.clusterBy(*columns) if columns else builder).execute()
            started = time.perf_counter()
            for commit in range(COMMITS):
                rows = entries(spark, commit, count, segments_a_log)
                rows.write.format("delta").mode("append").save(table)
            written = time.perf_counter()
            spark.sql(f"OPTIMIZE delta.`{table}`")
            optimized = time.perf_counter()
            files = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").first()["numFiles"]
            found = [look_up(spark, table, condition) for condition in lookups.values()]
            section.row(
                ", ".join(columns) or "nothing",
                f"{written - started:.1f}",
                f"{optimized - written:.1f}",
                str(files),
                *(f"{opened} files, {seconds * 1000:.0f} ms" for opened, seconds in found),
            )
