"""Searches by time beside a broker's ListOffsets.

A broker writes the logs, then the same questions go to it, through an admin client, and to the
tables of a copy.
"""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sections import ROOT, Section

from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.find.search.log_tables import LogChoice, LogTables
from kafka_segments.verbs.find.search.run import search_times
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import Sent, admin_client, create, list_offsets, producer, send

TOPIC, PARTITIONS, RECORD_BYTES = "bench", 40, 400
T0, STEP_MS, JITTER_MS = 1_600_000_000_000, 100, 5_000
SEED = 8


class Size(NamedTuple):
    """How much is written and asked; ``loops``: calls with one question, with one a partition."""

    records: int
    questions: int
    loops: tuple[int, int]


WHOLE, QUICK = Size(15_000, 1_000_000, (1_000, 250)), Size(1_000, 20_000, (100, 10))


def messages(records: int) -> Iterator[Sent]:
    """Give the messages: timestamps rise by 100 ms and are up to 5 s out of order."""
    draw = random.Random(SEED)
    values = [draw.randbytes(RECORD_BYTES) for _ in range(100)]
    for number in range(records):
        for partition in range(PARTITIONS):
            at = T0 + number * STEP_MS + draw.randrange(JITTER_MS)
            yield Sent(TOPIC, partition, at, values[number % 100])


def write(bootstrap: str, size: Size) -> None:
    """Let the broker write the logs, in batches of 16 KB."""
    create(bootstrap, {TOPIC: PARTITIONS})
    sender = producer(bootstrap, linger_ms=20, batch_size=16_384, queue_buffering_max_messages=0)
    send(sender, messages(size.records))


def asked_of(tables: LogTables, size: Size) -> DataFrame:
    """Draw questions, spread over partitions and times."""
    span = size.records * STEP_MS + JITTER_MS
    drawn = tables.logs.sparkSession.range(size.questions).select(
        (F.col("id") % PARTITIONS).cast("int").alias("partition"),
        F.col("id").cast("string").alias("question"),
        (F.lit(T0) + F.floor(F.rand(SEED) * span)).cast("long").alias("target_ms"),
    )
    return drawn.join(F.broadcast(tables.logs), "partition", how="inner")


def ask_tables(spark: SparkSession, warehouse: str, size: Size) -> tuple[float, DataFrame]:
    """Answer all questions at once; gives the seconds and the answers."""
    with ExitStack() as caches:
        tables = LogTables(Warehouse(spark, warehouse), LogChoice(), caches)
        answers = search_times(tables, asked_of(tables, size), kafka_version=(4, 3))
        started = time.perf_counter()
        kept = answers.persist()
        kept.count()
        return time.perf_counter() - started, kept


def ask_broker(bootstrap: str, answers: DataFrame, size: Size) -> tuple[list[float], int]:
    """Ask some of the questions in two loops; gives us a question in each, and differences."""
    columns = ("partition", "target_ms", "kafka_offset", "kafka_timestamp_ms")
    admin = admin_client(bootstrap)
    per_question, differences = [], 0
    for calls, each in zip(size.loops, (1, PARTITIONS), strict=True):
        taken = answers.select(*columns).where(F.expr(f"int(question) < {calls * each}")).collect()
        expected = {(TOPIC, *row[:2]): tuple(row[2:]) for row in taken}
        by_call: dict[int, list[tuple[str, int, int]]] = {}
        seen: dict[int, int] = {}
        for number, (topic, partition, target) in enumerate(expected):
            call = number if each == 1 else seen.get(partition, 0)
            seen[partition] = seen.get(partition, 0) + 1
            by_call.setdefault(call, []).append((topic, partition, target))
        started = time.perf_counter()
        found = {}
        for call in by_call.values():
            asked = {(topic, partition): [target] for topic, partition, target in call}
            found |= list_offsets(admin, asked, is_read_committed=False)
        per_question.append((time.perf_counter() - started) / len(expected) * 1e6)
        differences += sum(found[key] != expected[key] for key in expected)
    return per_question, differences


def bench_search(*, quick: bool) -> Section:
    """Ask the broker and the tables of a copy of its logs."""
    size = QUICK if quick else WHOLE
    with (
        tempfile.TemporaryDirectory() as given,
        spark_session("bench", root=ROOT, is_long=True) as spark,
    ):
        folder = Path(given)
        with KafkaBroker(folder) as broker:
            broker.start_broker()
            write(broker.bootstrap, size)
            copy, warehouse = folder / "copy", str(folder / "warehouse")
            shutil.copytree(broker.log_dir, copy, ignore=shutil.ignore_patterns("__*"))
            run_build(
                Warehouse(spark, warehouse), BuildOptions((str(copy),), RecoveryOptions(), T0)
            )
            ask_tables(spark, warehouse, size._replace(questions=1_000))[1].unpersist()
            seconds, answers = ask_tables(spark, warehouse, size)
            (one, batched), differences = ask_broker(broker.bootstrap, answers, size)
        total = answers.agg(F.sum("bytes_read"), F.count("problem"), F.count("difference")).first()
    return _report(size, seconds, int(total[0]), (one, batched), differences)


def _report(
    size: Size, seconds: float, bytes_read: int, loops: tuple[float, float], differences: int
) -> Section:
    ours = seconds / size.questions * 1e6
    one, batched = loops
    asked = size.loops[0] + size.loops[1] * PARTITIONS
    written = size.records * PARTITIONS * RECORD_BYTES / 1e6
    section = Section("Searches by time", figures={"us a question": ours})
    section.lines += [
        f"{PARTITIONS} partitions of {size.records:,} records, {written:.0f} MB, written by a"
        f" broker; {size.questions:,} questions (partition, timestamp) at once over the tables of a"
        f" copy, `local[*]`, both answers and their comparison kept in memory: {seconds:.1f} s,"
        f" **{ours:.1f} us a question**, {bytes_read / size.questions:,.0f} bytes of log read a"
        " question. The same questions to the broker, on the same machine, through an admin"
        " client's ListOffsets:",
        "",
    ]
    section.table("loop", "us a question", "ratio")
    section.row("one question a call", f"{one:.0f}", f"**{one / ours:.1f}x**")
    each = f"one question for each of {PARTITIONS} partitions a call"
    section.row(each, f"{batched:.0f}", f"**{batched / ours:.1f}x**")
    section.lines += [
        "",
        f"Of {asked:,} answers of the broker's {differences} differ from ours.",
    ]
    return section
