"""Batches as rows of the data source, beside kafka-dump-log's lines."""

import subprocess
from pathlib import Path

from pyspark.sql import SparkSession
from sections import BATCHES, GB, ROOT, Section, best, log_directory

from kafka_segments.engine.rows.datasource import register
from kafka_segments.engine.spark.session import spark_session
from support.kafka.kafka_referee import KAFKA_JARS, QUIET


def bench_dump(*, quick: bool) -> Section:
    """Read the headers of a segment's batches with both."""
    size = (16 << 20) if quick else (256 << 20)
    section = Section("Batches as rows, against kafka-dump-log")
    section.lines += [
        f"One segment of {size / GB:.2f} GB in the page cache. kafka-dump-log prints a line a"
        " batch, thrown away, the start of its JVM included; the data source gives a row of header"
        " fields a batch, thrown away too, the quickest of five reads in one session on one core.",
        "",
    ]
    section.table("batches", "kafka-dump-log s", "data source s", "ratio", "rows a second")
    with spark_session("bench", root=ROOT, master="local[1]") as spark:
        register(spark)
        for name, batch_bytes in BATCHES.items():
            with log_directory(batch_bytes=batch_bytes, files=1, each=size) as (log,):
                kafka = best(lambda log=log: _dump(log), 2)
                ours = best(lambda log=log: _read(spark, log))
            section.row(
                name,
                f"{kafka:.1f}",
                f"{ours:.2f}",
                f"**{kafka / ours:.1f}x**",
                f"{size // batch_bytes / ours:,.0f}",
            )
    return section


def _dump(log: Path) -> None:
    tool = ["java", *QUIET, "-cp", f"{KAFKA_JARS}/*", "org.apache.kafka.tools.DumpLogSegments"]
    subprocess.run([*tool, "--files", str(log)], stdout=subprocess.DEVNULL, check=True)


def _read(spark: SparkSession, log: Path) -> None:
    rows = spark.read.format("kafka_segments").load(str(log.parent))
    rows.write.format("noop").mode("overwrite").save()
