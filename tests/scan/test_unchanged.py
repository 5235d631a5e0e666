"""What Arrow leaves out and plain Python plans is what ``plan_scan`` leaves and plans."""

import os
import random
import shutil
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from conftest import SEED
from kafka_segments.engine.choose import has_few_rows
from kafka_segments.engine.derived.configs import with_topic_configs
from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.derived.topic_sizes import SIZES, TopicSizes
from kafka_segments.engine.frames import driver_rows
from kafka_segments.engine.frames.local_rows import arrow_schema, local_rows
from kafka_segments.engine.limits import MOST, Load, Work
from kafka_segments.engine.sources import list as listing
from kafka_segments.engine.sources.broker_identity import with_broker
from kafka_segments.engine.tables import small_tables
from kafka_segments.engine.tables.catalog import (
    LOGS,
    OFFSET_INDEX,
    RUNS,
    SEGMENTS,
    UNRECOGNIZED_FILES,
)
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.storage.stores import store_of
from kafka_segments.kafka.index.segment.recovery_options import INDEX, RecoveryOptions
from kafka_segments.settings import Settings, TopicConfig
from kafka_segments.verbs.scan import planning
from kafka_segments.verbs.scan.decide.plan import SAME, SCAN, gone, plan_scan
from kafka_segments.verbs.scan.decide.unchanged import (
    COMPARED,
    Identity,
    OptionsInWords,
    lies_below,
    of_logs,
    without_unchanged,
)
from kafka_segments.verbs.scan.dry_run import Key, KnownSegment, plan_in_driver
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.summary import BuildSummary
from support.spark.ready_builds import LentBuild
from support.spark.stored_builds import build, build_few, rows_few

OPTIONS = "kafka/4096/full"
OWN_SIZES = TopicSizes(
    TopicConfigs.load(
        Settings(topics={"t": TopicConfig(index_interval_bytes=65536)}),
        metadata=[
            MetadataConfigs(
                "c",
                (
                    ConfigAtOffset("topic", "t-x", "segment.index.bytes", "120", 1, 1, False),
                    ConfigAtOffset("broker", "3", "log.index.interval.bytes", "99", 2, 1, False),
                ),
            )
        ],
    )
)
READ = (*COMPARED, "index_format", "checked", "size_bytes", "last_modified_ms", "damage")
COLUMNS = StructType([field for field in SEGMENTS.schema if field.name in READ])
SOURCES = ("/", "/data", "s3://bucket/a")
METAS: tuple[dict[str, Any] | None, ...] = (
    {"cluster_id": "c", "node_id": 3},
    {"cluster_id": None, "node_id": 0},
    {"cluster_id": "c", "node_id": None},
    None,
)


def _own_words(cluster: str, broker_id: int, topic: str) -> str:
    return f"kafka/{OWN_SIZES.of(cluster, broker_id, topic).text}/full"


def _drawn_segment(rng: random.Random, source: str, log_dir: str, partition: int) -> Listed:
    topic = rng.choice(["t", "t-x", "ü"])
    base_offset = rng.randrange(4)
    return Listed(
        kinds.SEGMENT,
        source,
        rng.choice([f"disk/{topic}-{partition}", f"{topic}-{partition}", ""]),
        name=f"{base_offset:020d}.log",
        log_dir=log_dir,
        topic=topic,
        partition=partition,
        folder_state="live",
        base_offset=base_offset,
        size_bytes=rng.choice([1, 10, 2**40]),
        mtime_ns=rng.choice([7, 7_000_000, -1]),
        is_active=rng.random() < 0.3,
        next_base_offset=rng.choice([None, 9, 10]),
    )


def _drawn_listing(rng: random.Random) -> list[Listed]:
    """Draw what a listing has, one row a key."""
    found: list[Listed] = []
    keys = set()
    for partition in range(60):
        source = rng.choice(SOURCES)
        log_dir = f"{source}/{rng.randrange(5)}"
        one = _drawn_segment(rng, source, log_dir, partition)
        key = (one.log_dir, one.topic, one.partition, one.base_offset)
        if key not in keys:
            keys.add(key)
            found.append(one)
    log_dirs = sorted({one.log_dir for one in found})
    found += [
        Listed(kinds.LOG_DIR, "/", "", log_dir=log_dir, meta=meta)
        for log_dir in log_dirs
        if (meta := rng.choice(METAS)) is not None or rng.random() < 0.5
    ]
    found.append(Listed(kinds.UNLISTED, "/data", "hidden", reason="not permitted"))
    return found


