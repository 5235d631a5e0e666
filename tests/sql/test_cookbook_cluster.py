"""The queries of docs/cookbook-cluster.md give what the page shows.

``REWRITE_COOKBOOK=1`` puts the output of this run into the page.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.find.internals.tier.decide.object_facts import MANIFESTS
from kafka_segments.verbs.find.internals.tier.run import TierOptions, run_tier
from kafka_segments.verbs.find.internals.transactions.report import print_transactions
from kafka_segments.verbs.find.internals.transactions.run import (
    TransactionsOptions,
    run_transactions,
)
from kafka_segments.verbs.find.search.log_tables import LogChoice
from kafka_segments.verbs.tell.sql.report import print_sql
from kafka_segments.verbs.tell.sql.run import SqlOptions, run_sql
from support.house.cookbook import NOW_MS, PAGE, Question, questions
from support.spark.stored_builds import build_few
from support.stores.tiered_objects import OTHER_ID, SEGMENT_ID, put_segment

PAGE = PAGE.with_name("cookbook-cluster.md")
PAGE_TEXT = PAGE.read_text("utf-8")
COMMAND = "$ kafka-segments internals transactions --warehouse wh\n"
SHOWN = re.compile(f"{re.escape(COMMAND)}(.*?)```\n", re.DOTALL)
VIEWS = (
    *("internal_current", "internal_records", "metadata_partitions", "metadata_configs"),
    "remote_segments",
)


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The tables of one broker's disks, and of a tier that nobody announced."""
    folder = tmp_path_factory.mktemp("cookbook")
    warehouse, tier = str(folder / "warehouse"), folder / "tier"
    indexes = str(folder / "indexes")
    build_few(spark, str(cluster / "disks" / "node-1"), warehouse, index_dir=indexes)
    for base, name in ((0, SEGMENT_ID), (500, OTHER_ID)):
        ends = {"base_offset": base, "end_offset": base + 99, "max_timestamp_ms": NOW_MS}
        put_segment(tier, bytes(1000 + base), {}, topic="tiered", segment_id=name, **ends)
    sources = tuple(str(cluster / "disks" / "node-1" / disk) for disk in "ab")
    with ExitStack() as caches:
        run_internals(Warehouse(spark, warehouse), InternalsOptions(Origin(sources)), caches)
        run_tier(
            Warehouse(spark, warehouse), TierOptions((str(tier),), MANIFESTS, NOW_MS, 0), caches
        )
    return warehouse


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> Iterator[None]:
    """Drop the views that the queries of the page leave behind."""
    yield
    for name in VIEWS:
        spark.catalog.dropTempView(name)


def test_the_page_has_five_questions() -> None:
    assert len(questions(PAGE_TEXT)) == PAGE_TEXT.count("```sql") == 5


@pytest.mark.long
@pytest.mark.usefixtures("views")
@pytest.mark.parametrize("question", questions(PAGE_TEXT), ids=lambda asked: asked.title)
def test_a_query_gives_the_output_that_the_page_shows(
    question: Question, spark: SparkSession, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_sql(run_sql(Warehouse(spark, warehouse), SqlOptions(question.query, NOW_MS)), "table")
    answer = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())

    if "REWRITE_COOKBOOK" in os.environ:
        old = f"{question.query}```\n\n```\n{question.output}```\n"
        new = f"{question.query}```\n\n```\n{answer}```\n"
        PAGE.write_text(PAGE.read_text("utf-8").replace(old, new), "utf-8")
        return
    assert answer == question.output


@pytest.mark.long
def test_the_page_shows_the_transaction_that_hangs(
    spark: SparkSession, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with few_rows(spark, of=warehouse), ExitStack() as caches:
        options = TransactionsOptions(LogChoice(), NOW_MS)
        opened = run_transactions(Warehouse(spark, warehouse), options, caches)
        found = print_transactions(opened, "table")
    answer = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    (shown,) = SHOWN.findall(PAGE_TEXT)

    assert found == 1
    assert "forgotten" in answer
    if "REWRITE_COOKBOOK" in os.environ:
        new = PAGE.read_text("utf-8").replace(f"{COMMAND}{shown}", f"{COMMAND}{answer}")
        PAGE.write_text(new, "utf-8")
        return
    assert answer == shown
