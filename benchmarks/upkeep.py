"""Validation, compaction and the verbs that decide, over many segment rows."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sections import ROOT, Section

from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.verbs.change.compact.run import CompactOptions, run_compact
from kafka_segments.verbs.tell.validate.run import ValidateOptions, run_validate

NOW_MS = 1_800_000_000_000
SEGMENTS_A_LOG, PARTITIONS, COMMITS = 500, 100, 20
_VERBS = {
    "`retention`, its table written": ["retention"],
    "`retention --what-if`, four settings": [
        *("retention", "--what-if", "retention_ms=86400000,604800000"),
        *("--what-if", "retention_bytes=-1,1000000"),
    ],
    "`retention explain` of a log": ["retention", "explain", "topic-0-7"],
    "`roll`, its table written": ["roll"],
    "`report`": ["report", "--out", "report.html"],
    "`migrate inventory`, its tables written": ["migrate", "inventory"],
}
_FIXED = {
    "cluster": "bench",
    "broker_id": 1,
    "log_dir": "/data",
    "size_bytes": 10_000,
    "valid_bytes": 10_000,
    "truncated_bytes": 0,
    "batch_count": 10,
    "record_count": 100,
    "largest_timestamp_source": "record",
    "index_entries": 2,
    "time_index_entries": 1,
    "index_format": "kafka",
    "fingerprint": "f",
    "run_id": "r",
    "folder_state": "live",
    "was_clean_shutdown": True,
    "has_lock_file": False,
}
_KINDS = {"codecs": "zstd", "timestamp_types": "CreateTime"}


def bench_upkeep(*, quick: bool) -> Section:
    """Make the tables, then time each step, and each verb in a process of its own."""
    count = 100_000 if quick else 5_000_000
    section = Section("Verbs over five million segments")
    section.lines += [
        f"{count:,} synthetic segments in {COMMITS} commits with two offset index entries and one"
        " time index entry each, all sound; `local[*]`, default settings of the commands.",
        "",
    ]
    section.table("step", "s")

    def timed(name: str, step: Callable[[], object]) -> None:
        started = time.monotonic()
        step()
        section.row(name, f"{time.monotonic() - started:.1f}")
        section.figures[name] = time.monotonic() - started

    with tempfile.TemporaryDirectory() as folder:
        with spark_session("upkeep", root=ROOT, is_long=True) as spark:  # as for tables so large
            root = Warehouse(spark, folder)
            for number in range(COMMITS):
                _append(root, spark.range(number, count, COMMITS))
            for table in (tables.RUNS, tables.LOG_DIRS, tables.UNRECOGNIZED_FILES):
                root.create(table)
            options = CompactOptions(NOW_MS, set_aside=f"{folder}/_set_aside")
            timed("one segment's entries, before", lambda: _look_up(root))
            timed(
                "`validate`: every suite, Data Docs",
                lambda: run_validate(root, ValidateOptions(NOW_MS)),
            )
            timed("`compact`: OPTIMIZE and VACUUM", lambda: run_compact(root, options))
            timed("one segment's entries, after", lambda: _look_up(root))
            timed("`compact` again", lambda: run_compact(root, options))
        section.lines += ["", "From the shell's prompt back to it, over the same tables:", ""]
        section.table("verb", "s")
        for name, words in _VERBS.items():
            timed(name, partial(_run, words, folder))
    return section


def _run(words: list[str], folder: str) -> None:
    """Run a verb over the tables in a folder, by a process of its own."""
    given = ["--warehouse", folder, "--now-ms", str(NOW_MS)]
    program = [sys.executable, "-m", "kafka_segments", *words, *given]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-3000:])


def _look_up(root: Warehouse) -> None:
    entries = root.read(tables.OFFSET_INDEX)
    entries.where("topic = 'topic-7' AND base_offset = 4200").collect()


def _append(root: Warehouse, numbers: DataFrame) -> None:
    """Append segments, their entries and, once, the logs that they make."""
    number = F.col("id")
    log = F.floor(number / SEGMENTS_A_LOG)
    base = (number % SEGMENTS_A_LOG) * 100
    moment = F.lit(NOW_MS - 10**9) + base
    segments = numbers.select(
        *(F.lit(value).alias(name) for name, value in _FIXED.items()),
        F.concat(F.lit("topic-"), F.floor(log / PARTITIONS)).alias("topic"),
        (log % PARTITIONS).cast("int").alias("partition"),
        base.alias("base_offset"),
        (base == (SEGMENTS_A_LOG - 1) * 100).alias("is_active"),
        F.array(F.lit(2)).cast("array<int>").alias("magics"),
        *(F.array(F.lit(kind)).alias(name) for name, kind in _KINDS.items()),
        F.concat(F.lit("/data/"), log, F.lit("/"), base).alias("path"),
        (base + 100).alias("next_offset"),
        *(moment.alias(name) for name in ("last_modified_ms", "first_batch_timestamp_ms")),
        *(moment.alias(name) for name in ("min_timestamp_ms", "max_timestamp_ms")),
        moment.alias("largest_timestamp_ms"),
        (base + 99).alias("offset_of_max_timestamp"),
        F.timestamp_millis(F.lit(NOW_MS)).alias("scanned_at"),
    )
    keys = segments.select(*SEGMENT_KEYS, "max_timestamp_ms")
    entries = keys.withColumn("position", F.explode(F.array(F.lit(4_000), F.lit(8_000))))
    _fill(root, tables.SEGMENTS, segments)
    _fill(
        root,
        tables.OFFSET_INDEX,
        entries.withColumn("offset", F.expr("base_offset + position div 100")),
    )
    times = keys.withColumnRenamed("max_timestamp_ms", "timestamp_ms")
    _fill(root, tables.TIME_INDEX, times.withColumn("offset", F.col("base_offset") + 99))
    _fill(root, tables.LOGS, segments.where("base_offset = 0"))


def _fill(root: Warehouse, table: Table, rows: DataFrame) -> None:
    root.create(table)
    columns = [
        (F.col(field.name) if field.name in rows.columns else F.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in table.schema
    ]
    root.append(table, rows.select(*columns))
