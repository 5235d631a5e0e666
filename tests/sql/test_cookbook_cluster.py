"""The queries of docs/cookbook-cluster.md give what the page shows.

``REWRITE_COOKBOOK=1`` puts the output of this run into the page.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cookbook import NOW_MS, PAGE, Question, questions
from kafka_segments.internals.files import Origin
from kafka_segments.internals.run import InternalsOptions, run_internals
from kafka_segments.internals.run_tier import TierOptions, run_tier
from kafka_segments.internals.tasks_tier import MANIFESTS
from kafka_segments.sql.report import print_sql
from kafka_segments.sql.run import run_query
from kafka_segments.tables.views import register_views
from tiered_objects import OTHER_ID, SEGMENT_ID, put_segment

PAGE = PAGE.with_name("cookbook-cluster.md")
PAGE_TEXT = PAGE.read_text("utf-8")
VIEWS = ("internal_records", "metadata_partitions", "metadata_configs", "remote_segments")


@pytest.fixture(scope="module")
def views(
    spark: SparkSession, cluster: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The tables of one broker's disks, and of a tier that nobody announced."""
    folder = tmp_path_factory.mktemp("cookbook")
    warehouse, tier = str(folder / "warehouse"), folder / "tier"
    for base, name in ((0, SEGMENT_ID), (500, OTHER_ID)):
        ends = {"base_offset": base, "end_offset": base + 99, "max_timestamp_ms": NOW_MS}
        put_segment(tier, bytes(1000 + base), {}, topic="tiered", segment_id=name, **ends)
    sources = tuple(str(cluster / "disks" / "node-1" / disk) for disk in "ab")
    with ExitStack() as caches:
        run_internals(spark, InternalsOptions(warehouse, Origin(sources)), caches)
        run_tier(spark, TierOptions(warehouse, (str(tier),), MANIFESTS, NOW_MS, 0), caches)
    register_views(spark, warehouse, only=VIEWS)
    yield
    for name in VIEWS:
        spark.catalog.dropTempView(name)


def test_the_page_has_five_questions() -> None:
    assert len(questions(PAGE_TEXT)) == PAGE_TEXT.count("```sql") == 5


@pytest.mark.slow
@pytest.mark.usefixtures("views")
@pytest.mark.parametrize("question", questions(PAGE_TEXT), ids=lambda asked: asked.title)
def test_a_query_gives_the_output_that_the_page_shows(
    question: Question, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    print_sql(run_query(spark, question.query, now_ms=NOW_MS), "table")
    answer = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())

    if "REWRITE_COOKBOOK" in os.environ:
        old = f"{question.query}```\n\n```\n{question.output}```\n"
        new = f"{question.query}```\n\n```\n{answer}```\n"
        PAGE.write_text(PAGE.read_text("utf-8").replace(old, new), "utf-8")
        return
    assert answer == question.output
