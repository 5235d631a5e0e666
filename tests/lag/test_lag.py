"""Lag, from logs and from commits that the group coordinator's own code wrote."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import METADATA_PARTITIONS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.lag.decide.commits import decide_lag
from kafka_segments.verbs.find.lag.run import LagOptions, run_lag
from kafka_segments.verbs.find.lag.run_explain import ExplainOptions, run_explain
from kafka_segments.verbs.find.search.log_tables import LogChoice
from support.kafka.kafka_referee import Referee
from support.logs.strategies import CONTROL, TRANSACTIONAL, v2_batch
from support.spark.filled_tables import fill
from support.spark.stored_builds import build_few
from support.verbs.figures import figures_of

NOW_MS = 10_000
COMMIT_MARKER, ABORT_MARKER = bytes.fromhex("00000001"), bytes.fromhex("00000000")
LOG = (
    v2_batch(10, [(1000, None, b"a"), (1100, None, b"b"), (1200, None, b"c")])
    + v2_batch(13, [(1300, None, b"d"), (1600, None, b"e")], offset_deltas=[0, 3])
    + v2_batch(17, [(1700, None, b"f"), (1800, None, b"g")])
)
IDEMPOTENT = 6  # a producer without transactions: no marker ever comes
COMMITS = [  # group, topic, offset, time of the commit, producer of the transaction
    ("behind", "t", 11, 2000, None),
    ("up to date", "t", 19, 2000, None),
    ("expired", "t", 5, 2000, None),
    ("compacted", "t", 14, 2000, None),
    ("ahead", "t", 25, 2000, None),
    ("twice", "t", 11, 1250, None),
    ("twice", "t", 17, 2000, None),
    ("deleted", "t", 11, 1250, None),
    ("elsewhere", "unknown", 3, 2000, None),
    ("committed", "t", 11, 2000, 7),
    ("aborted", "t", 11, 2000, 8),
    ("open", "t", 11, 2000, 9),
    ("no transaction", "t", 11, 2000, IDEMPOTENT),
]


def _offsets_log(referee: Referee) -> bytes:
    commits = [
        {
            "group": group,
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "metadata": "",
            "commit_timestamp_ms": time,
            "leader_epoch": 0,
            "version": 3,
        }
        for group, topic, offset, time, _ in COMMITS
    ]
    written = referee.write_commits(commits, partitions=1)
    records = [(bytes.fromhex(each["key"]), bytes.fromhex(each["value"])) for each in written]
    batches = [
        {"records": [(commit[3], *record)], "producer": commit[4]}
        for commit, record in zip(COMMITS, records, strict=True)
    ]
    deleted = records[[commit[0] for commit in COMMITS].index("deleted")][0]
    batches.append({"records": [(2100, deleted, None)], "producer": None})
    for producer, key in ((7, COMMIT_MARKER), (8, ABORT_MARKER)):
        batches.append({"records": [(2200, key, bytes(6))], "producer": producer, "flags": CONTROL})
    return b"".join(_batches(batches))


def _batches(batches: list[dict[str, Any]]) -> Iterator[bytes]:
    for offset, batch in enumerate(batches):
        if batch["producer"] is None:
            yield v2_batch(offset, batch["records"])
        else:
            yield v2_batch(
                offset,
                batch["records"],
                producer_id=batch["producer"],
                producer_epoch=0,
                base_sequence=-1 if batch.get("flags") else 0,
                flags=batch.get("flags", 0)
                | (0 if batch["producer"] == IDEMPOTENT else TRANSACTIONAL),
            )


@pytest.fixture(scope="module")
def warehouse(
    spark: SparkSession, referee: Referee, tmp_path_factory: pytest.TempPathFactory
) -> str:
    folder = tmp_path_factory.mktemp("lag")
    for name, base_offset, data in (
        ("t-0", 10, LOG),
        ("__consumer_offsets-0", 0, _offsets_log(referee)),
    ):
        (folder / "logs" / name).mkdir(parents=True)
        (folder / "logs" / name / f"{base_offset:020d}.log").write_bytes(data)
    build_few(spark, str(folder / "logs"), str(folder / "wh"), now_ms=NOW_MS)
    return str(folder / "wh")


@pytest.mark.slow
@pytest.mark.usefixtures("few_and_many")
def test_lag_is_counted_from_the_first_unread_record_and_what_is_gone_is_said(
    spark: SparkSession, caches: ExitStack, warehouse: str
) -> None:
    rows = run_lag(Warehouse(spark, warehouse), LagOptions(LogChoice(), NOW_MS), caches).collect()

    assert {
        row["group_id"]: (
            row["status"],
            row["offset_lag"],
            row["time_lag_ms"],
            row["gone_offsets"],
            row["is_time_lag_least"],
        )
        for row in rows
    } == {
        "behind": ("behind", 8, 8_900, 0, False),
        "up to date": ("up to date", 0, 0, 0, False),
        "expired": ("unread records deleted", 14, 9_000, 5, True),
        "compacted": ("unread records compacted away", 5, 8_400, 2, True),
        "ahead": ("ahead of the log's end", -6, 0, 0, False),
        "twice": ("behind", 2, 8_300, 0, False),
        "elsewhere": ("log not in the tables", None, None, None, False),
        "committed": ("behind", 8, 8_900, 0, False),
    }


def test_the_lag_in_offsets_is_the_one_that_kafka_consumer_groups_prints(
    spark: SparkSession, referee: Referee
) -> None:
    offsets, ends = [0, 11, 19, 25, 39, -1, 2**63 - 1], [19, 19, 19, 19, 19, 19, 0]
    pairs = zip(offsets, ends, strict=True)
    rows = [("c", "g", "t", number, *pair) for number, pair in enumerate(pairs)]
    columns = "cluster string, group_id string, topic string, partition int, committed_offset long"
    commits = spark.createDataFrame(rows, f"{columns}, end_offset long").selectExpr(
        "*",
        "0L AS log_start_offset",
        "0L AS commit_timestamp_ms",
        "committed_offset AS first_unread_offset",
        "0L AS first_unread_timestamp_ms",
        *(f"CAST(null AS string) AS {name}" for name in ("problem", "commits_doubt", "doubt")),
    )

    found = commits.transform(decide_lag(at_ms=NOW_MS)).orderBy("partition").collect()

    assert [row["offset_lag"] for row in found] == referee.lags(offsets, ends)
    least = commits.limit(1).withColumn("committed_offset", F.lit(-(2**63)).cast("long"))
    assert least.transform(decide_lag(at_ms=NOW_MS)).collect()[0]["offset_lag"] is None
    assert found[4]["offset_lag"] == -20


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_lag_at_a_past_moment_is_of_the_commits_and_the_log_of_then(
    spark: SparkSession, caches: ExitStack, warehouse: str
) -> None:
    groups = ("twice", "deleted", "behind")
    asked = LagOptions(LogChoice(topics=("t",)), NOW_MS, at_ms=1450, groups=groups)
    rows = run_lag(Warehouse(spark, warehouse), asked, caches).collect()

    assert {
        row["group_id"]: (row["status"], row["offset_lag"], row["time_lag_ms"]) for row in rows
    } == {
        "twice": ("behind", 5, 350),
        "deleted": ("behind", 5, 350),
        "behind": ("no commit left from that time", None, None),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_the_figures_of_groups_are_of_what_is_known(spark: SparkSession, warehouse: str) -> None:
    read = figures_of("lag", "--warehouse", warehouse, "--now-ms", NOW_MS)

    assert (read.exit_code, read.of("exit_status"), read.of("findings")) == (1, 1, 4)
    assert read.of("tables_age_seconds") == 0
    names = ("partitions", "partitions_to_look_at", "offsets", "gone_offsets", "time_max_seconds")
    assert {
        group: tuple(read.of(f"lag_{name}", group) for name in names)
        for group in ("behind", "expired", "ahead", "elsewhere", "up to date")
    } == {
        "behind": (1, 0, 8, 0, 8.9),
        "expired": (1, 1, 14, 5, 9),
        "ahead": (1, 1, -6, 0, 0),
        "elsewhere": (1, 1, None, None, None),
        "up to date": (1, 0, 0, 0, 0),
    }


@pytest.mark.parametrize("words", [("--explain", "behind"), ("--at", "now")], ids=lambda w: w[0])
def test_other_questions_have_no_figures(words: tuple[str, ...], warehouse: str) -> None:
    asked = ["lag", "--warehouse", warehouse, "--output", "prometheus", *words]
    done = CliRunner().invoke(cli, asked)

    assert (done.exit_code, done.stdout) == (2, "")
    assert f"leave {words[0]} out" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_where_the_offsets_of_a_group_went_is_explained(
    spark: SparkSession,
    caches: ExitStack,
    warehouse: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def told(group: str, **options: Any) -> list[tuple[Any, ...]]:
        asked = ExplainOptions(LogChoice(), group, **options)
        rows = run_explain(Warehouse(spark, warehouse), asked, caches).collect()
        names = ("topic", "where", "committed_offset", "gone_ms", "is_reset", "passed_over")
        return [tuple(row[name] for name in names) for row in rows]

    assert told("expired") == [("t", "committed", 5, None, True, 9)]
    assert told("deleted", retention_ms=850) == [("t", "expired", 11, 2100, True, 8)]
    assert told("open") == [("t", "in an open transaction", None, None, True, None)]
    assert told("behin") == []  # no metadata says how many partitions there are
    assert "group behin: not known: not all partitions of" in capsys.readouterr().err


def test_the_explanation_has_the_last_commits_and_ends_with_findings(
    spark: SparkSession, warehouse: str
) -> None:
    asked = ["lag", "--warehouse", warehouse, "--explain", "deleted"]
    done = CliRunner().invoke(cli, [*asked, "--offsets-retention-minutes", "1"])

    assert done.exit_code == 1
    assert "nothing but commits; __consumer_offsets-0: nothing of it was compacted" in done.stdout
    assert "too young to expire: its commit was" in done.stdout
    assert re.search(r"t-0 +13 +1970-01-01 00:00:02 +deleted", done.stdout)
    assert "1 partitions, 1 that someone must look at" in done.stderr
    refused = CliRunner().invoke(cli, [*asked, "--at", "now"])
    assert (refused.exit_code, "--explain and --at are two questions" in refused.stderr) == (
        2,
        True,
    )


@pytest.mark.slow
def test_a_group_or_topic_that_is_none_is_refused_with_the_nearest(
    spark: SparkSession, warehouse: str, tmp_path: Path
) -> None:
    whole = shutil.copytree(warehouse, tmp_path / "w")
    only = {"cluster": "", "topic": OFFSETS_TOPIC, "partition": 0}
    fill(Warehouse(spark, str(whole)), METADATA_PARTITIONS, [only])

    for words, told in (
        (["--explain", "deletd"], "no group deletd: it has deleted"),
        (["--explain", "deleted", "--topic", "tt"], "no segments of topic tt: it has "),
    ):
        done = CliRunner().invoke(cli, ["lag", "--warehouse", str(whole), *words])

        assert done.exit_code == 2, done.output
        assert told in done.stderr


@pytest.mark.slow
def test_without_consumer_offsets_it_is_said_what_is_missing(
    spark: SparkSession, caches: ExitStack, warehouse: str
) -> None:
    with pytest.raises(UsageError, match="has no segments of __consumer_offsets: give"):
        run_lag(
            Warehouse(spark, warehouse), LagOptions(LogChoice(cluster="nowhere"), NOW_MS), caches
        )


@pytest.mark.slow
def test_the_lag_is_printed_with_the_longest_first(spark: SparkSession, warehouse: str) -> None:
    done = CliRunner().invoke(
        cli, ["lag", "--warehouse", warehouse, "--now-ms", str(NOW_MS), "--group", "expired"]
    )

    assert done.exit_code == 1
    assert "more than 9.000 s  unread records deleted: 5 offsets" in done.stdout
    assert "1 commits, 1 that someone must look at" in done.stderr
    assert "the tables are of the build of" in done.stderr
