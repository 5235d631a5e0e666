"""``kafka_segments.open`` and what it returns; docs/api.md names all of it and its blocks are run.

``REWRITE_API=1`` puts the output of this run into the page.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import kafka_segments
from kafka_segments.api import tables as opening
from kafka_segments.api.internals import OpenInternals
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import KafkaSegmentsError, UsageError
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from support.house.cookbook import NOW_MS
from support.house.doc_blocks import DOCS, PageRun, blocks, rewritten, run_page
from support.logs import group_logs, metadata_logs

PAGE = DOCS / "api.md"
PAGE_TEXT = PAGE.read_text("utf-8")
BLOCKS = blocks(PAGE_TEXT)
NOW = datetime.fromtimestamp(NOW_MS // 1000, UTC)
INTERNALS = [name for name in dir(OpenInternals) if not name.startswith("_")]
PUBLIC = [name for name in dir(kafka_segments.OpenWarehouse) if not name.startswith("_")]
CALLS = [
    (of, name)
    for of, public in ((kafka_segments.OpenWarehouse, PUBLIC), (OpenInternals, INTERNALS))
    for name in public
    if inspect.isfunction(getattr(of, name))
]
METADATA = [
    metadata_logs.feature("metadata.version", 25),
    metadata_logs.topic("orders", 7),
    metadata_logs.partition(7, 0),
    metadata_logs.config("orders", "retention.ms", "1000"),
    metadata_logs.leader(7, 0, 2),
    metadata_logs.config("orders", "retention.ms", "2000"),
]


@pytest.fixture(autouse=True)
def few_if_asked(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a notebook asks small tables is asked as commands do, which is quicker."""
    is_slow = request.node.get_closest_marker("slow") is not None
    if is_slow or "spark" not in request.fixturenames:
        yield
        return
    with few_rows(request.getfixturevalue("spark"), runs_any_query=True):
        yield


