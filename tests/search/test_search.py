"""Search against the answers of a real broker and of Kafka's own loader."""

import csv
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.frames.driver_rows import with_values
from kafka_segments.engine.frames.local_rows import computed_rows, frame_of_rows
from kafka_segments.engine.limits import MOST_IN_DRIVER
from kafka_segments.engine.tables.catalog import LOGS, OFFSET_INDEX, SEGMENTS, TIME_INDEX
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.moments import NAMED
from kafka_segments.verbs.find.search.log_tables import LogChoice, LogTables
from kafka_segments.verbs.find.search.run import (
    SearchOptions,
    run_search,
    search_names,
    search_times,
)
from kafka_segments.verbs.find.search.tasks import find_first_records
from support.logs.strategies import v2_batch
from support.model.plain_decoder import PlainRecord, plain_records
from support.spark.filled_tables import fill
from support.spark.ready_builds import ReadyBuild
from support.spark.rows_of import rows_of
from support.spark.stored_builds import build_few

NOW_MS = 1_800_000_000_000
LATEST_VERSION = (4, 3)

PARTS, ALL = 6, -1
SPLIT = "v2-offset-overflow"  # Kafka's loader splits its segment in two


@pytest.fixture(scope="module")
def build(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    def run(source: Path) -> str:
        warehouse = str(tmp_path_factory.mktemp("warehouse"))
        build_few(spark, str(source), warehouse)
        return warehouse

    return run


@pytest.fixture(scope="module")
def broker_warehouse(broker_build: ReadyBuild) -> str:
    return str(broker_build.warehouse)


def _cases(synthetic: Path) -> list[Path]:
    """Return the synthetic cases that Kafka's loader opens."""
    return [
        path.parent
        for path in sorted(synthetic.glob("*/case.json"))
        if "listOffsets" in json.loads((path.parent / "expected/loader-missing.json").read_text())
    ]


def _plain(case: Path) -> list[PlainRecord]:
    """Decode every record that recovery keeps."""
    facts = json.loads((case / "expected/segments.json").read_text())
    logs = [
        (case / "t-0" / f"{segment['baseOffset']:020d}.log").read_bytes()[
            : segment.get("validBytes")
        ]
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
    values = [(log, str(target), target) for log, target in asked]
    rows = rows_of(spark, values, "name string, question string, target_ms long")
    with ExitStack() as caches:
        tables = LogTables(Warehouse(spark, warehouse), LogChoice(), caches)
        logs = tables.logs.withColumn("name", name)
        questions = logs.join(rows, "name", how="inner").drop("name")
        times = search_times(
            tables, questions.where("target_ms >= 0"), kafka_version=LATEST_VERSION
        )
        names = search_names(tables, questions.where("target_ms < 0"), kafka_version=LATEST_VERSION)
        return times.unionByName(names).collect()


@pytest.mark.slow
@pytest.mark.usefixtures("few")
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        0,
        *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS)),
        pytest.param(ALL, marks=pytest.mark.long),
    ],
)
def test_answers_are_those_of_kafkas_loader_and_beside_them_stand_the_true_ones(
    spark: SparkSession, synthetic: Path, tmp_path: Path, build: Callable[[Path], str], part: int
) -> None:
    """A part of the cases is few rows, all are taken for many."""
    chosen = _cases(synthetic)[slice(None) if part == ALL else slice(part, None, PARTS)]
    for case in chosen:
        shutil.copytree(case / "t-0", tmp_path / case.name / "t-0")
    expected = {}
    for case in chosen:
        answers = json.loads((synthetic / case.name / "expected/loader-missing.json").read_text())
        for answer in answers["listOffsets"]:
            offset, timestamp = answer["resultOffset"], answer.get("resultTimestamp", -1)
            expected[case.name, answer["timestamp"]] = (-1 if offset is None else offset, timestamp)

    with nullcontext() if part == ALL else few_rows(spark):
        name = F.regexp_extract("log_dir", "([^/]*)$", 1)
        rows = _ask(spark, build(tmp_path), expected, name)

    by_case = {(row["log_dir"].rpartition("/")[2], row["target_ms"]): row for row in rows}
    cut = {key for key, row in by_case.items() if (row["problem"] or "").startswith("not known: ")}
    unread = {key for key, row in by_case.items() if row["problem"] is not None} - cut
    assert {name for name, _ in unread} == {SPLIT} & {case.name for case in chosen}
    assert all("bytes alone: " in by_case[key]["problem"] for key in unread)
    for key in unread:
        del by_case[key], expected[key]
    assert {key: _answer(row)[:2] for key, row in by_case.items()} == expected
    plain = {name: _plain(synthetic / name) for name in {name for name, _ in expected}}
    assert all(by_case[key]["true_offset"] is None for key in cut)
    true = {
        key: row["true_offset"] for key, row in by_case.items() if key[1] >= 0 and key not in cut
    }
    assert true == {key: _first(plain[key[0]], key[1]) for key in true}
    differing = [
        row
        for key, row in by_case.items()
        if key not in cut and row["kafka_offset"] != _minus_1(row["true_offset"])
    ]
    assert differing or part != ALL
    assert all(row["difference"] for row in differing)