def _known(
    rng: random.Random, one: dict[str, Any], in_words: OptionsInWords, *, needs_next: bool
) -> dict[str, Any]:
    """Give a listed segment as it may be known: as it is now, or with one difference or two."""
    root = "" if one["source"] == "/" else one["source"]
    parts = [one["size_bytes"], one["mtime_ns"], *([one["next_base_offset"]] * needs_next)]
    text = in_words
    if not isinstance(in_words, str):
        text = in_words(one["cluster"], one["broker_id"], one["topic"])
    fingerprint = "/".join([*(str(part) for part in parts if part is not None), str(text)])
    row = {
        **{name: one[name] for name in SEGMENT_KEYS},
        "path": "/".join([root, *filter(None, (one["relative_path"], one["name"]))]),
        "fingerprint": fingerprint,
        "is_active": one["is_active"],
        "index_format": "kafka",
        "vanished_at": None,
        "checked": "full",
        "size_bytes": one["size_bytes"],
        "last_modified_ms": one["mtime_ns"] // 1_000_000,
        "damage": None,
    }
    changes: list[dict[str, Any]] = [
        {"fingerprint": "1/1/other"},
        {"fingerprint": None},
        {"fingerprint": f"{one['size_bytes']}/{one['mtime_ns']}/other", "checked": INDEX},
        {"is_active": not one["is_active"]},
        {"vanished_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"path": "/data/elsewhere.log"},
        {"cluster": "another"},
        {"broker_id": 77},
        {"log_dir": "/gone"},
        {"partition": 4_000},
        {"base_offset": 2**62, "path": "/data/hidden/t-1/x.log"},
    ]
    for change in rng.sample(changes, rng.choice([0, 0, 0, 1, 1, 2])):
        row |= change
    return row


def _decided(
    listed: DataFrame,
    known: DataFrame,
    identity: dict[str, Any],
    options: dict[str, bool],
    in_words: Column | str,
) -> tuple[list[Any], list[Any], int]:
    """Return what is to be done, which keys are gone, and how many segments are the same."""
    named = listed.transform(with_broker(listed, **identity))
    found = named.where(F.col("kind") == kinds.SEGMENT)
    unseen = named.where(F.col("kind").isin(*kinds.UNSEEN))
    if not isinstance(in_words, str):
        found = found.transform(with_topic_configs(listed.sparkSession, OWN_SIZES.configs, SIZES))
    planned = found.transform(plan_scan(known, options=in_words, full=False, **options)).collect()
    gone_keys = known.transform(gone(found, unseen)).collect()
    to_do = [row for row in planned if row["plan"] != SAME]
    return sorted(to_do, key=str), sorted(gone_keys, key=str), len(planned) - len(to_do)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.long) for number in (1, 2))]
)
@pytest.mark.parametrize(
    ("identity", "options", "has_own_sizes"),
    [
        ({"cluster": None, "broker_id": None}, {}, False),
        ({"cluster": None, "broker_id": None}, {}, True),
        ({"cluster": "given", "broker_id": None}, {"needs_next": True}, True),
        ({"cluster": None, "broker_id": 5}, {"is_first_look": True}, False),
        ({"cluster": "c", "broker_id": 5}, {}, True),
    ],
    ids=["as listed", "own sizes", "cluster given", "broker given", "both given"],
)
def test_what_is_left_and_what_is_planned_without_spark_is_decided_as_all_is(
    spark: SparkSession,
    number: int,
    identity: dict[str, Any],
    options: dict[str, bool],
    has_own_sizes: bool,
) -> None:
    in_words: OptionsInWords = _own_words if has_own_sizes else OPTIONS
    column = F.concat_ws("/", F.lit("kafka"), *SIZES, F.lit("full")) if has_own_sizes else OPTIONS
    rng = random.Random(f"{SEED} {number} {identity}")
    needs_next = options.get("needs_next", False)
    rows, asked = _drawn_listing(rng), Identity(**identity)
    listed = _table(rows)
    frame = listing.listed_frame(spark, listed)
    named = frame.transform(with_broker(frame, **identity)).where(F.col("kind") == kinds.SEGMENT)
    known = [
        _known(rng, row.asDict(), in_words, needs_next=needs_next)
        for row in named.collect()
        if rng.random() < 0.9
    ]
    before = pa.Table.from_pylist(_one_a_key(known), arrow_schema(COLUMNS))

    unlike = without_unchanged(
        listed, before, options=in_words, needs_next=needs_next, identity=asked
    )

    all_of_it = _decided(frame, _frame(spark, before), identity, options, column)
    left = _decided(
        listing.listed_frame(spark, unlike.listed),
        _frame(spark, unlike.known),
        identity,
        options,
        column,
    )
    assert left[:2] == all_of_it[:2]
    assert left[2] + unlike.same == all_of_it[2]
    assert len(before) - len(unlike.known) == unlike.same > 10
    assert len(left[0]) > 10
    assert left[1]

    if not options.get("is_first_look"):  # which a dry run leaves to Spark
        planned = plan_in_driver(
            rows,
            _by_key(before),
            options=in_words,
            needs_next=needs_next,
            full=False,
            identity=asked,
        )
        to_scan = [row for row in all_of_it[0] if row["plan"] == SCAN]
        assert sorted(row.log_dir + row.relative_path + row.name for row in planned.to_scan) == (
            sorted(row["log_dir"] + row["relative_path"] + row["name"] for row in to_scan)
        )
        assert len(planned.found) == all_of_it[2] + len(all_of_it[0])
        assert len(planned.gone) == len(all_of_it[1])