@pytest.fixture
def opened(
    spark: SparkSession, cookbook_warehouse: Path
) -> Iterator["kafka_segments.OpenWarehouse"]:
    with kafka_segments.open(cookbook_warehouse, spark) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def internals(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of what a small cluster wrote about itself."""
    folder = tmp_path_factory.mktemp("internals")
    disk = metadata_logs.log_dir(
        folder / "disk", {f"{0:020d}.log": metadata_logs.log_bytes(METADATA)}
    )
    group_logs.write_log(
        disk,
        0,
        (
            0,
            [
                group_logs.batch(0, (group_logs.commit_key("old"), group_logs.commit_value(5))),
                group_logs.batch(1, (group_logs.group_key("new", 3), group_logs.consumer_group(1))),
            ],
        ),
    )
    warehouse = folder / "warehouse"
    with few_rows(spark), ExitStack() as caches:
        options = InternalsOptions(Origin((str(disk),)))
        assert run_internals(Warehouse(spark, str(warehouse)), options, caches).problems == ()
    return warehouse


@pytest.fixture(scope="module")
def page(cookbook_warehouse: Path, internals: Path) -> PageRun:
    """The page's blocks; with one of them all are run that stand before it."""
    return PageRun(_page_text(cookbook_warehouse, internals), cookbook_warehouse)


def _page_text(warehouse: Path, internals: Path) -> str:
    logs = f"{warehouse.parent}/logs/"
    return PAGE_TEXT.replace("LOGS/", logs).replace("/srv/cluster", str(internals))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_page_shows_what_its_blocks_print(
    spark: SparkSession, page: PageRun, number: int
) -> None:
    assert page.printed(number)
    if "REWRITE_API" in os.environ:
        if number == len(BLOCKS) - 1:
            PAGE.write_text(rewritten(PAGE_TEXT, page.all_printed()), "utf-8")
        return
    assert page.printed(number) == BLOCKS[number].output


@pytest.mark.slow
@pytest.mark.long
def test_the_page_shows_what_its_blocks_print_of_many_rows(
    spark: SparkSession, cookbook_warehouse: Path, internals: Path
) -> None:
    printed = run_page(_page_text(cookbook_warehouse, internals), cookbook_warehouse)

    assert printed == [block.output for block in BLOCKS]


def test_the_page_names_every_public_name() -> None:
    rows = [line for line in PAGE_TEXT.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)[(`]", row.split(" | ")[0])}

    assert set(kafka_segments.__all__) <= named
    assert {*PUBLIC, *INTERNALS, "spark", "uri"} <= named


@pytest.mark.parametrize(("of", "name"), CALLS)
def test_the_page_names_every_parameter_where_its_verb_is_and_in_the_table_of_types(
    of: type, name: str
) -> None:
    function = getattr(of, name)
    (row,) = re.findall(rf"^\| `{name}\(.*$", PAGE_TEXT, re.MULTILINE)
    if "as `retention`" in row:
        row += re.findall(r"^\| `retention\(\).*$", PAGE_TEXT, re.MULTILINE)[0]
    described = [line.split(" | ")[0] for line in PAGE_TEXT.splitlines() if line[:3] == "| `"]

    for parameter in list(inspect.signature(function).parameters)[1:]:
        assert re.search(rf"[`(*]{parameter}[`),]", row), parameter
        if name not in ("sql", "table") and parameter != "log":
            assert any(f"{parameter}`" in first for first in described), parameter


def test_tables_are_those_of_the_views(opened: "kafka_segments.OpenWarehouse") -> None:
    present, history = opened.segments, opened.segments_history

    assert opened.tables == sorted(
        ["log_dirs", "logs", "offset_index", "runs", "segments", "time_index", "unrecognized_files"]
    )
    assert (present.count(), history.count()) == (24, 25)
    assert "largest_timestamp" in present.columns
    for name in opened.tables:
        assert getattr(opened, name).columns == opened.table(name).columns
    with pytest.raises(UsageError, match="has no table retention_decisions; it has log_dirs, logs"):
        opened.table("retention_decisions")
    assert repr(opened) == f"<kafka_segments: {opened.uri}>"


def test_queries_take_values_of_python(opened: "kafka_segments.OpenWarehouse") -> None:
    asked = opened.sql("SELECT now_ms AS n, count(*) AS c FROM segments", now=NOW)

    assert [tuple(row) for row in asked.collect()] == [(NOW_MS, 24)]


@pytest.mark.slow
def test_what_a_cluster_wrote_is_told_as_of_a_moment_or_an_offset(
    spark: SparkSession, internals: Path
) -> None:
    with kafka_segments.open(internals, spark) as opened:
        cluster = opened.internals
        start = datetime.fromtimestamp(metadata_logs.START_MS / 1000, UTC)

        assert repr(cluster) == f"<kafka_segments: internals of {internals}>"
        assert cluster.records.count() == 8
        assert [row["topic"] for row in cluster.topics.collect()] == ["orders"]
        assert cluster.partitions.count() == 2
        assert cluster.brokers.count() == 0
        assert cluster.features.first()["level"] == 25
        at = {row["name"] for row in cluster.state(at=start + timedelta(seconds=2)).collect()}
        assert at == {"metadata.version", "orders", "orders-0"}
        later = cluster.changed(since=start + timedelta(seconds=4))
        assert sorted(row["offset"] for row in later.collect()) == [4, 5]
        (group,) = cluster.groups(groups="new").where("group_id IS NOT NULL").collect()
        assert (group["group_type"], group["load"]) == ("consumer", "loads")
        with pytest.raises(UsageError, match="state takes at or offset, not both"):
            cluster.state(at=start, offset=3)
        with pytest.raises(UsageError, match="has no records of __transaction_state"):
            cluster.transactions()


@pytest.mark.slow
def test_decisions_are_kept_where_that_is_asked_for(
    spark: SparkSession, cookbook_warehouse: Path, tmp_path: Path
) -> None:
    shutil.copytree(cookbook_warehouse, tmp_path / "warehouse")
    opened = kafka_segments.open(str(tmp_path / "warehouse"))  # the running session

    opened.retention(now=NOW, save=True)

    assert opened.spark is spark
    assert opened.table("retention_decisions").count() == 24


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda opened: opened.retention(settings={"no_such": 1}), "unknown setting no_such"),
        (lambda opened: opened.retention(now=datetime(2026, 1, 1)), "has no zone"),
        (lambda opened: opened.retention(kafka_version="x"), "a release such as 4.3"),
        (lambda opened: opened.retention(conf="/nowhere"), "No such file"),
        (lambda opened: opened.retention(topics="txn", save=True), "leave topics out"),
        (lambda opened: opened.retention(topics=["tnx"]), "no segments of topic tnx"),
        (lambda opened: opened.retention_what_if({}), "what_if needs a key and a value"),
        (lambda opened: opened.explain("orders"), "topic-partition expected, such as orders-0"),
        (lambda opened: opened.roll(rule="x"), "rule x: one of first-batch"),
        (lambda opened: opened.search(), "search needs a time"),
        (
            lambda opened: opened.search(
                0, isolation_level="read_committed", high_watermark="checkpoint"
            ),
            "takes high_watermark end alone",
        ),
        (
            lambda opened: opened.search(0, isolation_level="committed"),
            "isolation_level is 'committed': read_uncommitted or read_committed expected",
        ),
        (lambda opened: opened.lag(), "has no segments of __consumer_offsets"),
        (lambda opened: opened.explain_lag("g", commits=0), "commits is 0: 1 or more expected"),
        (lambda opened: opened.explain_lag("g"), "segments of __consumer_offsets: give"),
        (lambda opened: opened.sql("DROP VIEW segments"), "is no query"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_call(
    opened: "kafka_segments.OpenWarehouse", call: Any, says: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        call(opened)


def test_a_warehouse_that_is_not_there_starts_no_session(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no tables: run `kafka-segments build`"):
        kafka_segments.open(tmp_path)
    with pytest.raises(KafkaSegmentsError, match="is not there"):
        kafka_segments.open(tmp_path / "nowhere")


def test_a_session_without_delta_is_refused(
    cookbook_warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = AnalysisException("Failed to find the data source: delta")
    monkeypatch.setattr(refused, "getCondition", lambda: "DATA_SOURCE_NOT_FOUND")

    def view_of(*_: object) -> None:
        raise refused

    monkeypatch.setattr(opening, "view_of", view_of)

    with pytest.raises(UsageError, match="has no Delta: stop it, and `open` starts one"):
        kafka_segments.open(cookbook_warehouse, spark)


def test_settings_of_the_session_that_stand_against_it_are_named(
    cookbook_warehouse: Path, spark: SparkSession
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        kafka_segments.open(cookbook_warehouse, spark).close()
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        with pytest.warns(UserWarning, match="spark.sql.timestampType is TIMESTAMP_NTZ") as told:
            kafka_segments.open(cookbook_warehouse, spark).close()
    finally:
        spark.conf.set("spark.sql.timestampType", "TIMESTAMP_LTZ")

    assert told[0].filename == __file__


def test_a_session_of_its_own_ends_when_it_is_closed(
    cookbook_warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    @contextmanager
    def session(name: str, *, root: Path, is_long: bool) -> Iterator[SparkSession]:
        events.append(f"{name} {is_long}")
        yield spark
        events.append("ended")

    monkeypatch.setattr(opening, "spark_session", session)

    with kafka_segments.open(cookbook_warehouse) as opened:
        assert opened.spark is spark
        assert events == ["kafka_segments True"]
    opened.close()

    assert events == ["kafka_segments True", "ended"]


def test_the_package_imports_nothing_heavy_before_it_is_asked() -> None:
    code = (
        "import sys, kafka_segments as k; k.UsageError; k.__version__;"
        " print(sorted({'pyspark', 'pandas', 'numba', 'click', 'pyarrow'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_name_that_is_none_is_no_attribute() -> None:
    assert {"open", "register", "OpenWarehouse"} <= set(dir(kafka_segments))
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        kafka_segments.no_such  # noqa: B018
