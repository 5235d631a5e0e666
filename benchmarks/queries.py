"""The cookbook's ten queries, before and after OPTIMIZE."""

import tempfile

from decisions import NOW_MS, segments
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sections import ROOT, Section, best

from kafka_segments.engine.spark.session import spark_session
from kafka_segments.engine.tables.catalog import RUNS, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.tell.sql.run import SqlOptions, run_sql
from support.house.cookbook import PAGE, questions

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
            for field in SEGMENTS.schema
        )
    )
    for table in (SEGMENTS, RUNS):
        warehouse.create(table)
    for commit in range(COMMITS):
        of_commit = F.pmod(F.xxhash64("topic", "partition", "base_offset"), F.lit(COMMITS))
        warehouse.append(SEGMENTS, whole.where(of_commit == commit))


def bench_queries(*, quick: bool) -> Section:
    """Ask the queries of the page, their rows collected as the command does."""
    count = 50_000 if quick else 5_000_000
    section = Section("The cookbook's queries")
    section.lines += [
        f"{count:,} synthetic segments, {SEGMENTS_A_LOG} a log, written in {COMMITS} commits;"
        f" `local[*]`, default settings of the command; the quickest of {ROUNDS} rounds in one"
        " session.",
        "",
    ]
    section.table("question", "s", "s after OPTIMIZE")
    asked = questions(PAGE.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, spark_session("bench", root=ROOT) as spark:
        warehouse = Warehouse(spark, f"{folder}/warehouse")
        fill(spark, warehouse, count)

        def seconds_of(query: str) -> float:
            options = SqlOptions(query, NOW_MS)
            return best(lambda: run_sql(warehouse, options).collect(), ROUNDS)

        before = [seconds_of(one.query) for one in asked]
        DeltaTable.forPath(spark, warehouse.uri(SEGMENTS)).optimize().executeCompaction()
        after = [seconds_of(one.query) for one in asked]
    for question, first, second in zip(asked, before, after, strict=True):
        section.row(question.title, f"{first:.2f}", f"{second:.2f}")
    return section
