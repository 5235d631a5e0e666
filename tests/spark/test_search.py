"""Search against the answers of a real broker and of Kafka's own loader."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.cli import cli
from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.pipelines.build import Build
from kafka_segments.pipelines.build_options import BuildOptions
from kafka_segments.pipelines.search import (
    LogChoice,
    LogTables,
    search,
    search_names,
)
from kafka_segments.wire.moments import NAMED
from plain_decoder import PlainRecord, plain_records

NOW_MS = 1_800_000_000_000
LATEST_VERSION = (4, 3)

SPLIT = "v2-offset-overflow"  # Kafka's loader splits its segment in two


@pytest.fixture(scope="module")
def build(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    def run(source: Path) -> str:
        warehouse = str(tmp_path_factory.mktemp("warehouse"))
        options = BuildOptions((str(source),), warehouse, RecoveryOptions(), NOW_MS)
        Build(spark, options).run()
        return warehouse

    return run


@pytest.fixture(scope="module")
def broker_warehouse(broker: Path, build: Callable[[Path], str]) -> str:
    return build(broker / "logs")


@pytest.fixture(scope="module")
def cases(synthetic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic cases that Kafka's loader opens, each as a log directory."""
    folder = tmp_path_factory.mktemp("cases")
    for case in sorted(path.parent for path in synthetic.glob("*/case.json")):
        answers = json.loads((case / "expected/loader-missing.json").read_text())
        if "listOffsets" in answers and case.name != SPLIT:
            shutil.copytree(case / "t-0", folder / case.name / "t-0")
    return folder


def _plain(case: Path) -> list[PlainRecord]:
    """Decode every record that recovery keeps."""
    facts = json.loads((case / "expected/segments.json").read_text())
    logs = [
        (case / "t-0" / f"{segment['baseOffset']:020d}.log").read_bytes()[: segment["validBytes"]]
        for segment in facts
    ]
    return [record for log in logs for record in plain_records(log)]


def _first(records: list[PlainRecord], target_ms: int) -> int | None:
    return next((record.offset for record in records if record.timestamp >= target_ms), None)


def _answer(row: Row) -> tuple[int | None, ...]:
    return row["kafka_offset"], row["kafka_timestamp_ms"], row["kafka_leader_epoch"]


def _ask(
    spark: SparkSession, warehouse: str, asked: Iterable[tuple[str, int]], name: Column
) -> list[Row]:
    """Ask each log, named by an expression, what is asked of it."""
    tables = LogTables(spark, warehouse, LogChoice())
    rows = spark.createDataFrame(
        [(log, str(target), target) for log, target in asked],
        "name string, question string, target_ms long",
    )
    questions = tables.logs.withColumn("name", name).join(rows, "name", how="inner").drop("name")
    times = search(tables, questions.where("target_ms >= 0"), kafka_version=LATEST_VERSION)
    names = search_names(tables, questions.where("target_ms < 0"), kafka_version=LATEST_VERSION)
    return times.unionByName(names).collect()


def test_answers_are_those_of_a_real_broker(
    spark: SparkSession, broker: Path, broker_warehouse: str
) -> None:
    expected = {
        (log, NAMED[query] if (query := answer["query"]) in NAMED else int(query)): (
            answer["offset"],
            answer["timestamp"],
            answer.get("leaderEpoch", -1),
        )
        for log, answers in json.loads((broker / "listoffsets.json").read_text()).items()
        for answer in answers
    }

    rows = _ask(spark, broker_warehouse, expected, F.expr("topic || '-' || partition"))

    ours = {(f"{row['topic']}-{row['partition']}", row["target_ms"]): _answer(row) for row in rows}
    assert ours == expected
    assert {(row["difference"], row["problem"]) for row in rows} == {(None, None)}


def test_answers_are_those_of_kafkas_loader_and_beside_them_stand_the_true_ones(
    spark: SparkSession, synthetic: Path, cases: Path, build: Callable[[Path], str]
) -> None:
    expected = {}
    for case in cases.iterdir():
        answers = json.loads((synthetic / case.name / "expected/loader-missing.json").read_text())
        for answer in answers["listOffsets"]:
            offset, timestamp = answer["resultOffset"], answer.get("resultTimestamp", -1)
            expected[case.name, answer["timestamp"]] = (-1 if offset is None else offset, timestamp)

    rows = _ask(spark, build(cases), expected, F.regexp_extract("log_dir", "([^/]*)$", 1))

    by_case = {(row["log_dir"].rpartition("/")[2], row["target_ms"]): row for row in rows}
    assert {key: _answer(row)[:2] for key, row in by_case.items()} == expected
    plain = {name: _plain(synthetic / name) for name, _ in expected}
    true = {key: row["true_offset"] for key, row in by_case.items() if key[1] >= 0}
    assert true == {key: _first(plain[key[0]], key[1]) for key in true}
    differing = [row for row in rows if row["kafka_offset"] != _minus_1(row["true_offset"])]
    assert differing
    assert all(row["difference"] for row in differing)


def test_offsets_to_reset_a_group_to_are_lines_of_topic_partition_and_offset(
    spark: SparkSession, broker_warehouse: str
) -> None:
    arguments = ["search", "--warehouse", broker_warehouse, "--topic", "ct-two-partitions"]

    done = CliRunner().invoke(
        cli, [*arguments, "--time", "1700000001500", "--output", "reset-offsets"]
    )

    assert (done.exit_code, done.stdout) == (
        0,
        "ct-two-partitions,0,0\nct-two-partitions,1,1500\n",
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--time", "2026-01-31T14:00:00"], "has no zone"),
        ([], "one of --time and --questions is needed"),
        (["--time", "1", "--kafka-version", "0.10"], "0.11 or later expected"),
        (["--time", "LATEST", "--output", "reset-offsets"], "takes one --time, and no name"),
        (["--questions", "nowhere.csv"], "nowhere.csv: no such file"),
        (["bootstrap", "--last", "6"], "is no length of time"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_status_2(arguments: list[str], reason: str) -> None:
    subcommand = [arguments.pop(0)] if arguments[:1] == ["bootstrap"] else []

    done = CliRunner().invoke(cli, ["search", *subcommand, "--warehouse", "wh", *arguments])

    assert done.exit_code == 2
    assert reason in done.stderr


def _minus_1(offset: int | None) -> int:
    return -1 if offset is None else offset
