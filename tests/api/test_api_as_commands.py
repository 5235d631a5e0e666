"""What the API returns and what the command prints for the same question: the same rows."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import kafka_segments
from kafka_segments.console.output import print_rows
from kafka_segments.engine.choose import few_rows
from support.house.cookbook import NOW_MS
from support.spark.connect_client import run_verb

NOW = datetime.fromtimestamp(NOW_MS // 1000, UTC)
OF_THE_RUN = {"run_id", "decided_at"}
KEPT = ("--set", "retention.ms=2592000000", "--set", "remote_storage_enable=false")
SETTINGS: dict[str, Any] = {"retention.ms": 2_592_000_000, "remote_storage_enable": False}
Call = Callable[["kafka_segments.OpenWarehouse"], DataFrame]


@pytest.fixture(autouse=True)
def few(spark: SparkSession) -> Iterator[None]:
    """What a notebook asks small tables is asked as commands do, which is quicker."""
    with few_rows(spark, runs_any_query=True):
        yield


@pytest.fixture(scope="module")
def cluster_warehouse(
    spark: SparkSession, cluster: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tables of a broker of a cluster that lived, with what its internal topics say."""
    folder = tmp_path_factory.mktemp("cluster")
    given = ("--source", str(cluster / "disks" / "node-1"), "--warehouse", str(folder / "tables"))
    for words in (["build", *given, "--index-dir", str(folder / "i")], ["internals", *given]):
        done = run_verb([*words, "--quiet"])
        assert done.status in (0, 1), done.err
    return folder / "tables"


def _printed(command: str, warehouse: Path, *options: object) -> list[dict[str, Any]]:
    """Return the rows that a command prints."""
    words = [*command.split(), "--warehouse", str(warehouse), *map(str, options)]
    done = run_verb([*words, "--output", "json", "--quiet"])
    assert done.status in (0, 1), done.err
    return _rows(done.out)


def _returned(warehouse: Path, spark: SparkSession, call: Call) -> list[dict[str, Any]]:
    """Return the rows of a call of the API, as a command would print them."""
    out = io.StringIO()
    with kafka_segments.open(warehouse, spark) as opened, contextlib.redirect_stdout(out):
        print_rows(call(opened), "json")
    return _rows(out.getvalue())


def _rows(printed: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in printed.splitlines()]
    kept = [{name: row[name] for name in row if name not in OF_THE_RUN} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "command", "options"),
    [
        (
            lambda opened: opened.retention(now=NOW, settings=SETTINGS, kafka_version="3.9"),
            *("retention", (*KEPT, "--kafka-version", "3.9", "--dry-run")),
        ),
        pytest.param(
            lambda opened: opened.retention(now=NOW, settings=SETTINGS, topics="txn"),
            *("retention --topic txn", KEPT),
            marks=pytest.mark.long,
        ),
        pytest.param(
            lambda opened: opened.explain("txn-0", now=NOW_MS, settings=SETTINGS),
            *("retention explain txn-0", KEPT),
            marks=pytest.mark.long,
        ),
        pytest.param(
            lambda opened: opened.retention_what_if(
                {"retention_ms": [1, 2], "retention.bytes": [-1, 10**6]}, now=NOW
            ),
            *("retention --what-if retention_ms=1,2 --what-if retention.bytes=-1,1000000", ()),
            marks=pytest.mark.long,
        ),
        (
            lambda opened: opened.roll(
                now=NOW, settings={"segment_ms": 1}, append_timestamp=-1, opened="-2h"
            ),
            "roll --dry-run --set segment_ms=1 --append-timestamp-ms -1",
            ("--opened-ms", NOW_MS - 7_200_000),
        ),
        pytest.param(
            lambda opened: opened.roll_what_if({"segment_bytes": [1 << 20]}),
            *("roll --what-if segment_bytes=1048576", ()),
            marks=pytest.mark.long,
        ),
        (
            lambda opened: opened.search("LATEST", NOW, topics=["txn"], partitions=0, now=NOW),
            "search --topic txn --partition 0",
            ("--time", "LATEST", "--time", NOW.isoformat()),
        ),
        pytest.param(
            lambda opened: (
                opened.latency(topics="lat-none")
                .where("hour_ms IS NOT NULL")
                .drop("unread_segments")
            ),
            *("latency --topic lat-none", ()),
            marks=pytest.mark.long,
        ),
    ],
    ids=[
        "retention",
        "retention of a topic",
        "explain",
        "retention what-if",
        "roll",
        "cuts",
        "search",
        "latency",
    ],
)
def test_what_tables_of_segments_answer(
    spark: SparkSession,
    cookbook_warehouse: Path,
    call: Call,
    command: str,
    options: tuple[object, ...],
) -> None:
    returned = _returned(cookbook_warehouse, spark, call)

    assert returned
    assert returned == _printed(command, cookbook_warehouse, *options, "--now-ms", NOW_MS)


LIVED = datetime(2026, 11, 23, 1, 18, 29, tzinfo=UTC)


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "command"),
    [
        (lambda opened: opened.lag(at=LIVED), "lag --at {at}"),
        (
            lambda opened: opened.lag(at=LIVED, groups="by-hand", topics=["orders"], partitions=0),
            "lag --at {at} --group by-hand --topic orders --partition 0",
        ),
        (
            lambda opened: opened.share_lag(at=LIVED),
            "lag --share-groups --at {at}",
        ),
        (
            lambda opened: opened.explain_lag("by-hand", topics="orders", commits=2),
            "lag --explain by-hand --topic orders --commits 2",
        ),
        (
            lambda opened: opened.internals.transactions(now=LIVED),
            "internals transactions --now-ms {now_ms}",
        ),
        (lambda opened: opened.internals.changed(), "internals changed"),
        (
            lambda opened: opened.internals.groups(kafka_version="3.9", new_coordinator=True),
            "internals groups --kafka-version 3.9 --new-coordinator",
        ),
        (
            lambda opened: opened.internals.state(at=LIVED),
            "internals read --at {at}",
        ),
    ],
    ids=[
        *("lag", "lag of a group", "share lag", "explained lag"),
        *("transactions", "changed", "groups", "state"),
    ],
)
def test_what_tables_of_a_clusters_own_topics_answer(
    spark: SparkSession, cluster_warehouse: Path, call: Call, command: str
) -> None:
    words = command.format(at=LIVED.isoformat(), now_ms=int(LIVED.timestamp() * 1000))

    returned = _returned(cluster_warehouse, spark, call)

    assert returned
    assert returned == _printed(words, cluster_warehouse)