def _by_key(known: pa.Table) -> dict[Key, KnownSegment]:
    return {
        tuple(row[key] for key in SEGMENT_KEYS): KnownSegment(
            row["path"], row["fingerprint"], row["vanished_at"] is not None
        )
        for row in known.to_pylist()
    }


def _table(rows_listed: list[Listed]) -> pa.Table:
    schema = arrow_schema(listing.LISTED)
    return pa.Table.from_pylist([row._asdict() for row in rows_listed], schema)


def _one_a_key(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tuple(row[key] for key in SEGMENT_KEYS): row for row in known}.values())


def _frame(spark: SparkSession, known: pa.Table) -> DataFrame:
    values = [tuple(row[name] for name in COLUMNS.fieldNames()) for row in known.to_pylist()]
    return local_rows(spark, values, COLUMNS)


def test_known_rows_below_the_sources() -> None:
    paths = ["/a/b/c.log", "/a", "/ab/c.log", "/a%b/c.log", "s3://x/y", "/z/c.log"]

    below = lies_below(pa.chunked_array([paths]), ["/a", "s3://x/"])

    assert below.to_pylist() == [True, True, False, False, True, False]
    assert lies_below(pa.chunked_array([paths[:4]]), ["/"]).to_pylist() == [True] * 4


def test_the_rows_of_other_logs_are_left_out() -> None:
    listed = _table(
        [
            Listed(kinds.SEGMENT, "/", "t-1", "1", "/a", "t", 1),
            Listed(kinds.SEGMENT, "/", "t-1", "2", "/a", "t", 1),
            Listed(kinds.SEGMENT, "/", "t-2", "3", "/a", "t", 2),
            Listed(kinds.SEGMENT, "/", "u-1", "4", "/a", "u", 1),
            Listed(kinds.SEGMENT, "/", "u-1", "5", "/b", "u", 1),
            Listed(kinds.LOG, "/", "t-2", "6", "/a", "t", 2),
            Listed(kinds.UNLISTED, "/", "x", "7"),
        ]
    )
    changed = [listed.slice(1, 1), listed.slice(4, 1), listed.slice(0, 0)]

    assert of_logs(listed, changed)["name"].to_pylist() == ["1", "2", "5", "6", "7"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("rows_in_driver", [200_000, 1])
def test_where_nothing_has_changed_no_step_works_on_many_rows(
    spark: SparkSession,
    lent_build: LentBuild,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_in_driver: int,
) -> None:
    monkeypatch.setattr(listing, "LISTED_IN_DRIVER", rows_in_driver)
    lent = lent_build.lend(tmp_path / "wh")
    before = Warehouse(spark, str(lent.warehouse)).version(SEGMENTS)

    again = build(spark, str(lent.logs), str(lent.warehouse), index_dir=str(lent.indexes))

    assert has_few_rows(spark)
    assert (again.segments_scanned, again.segments_vanished) == (0, 0)
    assert again.segments_unchanged == again.segments_found == lent.summary.segments_found
    assert Warehouse(spark, str(lent.warehouse)).version(SEGMENTS) == before
    assert len(rows_few(spark, str(lent.warehouse), RUNS)) == 2


def _planner(warehouse: Warehouse, options: BuildOptions) -> planning._Planner:
    return planning._Planner(warehouse, options, F.lit(None), ExitStack())


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "why", ["full", "another column", "many known", "a store", "most have changed"]
)
def test_where_it_cannot_be_told_nothing_is_left_out(
    spark: SparkSession,
    lent_build: LentBuild,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    lent = lent_build.lend(tmp_path / "wh")
    asked = {"recovery": RecoveryOptions(), "now_ms": 1, "index_dir": str(lent.indexes)}
    options = BuildOptions((str(lent.logs),), **asked)  # type: ignore[arg-type]
    monkeypatch.setattr(listing, "LISTED_IN_DRIVER", 1)
    here, warehouse = listing.list_in_driver(options.sources), Warehouse(spark, str(lent.warehouse))
    assert here.left
    assert _planner(warehouse, options)._without_unchanged(here) is not None

    if why == "full":
        options = replace(options, full=True)
    elif why == "another column":
        monkeypatch.setattr(planning, "_READ_OF_KNOWN", ("checked", "of_a_later_version"))
    elif why == "many known":
        monkeypatch.setattr(small_tables, "MOST_UNCHANGED", 1)
    elif why == "a store":
        monkeypatch.setattr(planning, "store_of", lambda _: store_of("s3://bucket/logs"))
    else:
        monkeypatch.setattr(driver_rows, "MOST_UNLIKE", 1)

    assert _planner(warehouse, options)._without_unchanged(here) is None


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.long)], ids=["little", "much"])
def is_little(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what is listed, and read of it, counts as little."""
    counts: bool = request.param
    if not counts:
        monkeypatch.setitem(MOST, Work.BUILD, Load())
    return counts


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_what_has_changed_is_built_as_few_rows_where_the_listing_is_small(
    spark: SparkSession, lent_build: LentBuild, tmp_path: Path, is_little: bool
) -> None:
    lent = lent_build.lend(tmp_path / "wh")
    os.utime(min(lent.logs.rglob("*.log")), ns=(5, 5))

    again = build(spark, str(lent.logs), str(lent.warehouse), index_dir=str(lent.indexes))

    assert again.segments_scanned == 1
    assert has_few_rows(spark) == is_little


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("most_rows", "is_less", "is_few"),
    [
        (1_000, 0, True),
        pytest.param(1_000, 1, False, marks=pytest.mark.long),
        pytest.param(1, 0, False, marks=pytest.mark.long),
    ],
)
def test_the_bytes_that_are_read_anew_decide_not_those_that_are_listed(
    spark: SparkSession,
    lent_build: LentBuild,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_rows: int,
    is_less: int,
    is_few: bool,
) -> None:
    lent = lent_build.lend(tmp_path / "wh")
    changed = min(lent.logs.rglob("*.log"))
    os.utime(changed, ns=(5, 5))
    most = Load(most_rows, changed.stat().st_size - is_less)
    monkeypatch.setitem(MOST, Work.BUILD, most)

    again = build(spark, str(lent.logs), str(lent.warehouse), index_dir=str(lent.indexes))

    assert again.segments_scanned == 1
    assert has_few_rows(spark) == is_few


@pytest.mark.slow
@pytest.mark.usefixtures("is_little")
def test_after_changes_the_tables_are_those_of_a_build_that_leaves_nothing_out(
    spark: SparkSession,
    lent_build: LentBuild,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lent = lent_build.lend(tmp_path / "wh")
    shutil.copytree(lent.warehouse, tmp_path / "other")
    one, *_, last = sorted(lent.logs.rglob("*.log"))
    os.utime(one, ns=(5, 5))
    last.unlink()
    shutil.copytree(one.parent, lent.logs / "new-7")
    (lent.logs / "new-8").symlink_to(one.parent)
    (one.parent / "stray.log").touch()
    asked = {"index_dir": str(lent.indexes)}

    left_out = build_few(spark, str(lent.logs), str(lent.warehouse), **asked)
    monkeypatch.setattr(planning._Planner, "_without_unchanged", lambda *_: None)
    plainly = build_few(spark, str(lent.logs), str(tmp_path / "other"), **asked)

    assert _plain(left_out) == _plain(plainly)
    assert plainly.segments_vanished == 1
    for table in (SEGMENTS, LOGS, OFFSET_INDEX, UNRECOGNIZED_FILES):
        here, there = (
            [{**row, "run_id": None} for row in rows_few(spark, str(warehouse), table)]
            for warehouse in (lent.warehouse, tmp_path / "other")
        )
        assert here == there


def _plain(summary: BuildSummary) -> BuildSummary:
    return replace(summary, run_id="", seconds=0.0, seconds_by_step={})