class _Segment(NamedTuple):
    """A segment that a test drew: batches of (first offset, timestamps)."""

    base_offset: int
    batches: list[tuple[int, list[int]]]
    last_modified_ms: int

    def records(self) -> list[tuple[int, int]]:
        return [
            (first + index, timestamp)
            for first, timestamps in self.batches
            for index, timestamp in enumerate(timestamps)
        ]

    def largest_timestamp(self) -> int:
        greatest = max((timestamp for _, timestamp in self.records()), default=-1)
        return greatest if greatest >= 0 else self.last_modified_ms


def _draw_log(draw: random.Random) -> list[_Segment]:
    """Draw 1 to 4 segments with timestamps that go back, are equal or missing, and gaps."""
    offset, segments = draw.randrange(50), []
    for _ in range(draw.randint(1, 4)):
        base_offset, batches = offset, []
        choices = draw.choice([range(0, 40), range(20, 60), [7], [-1]])
        for _ in range(draw.randint(1, 30)):
            timestamps = [draw.choice(choices) for _ in range(draw.randint(1, 4))]
            batches.append((offset, timestamps))
            offset += len(timestamps) + draw.choice([0, 0, 3])
        segments.append(_Segment(base_offset, batches, draw.choice([1_000, 60_000])))
    return segments


def _write_log(folder: Path, segments: list[_Segment]) -> None:
    folder.mkdir(parents=True)
    for segment in segments:
        log = folder / f"{segment.base_offset:020d}.log"
        batches = [
            v2_batch(first, [(timestamp, None, bytes(500)) for timestamp in timestamps])
            for first, timestamps in segment.batches
        ]
        log.write_bytes(b"".join(batches))
        os.utime(log, ns=(segment.last_modified_ms * 10**6,) * 2)


def _kafkas_answer(segments: list[_Segment], log_start: int, target: int) -> int | None:
    """Do what UnifiedLog does: one segment, the first that reaches the timestamp."""
    chosen = next((each for each in segments if each.largest_timestamp() >= target), None)
    if chosen is None:
        return None
    return _first_record(chosen.records(), log_start, target)


def _first_record(records: list[tuple[int, int]], log_start: int, target: int) -> int | None:
    fits = [offset for offset, time in records if time >= target and offset >= log_start]
    return fits[0] if fits else None


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_both_answers_are_those_of_a_plain_loop_wherever_the_log_starts(
    spark: SparkSession, tmp_path: Path, build: Callable[[Path], str]
) -> None:
    draw = random.Random(8)
    logs = [_draw_log(draw) for _ in range(40)]
    starts = []
    for partition, segments in enumerate(logs):
        _write_log(tmp_path / f"t-{partition}", segments)
        first, last = segments[0].base_offset, segments[-1].records()[-1][0]
        starts.append(draw.choice([first, draw.randint(first, last)]))
    lines = [f"t {partition} {start}" for partition, start in enumerate(starts)]
    (tmp_path / "log-start-offset-checkpoint").write_text(
        "\n".join(["0", str(len(lines)), *lines, ""])
    )
    targets = [*range(0, 61, 3), 7, 1_000, 1_001, 60_000, 60_001]
    asked = {(str(partition), target): 0 for partition in range(40) for target in targets}

    rows = _ask(spark, build(tmp_path), asked, F.col("partition").cast("string"))

    ours = {
        (row["partition"], row["target_ms"]): (row["kafka_offset"], row["true_offset"])
        for row in rows
    }
    expected = {}
    for partition, (segments, start) in enumerate(zip(logs, starts, strict=True)):
        records = [record for segment in segments for record in segment.records()]
        for target in targets:
            kafkas = _kafkas_answer(segments, start, target)
            expected[partition, target] = (
                _minus_1(kafkas),
                _first_record(records, start, target),
            )
    assert ours == expected
    reasons = {(row["difference"] or "").partition(" alone")[2] for row in rows}
    assert reasons == {
        "",
        ", which it chose by its mtime: no timestamp in it reaches T",
        ", where all at or after T lies below the log start offset",
    }


@pytest.mark.slow
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
    ), done.stderr


@pytest.mark.usefixtures("few_and_many")
def test_an_answer_that_lies_behind_what_the_tables_have_is_taken_back(
    spark: SparkSession, caches: ExitStack, tmp_path: Path
) -> None:
    root = Warehouse(spark, str(tmp_path))
    of_log = {"topic": "t", "largest_timestamp_source": "record"}
    sound = {**of_log, "path": "/0.log", "valid_bytes": 9, "next_offset": 5}
    gone = {"kind": "unreadable", "position": 0, "message": "it is gone"}
    damaged = {**of_log, "path": "/5.log", "base_offset": 5, "damage": gone}
    fill(root, SEGMENTS, [sound, damaged])
    for table in (LOGS, TIME_INDEX, OFFSET_INDEX):
        fill(root, table, [])
    asked = SearchOptions(LogChoice(), LATEST_VERSION, tuple(NAMED.items()))

    rows = {row["question"]: row for row in run_search(root, asked, caches).collect()}

    assert (rows["EARLIEST"]["true_offset"], rows["EARLIEST"]["problem"]) == (0, None)
    assert (rows["LATEST"]["true_offset"], rows["LATEST"]["problem"]) == (
        None,
        "/5.log: the tables have nothing of it: it is gone",
    )


@pytest.mark.usefixtures("few")
def test_of_a_log_that_ends_below_its_start_nothing_is_known(
    spark: SparkSession, caches: ExitStack, tmp_path: Path
) -> None:
    root = Warehouse(spark, str(tmp_path))
    segment = {"topic": "t", "largest_timestamp_source": "record", "path": "/0.log"}
    fill(root, SEGMENTS, [{**segment, "valid_bytes": 9, "next_offset": 5}])
    fill(root, LOGS, [{"topic": "t", "folder_state": "live", "log_start_offset": 9}])
    for table in (TIME_INDEX, OFFSET_INDEX):
        fill(root, table, [])
    tables = LogTables(root, LogChoice(), caches)

    asked = SearchOptions(LogChoice(), LATEST_VERSION, tuple(NAMED.items()))
    answers = run_search(root, asked, caches).collect()
    (replica,) = tables.replicas().collect()

    why = "not known: the log ends at offset 5, below offset 9, where its checkpoint notes"
    assert len(answers) == len(NAMED)
    for row in answers:
        assert (row["kafka_offset"], row["true_offset"]) == (None, None)
        assert row["problem"].startswith(why)
    assert replica["doubt"].startswith(why)


@pytest.mark.parametrize(
    "choice",
    [
        LogChoice(),
        LogChoice(topics=("a", "c"), partitions=(0,)),
        LogChoice(cluster="", broker_id=0),
        LogChoice(topics=("none",)),
    ],
    ids=str,
)
def test_the_driver_chooses_the_rows_that_spark_does(
    spark: SparkSession, choice: LogChoice
) -> None:
    keys = product(("", "x"), (0, 7), "abc", (0, 1))
    names = ("cluster", "broker_id", "topic", "partition")
    rows = spark.createDataFrame(
        list(keys), "cluster string, broker_id int, topic string, partition int"
    )

    here = frame_of_rows(spark, *computed_rows(rows))

    by_spark, by_arrow = (
        [row.asDict() for row in with_values(frame, choice.allowed()).select(*names).collect()]
        for frame in (rows, here)
    )
    assert by_arrow == by_spark


@pytest.mark.slow
def test_a_search_leaves_nothing_in_the_session(spark: SparkSession, broker_warehouse: str) -> None:
    def kept() -> tuple[int, int]:
        cached = spark._jsparkSession.sharedState().cacheManager().numCachedEntries()
        jobs = spark.sparkContext._jsc.sc().dagScheduler().activeQueryToJobs().size()
        return cached, jobs

    before = kept()
    arguments = ["search", "--warehouse", broker_warehouse, "--topic", "txn", "--time", "0"]

    done = CliRunner().invoke(cli, [*arguments, "--output", "csv"])

    header, *rows = csv.reader(done.stdout.splitlines())
    assert [dict(zip(header, row, strict=True))["true_offset"] for row in rows] == ["0"]
    assert kept() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--time", "2026-01-31T14:00:00"], "has no zone"),
        ([], "one of --time and --questions is needed"),
        (["--time", "1", "--kafka-version", "0.10"], "0.11 and later are known"),
        (["--time", "LATEST", "--output", "reset-offsets"], "takes one --time, and no name"),
        (["--questions", "nowhere.csv"], "nowhere.csv: no such file"),
        (
            [
                "--time",
                "1",
                "--isolation-level",
                "read_committed",
                "--high-watermark",
                "checkpoint",
            ],
            "takes --high-watermark end alone",
        ),
        (["bootstrap", "--last", "6"], "is no length of time"),
        (["failover", "--group", "g", "--max-latency", "5m"], "--to-cluster is needed"),
        (
            ["failover", "--group", "g", "--max-latency", "5m", "--to-cluster", "b"],
            "--cluster is needed",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_status_2(
    arguments: list[str], reason: str, tmp_path: Path
) -> None:
    for table in ("segments", "logs"):
        (tmp_path / table / "_delta_log").mkdir(parents=True)
        (tmp_path / table / "_delta_log" / f"{0:020d}.json").write_text("{}\n")

    done = CliRunner().invoke(cli, ["search", *arguments, "--warehouse", str(tmp_path)])

    assert done.exit_code == 2
    assert reason in done.stderr


def _minus_1(offset: int | None) -> int:
    return -1 if offset is None else offset


@pytest.mark.parametrize("count", [1, MOST_IN_DRIVER + 1])
def test_few_searches_are_made_once_whoever_makes_them(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(v2_batch(0, [(1_000, None, b"a")]))
    columns = (
        "cluster string, broker_id int, log_dir string, topic string, partition int,"
        " base_offset long, path string, start_position long, valid_bytes long,"
        " least_timestamp_ms long, least_offset long, start_offset long,"
        " first_batch_timestamp_ms long, max_timestamp_ms long"
    )
    size = log.stat().st_size
    asked = [
        ("c", 1, "/d", "t", 0, 0, str(log), 0, size, n, 0, 0, 1_000, 1_000) for n in range(count)
    ]

    with few_rows(spark):
        found = find_first_records(spark.createDataFrame(asked, columns))
        log.unlink()
        rows = found.collect()

    assert [row["problem"] for row in rows] == [None] * count
