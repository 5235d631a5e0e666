"""Retention over a warehouse: reasons and blame, other settings, plans applied and rolled back."""

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.cli import cli
from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.derived.configs import with_topic_configs
from kafka_segments.engine.derived.metadata_configs import ConfigAtOffset, MetadataConfigs
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.tables.catalog import RETENTION_PLANS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.settings import Settings, TopicConfig, settings_grid
from kafka_segments.verbs.judge.retention.decide.decisions import decide_retention
from kafka_segments.verbs.judge.retention.decide.other_rules import with_other_rules
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.retention.run import (
    RetentionOptions,
    run_explain,
    run_retention,
    run_what_if,
    segments_to_decide,
)
from kafka_segments.verbs.judge.retention.run_plan import (
    MoveOptions,
    run_apply,
    run_plan,
    run_rollback,
)
from support.model.plain_retention import HOUR_MS, NOW_MS
from support.spark.rows_of import rows_of
from support.spark.stored_builds import build_few

pytestmark = pytest.mark.usefixtures("few")

DAY_MS = 24 * HOUR_MS
LATER_MS = 1_795_000_000_000  # all of the broker's CreateTime segments have expired
COLUMNS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int,"
    " base_offset long, size_bytes long, next_offset long, max_timestamp_ms long,"
    " offset_of_max_timestamp long, last_modified_ms long, largest_timestamp_ms long,"
    " largest_timestamp_source string, is_active boolean, high_watermark long,"
    " log_start_offset long, highest_remote_offset long"
)


def _rows(number: int, segments: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    rows = []
    for position, segment in enumerate(segments):
        timestamp = segment.get("timestamp", -1)
        mtime = segment.get("mtime", NOW_MS - 2 * DAY_MS)
        base, count = position * 10, 10
        rows.append(
            (
                *("c", 1, "/d", "t", number, base, segment.get("size", 100)),
                None if segment.get("unreadable") else base + count,
                *(timestamp, base + 5, mtime, timestamp if timestamp >= 0 else mtime),
                "record" if timestamp >= 0 else "last_modified",
                position == len(segments) - 1,
                segment.get("high_watermark"),
                0,
                segment.get("highest_remote"),
            )
        )
    return rows


def _decide(
    spark: SparkSession,
    *logs: list[dict[str, Any]],
    version: str = "4.3",
    configs: list[dict[str, Any]] | None = None,
) -> list[list[Row]]:
    """Decide for logs of segments of ten offsets; each segment a dict of what matters."""
    settings = [
        TopicConfig(**{"retention_ms": DAY_MS, **config}).model_dump()
        for config in configs or [{}] * len(logs)
    ]
    rows = [
        (*row, *settings[number].values())
        for number, segments in enumerate(logs)
        for row in _rows(number, segments)
    ]
    kinds = {int: "long", str: "string", bool: "boolean"}
    columns = [f"{key} {kinds[type(value)]}" for key, value in settings[0].items()]
    frame = rows_of(spark, rows, ", ".join((COLUMNS, *columns)))
    decide = decide_retention(now_ms=NOW_MS, rules=RetentionRules.of(version))
    decided = frame.transform(decide).orderBy("partition", "base_offset").collect()
    return [[row for row in decided if row["partition"] == number] for number in range(len(logs))]


OLD, YOUNG, AHEAD = NOW_MS - 2 * DAY_MS, NOW_MS - HOUR_MS, NOW_MS + DAY_MS
TIERED = {"remote_storage_enable": True, "local_retention_ms": 0}
NO_CLEANER = {"cleanup_policy": "compact,delete", "log_cleaner_enable": False}


CASES: list[tuple[dict[str, Any], dict[str, Any], str, str | None]] = [
    ({"timestamp": NOW_MS // 1000}, {}, "retention_ms", "s"),
    ({"timestamp": YOUNG}, {}, "not_expired", None),
    ({"timestamp": AHEAD}, {}, "future_timestamp", None),
    ({"timestamp": NOW_MS * 1000}, {}, "wrong_unit", "us"),
    ({"timestamp": NOW_MS * 1_000_000}, {}, "wrong_unit", "ns"),
    ({"timestamp": 2**63 - 1}, {}, "future_timestamp", None),
    ({"mtime": YOUNG}, {}, "mtime_reset", None),
    ({"timestamp": OLD, "unreadable": True}, {}, "unreadable", None),
    ({"timestamp": OLD, "high_watermark": 9}, {}, "high_watermark", None),
    ({"timestamp": OLD}, {"cleanup_policy": "compact"}, "cleanup_policy", None),
    ({"timestamp": OLD}, NO_CLEANER, "log_cleaner_disabled", None),
    ({"timestamp": OLD}, {"log_cleaner_enable": False}, "retention_ms", None),
    ({"timestamp": OLD}, {"cleanup_policy": "compact,delete"}, "retention_ms", None),
    ({"timestamp": OLD}, TIERED, "upload_unknown", None),
    ({"timestamp": OLD, "highest_remote": 3}, TIERED, "not_uploaded", None),
    ({"timestamp": OLD, "highest_remote": 9}, TIERED, "retention_ms", None),
]


def test_the_reason_and_the_guessed_unit_of_an_oldest_segment(spark: SparkSession) -> None:
    old = {"timestamp": OLD}
    logs = [[segment, old, old] for segment, *_ in CASES]
    decided = _decide(spark, *logs, configs=[config for _, config, *_ in CASES])

    found = [(rows[0]["reason_code"], rows[0]["timestamp_unit"]) for rows in decided]
    assert found == [(code, unit) for *_, code, unit in CASES]
    what_else_goes = {rows[0]["reason_code"]: rows[0]["remedy"] for rows in decided}
    assert "the only record of a key goes" in what_else_goes["cleanup_policy"]
    assert "all its compacted topics lose" in what_else_goes["log_cleaner_disabled"]
    for (segment, *_), (first, second, _) in zip(CASES, decided, strict=True):
        assert (first["remedy"] is None) == (first["decision"] == "delete")
        assert first["blocked_by_base_offset"] is None
        if second["reason_code"] == "blocked":
            pin = 5 if "timestamp" in segment else None  # else its mtime
            assert (second["blocked_by_base_offset"], second["pinned_by_offset"]) == (0, pin)
            assert first["waiting_bytes"] == 200


def test_a_tiered_topic_is_told_of_its_local_settings(spark: SparkSession) -> None:
    uploaded = {"timestamp": OLD, "highest_remote": 9}
    future = {"timestamp": AHEAD, "highest_remote": 9}
    young = {"timestamp": YOUNG, "highest_remote": 9}
    inherited = {"remote_storage_enable": True}
    by_size = {"remote_storage_enable": True, "local_retention_bytes": 0, "retention_ms": -1}
    no_copies = {**TIERED, "remote_log_copy_disable": True}

    decided = _decide(
        spark,
        *([uploaded, young], [uploaded, young], [uploaded, young], [future, young]),
        *([future, young], [future, young]),
        configs=[TIERED, inherited, by_size, TIERED, no_copies, {}],
    )

    assert [rows[0]["reason"] for rows in decided[:3]] == [
        "older than local.retention.ms",
        "older than retention.ms",
        "the log holds local.retention.bytes without it",
    ]
    assert decided[1][1]["remedy"] == (
        "wait, or lower local.retention.ms or local.retention.bytes, which all partitions of the"
        " topic go by; the remote copies stay"
    )
    assert decided[3][0]["remedy"] == (
        "local.retention.bytes=100: it goes, and all older segments with it; all partitions of the"
        " topic go by it; the remote copies stay; message.timestamp.after.max.ms refuses such"
        " records"
    )
    assert decided[4][0]["remedy"].startswith("retention.bytes=100: it goes")
    assert "it holds for the remote copies, too" in decided[4][0]["remedy"]
    assert "remote" not in decided[5][0]["remedy"]


def test_to_blame_is_the_older_segment_that_goes_last_and_bytes_wait_behind_it(
    spark: SparkSession,
) -> None:
    young, ahead, old = {"timestamp": YOUNG}, {"timestamp": AHEAD}, {"timestamp": OLD}
    logs = [old, young, ahead, old, young, old]
    (rows,) = _decide(spark, logs, configs=[{"file_delete_delay_ms": 7}])

    goes = [NOW_MS, YOUNG + DAY_MS + 1, *[AHEAD + DAY_MS + 1] * 4]
    assert [row["deletes_at_ms"] for row in rows] == goes
    assert [row["frees_disk_at_ms"] - row["deletes_at_ms"] for row in rows] == [7] * 6
    assert [row["blocked_by_base_offset"] for row in rows] == [None, None, None, 20, 20, 20]
    assert [row["pinned_by_timestamp_ms"] for row in rows[1:]] == [YOUNG, *[AHEAD] * 4]
    assert [row["waiting_bytes"] for row in rows] == [None, 200, 200, 100, 100, 0]
    assert rows[3]["reason"] == "expired, but the older segment 20 stays"
    assert rows[3]["remedy"] == "free segment 20 first"


def test_a_copy_in_tiered_storage_is_left_to_the_leader(spark: SparkSession) -> None:
    names = [f"{0:020d}.log", f"{0:020d}-AbCdEfGhIjKlMnOpQrSt-_.log"]
    names.append(f"{0:020d}-01234567-89ab-cdef-0123-456789abcdef.log")
    paths = rows_of(
        spark, [("t", f"/tier/t-0/{name}") for name in names], "topic string, path string"
    )

    found = paths.transform(with_other_rules).collect()

    assert [row["other_rules"] for row in found] == [None, "remote_copy", "remote_copy"]


def test_a_log_that_is_left_over_gets_no_settings_of_the_topic_of_its_name(
    spark: SparkSession,
) -> None:
    held = (ConfigAtOffset("topic", "t", "retention.ms", "5", 7, 9, False),)
    configs = TopicConfigs.load(Settings.load(None, []), metadata=[MetadataConfigs("c", held)])
    columns = "cluster string, broker_id int, topic string, is_left_over boolean"
    rows = rows_of(spark, [("c", 1, "t", True), ("c", 2, "t", False)], columns)

    found = rows.transform(with_topic_configs(spark, configs)).transform(with_other_rules)

    told = {row["broker_id"]: (row["retention_ms"], row["other_rules"]) for row in found.collect()}
    assert told == {1: (TopicConfig().retention_ms, "left_over"), 2: (5, None)}


def test_size_goes_first_and_the_end_of_time_never_comes(spark: SparkSession) -> None:
    old, far = [{"timestamp": OLD}] * 3, [{"timestamp": 2**63 - 1}] * 3
    rows, kept = _decide(spark, old, far, configs=[{"retention_bytes": 200}, {}])

    assert [row["decision"] for row in rows] == ["delete"] * 3
    assert [row["rule"] for row in rows] == ["retention_bytes", "retention_ms", "retention_ms"]
    assert [row["rolls"] for row in rows] == [False, False, True]
    assert [row["deletes_at_ms"] for row in kept] == [None] * 3


@pytest.mark.slow
def test_before_kip_33_the_mtime_of_a_restored_file_keeps_it_and_is_blamed(
    spark: SparkSession,
) -> None:
    restored = [{"timestamp": OLD - number, "mtime": YOUNG} for number in range(2)]

    codes = {
        version: {row["reason_code"] for row in _decide(spark, restored, version=version)[0]}
        for version in ("0.10.0", "4.3")
    }

    assert codes == {"0.10.0": {"mtime_reset"}, "4.3": {"retention_ms"}}


@pytest.fixture(scope="module")
def built(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Give a log directory with three partitions and KRaft's log, and a warehouse built of it."""
    root = tmp_path_factory.mktemp("retention")
    for name in ("ct-two-partitions-0", "ct-two-partitions-1", "txn-0"):
        shutil.copytree(broker / "logs" / name, root / "logs" / name)
    shutil.copytree(broker / "logs" / "txn-0", root / "logs" / "__cluster_metadata-0")
    (root / "logs" / ".lock").touch()
    build_few(spark, str(root / "logs"), str(root / "warehouse"), now_ms=LATER_MS)
    return root / "logs", root / "warehouse"


def _tables(spark: SparkSession, warehouse: Path) -> Warehouse:
    return Warehouse(spark, str(warehouse))


def _options(*pairs: str, conf: Path | None = None) -> RetentionOptions:
    given = {"retention_ms": "2592000000", **dict(pair.split("=") for pair in pairs)}
    settings = Settings.load(conf, [f"{key}={value}" for key, value in given.items()])
    return RetentionOptions(
        configs=TopicConfigs.load(settings),
        rules=RetentionRules.of("4.3"),
        now_ms=LATER_MS,
    )


@pytest.mark.slow
def test_each_topic_is_decided_by_its_own_settings(
    spark: SparkSession, built: tuple[Path, Path], tmp_path: Path
) -> None:
    conf = tmp_path / "c.toml"
    conf.write_text('[topics."ct-two-partitions"]\nretention_ms = -1\n', "utf-8")

    decided = run_retention(_tables(spark, built[1]), _options(conf=conf), dry_run=True)

    kept = {row["topic"]: row["retention_ms"] for row in decided.collect()}
    assert kept.pop("__cluster_metadata") == 2_592_000_000  # which does not hold for it
    assert kept == {"ct-two-partitions": -1, "txn": 2_592_000_000}
    explained = run_explain(_tables(spark, built[1]), _options(conf=conf), topic="txn", partition=0)
    assert [row["base_offset"] for row in explained.collect()] == [0, 10, 1153, 1165, 2325, 2329]


@pytest.mark.slow
def test_a_topic_alone_is_decided_as_among_all_and_one_that_is_not_there_is_named(
    spark: SparkSession, built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = _options("retention_ms=1")
    alone = replace(options, topics=("txn",))

    columns = ("topic", "base_offset", "decision", "reason", "deletes_at_ms")
    of_all, of_one = (
        run_retention(_tables(spark, built[1]), asked, dry_run=True)
        .select(*columns)
        .orderBy("base_offset")
        for asked in (options, alone)
    )
    assert of_one.collect() == of_all.where("topic = 'txn'").collect() != []
    compared = run_what_if(
        _tables(spark, built[1]), alone, settings_grid(["retention_ms=-1"])
    ).collect()
    assert [row["topic"] for row in compared] == ["txn"]

    absent = replace(options, topics=("txn", "txm"))
    told = f"{built[1]} has no segments of topic txm: it has txn"
    with pytest.raises(UsageError, match=told):
        segments_to_decide(_tables(spark, built[1]), absent)
    # As of a table that is too large to be read without Spark.
    monkeypatch.setattr("kafka_segments.verbs.judge.retention.run.logs_known", lambda _: None)
    with pytest.raises(UsageError, match=told):
        segments_to_decide(_tables(spark, built[1]), absent)


@pytest.fixture(scope="module")
def compared(spark: SparkSession, built: tuple[Path, Path]) -> list[Row]:
    """What each of two combinations of settings would leave of each topic."""
    grid = settings_grid(["retention_ms=1,-1", "retention_bytes=1000000"])
    with few_rows(spark):
        return run_what_if(_tables(spark, built[1]), _options(), grid).collect()


def _left(spark: SparkSession, warehouse: Path, *pairs: str) -> dict[str, tuple[int, int]]:
    """Return how many segments and bytes of each topic are kept by settings."""
    decided = run_retention(_tables(spark, warehouse), _options(*pairs), dry_run=True)
    kept = decided.groupBy("topic").agg(
        F.count_if(F.col("decision") == "keep").alias("segments"),
        F.sum(F.when(F.col("decision") == "keep", F.col("size_bytes"))).alias("bytes"),
    )
    return {row["topic"]: (row["segments"], row["bytes"] or 0) for row in kept.collect()}


def test_beside_other_settings_stands_what_those_of_today_leave(
    spark: SparkSession, built: tuple[Path, Path], compared: list[Row]
) -> None:
    today = _left(spark, built[1])

    assert len(compared) == 6
    for row in compared:
        assert (row["not_decided"] is not None) == (row["topic"] == "__cluster_metadata")
        assert (row["today_segments"], row["today_size_bytes"]) == today[row["topic"]]


@pytest.mark.parametrize("setting", ["retention_ms=1", "retention_ms=-1"])
def test_other_settings_leave_what_deciding_by_them_leaves(
    spark: SparkSession, built: tuple[Path, Path], compared: list[Row], setting: str
) -> None:
    pairs = (setting, "retention_bytes=1000000")
    rows = [row for row in compared if row["setting"] == " ".join(pairs)]

    left = {row["topic"]: (row["segments"], row["size_bytes"]) for row in rows}

    assert len(left) == 3
    assert left == _left(spark, built[1], *pairs)


def _state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


class Moved(NamedTuple):
    """A log directory to which a plan is applied, and what it was before."""

    log_dir: Path
    warehouse: Path
    plan_id: str
    before: dict[str, tuple[bytes, int]]

    def moves(self, act: Any, spark: SparkSession, *, execute: bool) -> list[tuple[str, int, str]]:
        tables = Warehouse(spark, str(self.warehouse))
        found = act(tables, MoveOptions(self.plan_id, execute=execute))
        return [(Path(move.log).name, move.segments, move.status) for move in found]

    def statuses(self, act: Any, spark: SparkSession, *, execute: bool) -> list[str]:
        return [status for _, _, status in self.moves(act, spark, execute=execute)]


@pytest.fixture(scope="module")
def planned(spark: SparkSession, built: tuple[Path, Path]) -> Moved:
    log_dir, warehouse = built
    with few_rows(spark):
        plan_id, rows = run_plan(
            _tables(spark, warehouse), _options(), has_digests=False, dry_run=False
        )
        assert rows.where("problem IS NOT NULL").isEmpty()
    return Moved(log_dir, warehouse, plan_id, _state(log_dir))


def test_without_execute_nothing_moves(spark: SparkSession, planned: Moved) -> None:
    names = ("ct-two-partitions-0", "ct-two-partitions-1", "txn-0")

    found = planned.moves(run_apply, spark, execute=False)

    assert found == [(name, 1, "would move") for name in names]
    assert _state(planned.log_dir) == planned.before


@pytest.fixture(scope="module")
def moved(spark: SparkSession, planned: Moved) -> Moved:
    """What goes is moved, that of one log at the second time."""
    changed = planned.log_dir / "txn-0" / f"{0:020d}.log"
    with few_rows(spark):
        os.utime(changed, ns=(0, 0))
        found = planned.statuses(run_apply, spark, execute=True)
        assert found == ["moved", "moved", "refused"]
        os.utime(changed, ns=(0, planned.before[f"txn-0/{0:020d}.log"][1]))
        found = planned.statuses(run_apply, spark, execute=True)
        assert found == ["already moved", "already moved", "moved"]
    return planned


@pytest.mark.parametrize("execute", [False, True])
def test_what_has_moved_is_not_moved_again(
    spark: SparkSession, moved: Moved, execute: bool
) -> None:
    assert moved.statuses(run_apply, spark, execute=execute) == ["already moved"] * 3
    assert len(_state(moved.log_dir)) < len(moved.before)


def test_what_has_moved_can_be_rolled_back(spark: SparkSession, moved: Moved) -> None:
    assert moved.statuses(run_rollback, spark, execute=True) == ["brought back"] * 3
    assert _state(moved.log_dir) == moved.before
    assert moved.statuses(run_rollback, spark, execute=True) == ["untouched"] * 3


@pytest.mark.slow
def test_krafts_own_log_is_kept_by_rules_of_its_own_whatever_its_age(
    spark: SparkSession, built: tuple[Path, Path]
) -> None:
    options = _options("retention_ms=1", "retention_bytes=1")

    rows = run_explain(
        _tables(spark, built[1]), options, topic="__cluster_metadata", partition=0
    ).collect()

    assert len(rows) == 6
    assert {(row["decision"], row["reason_code"], row["rolls"]) for row in rows} == {
        ("keep", "metadata_log", False)
    }
    assert {row["deletes_at_ms"] for row in rows} == {None}
    explained = CliRunner().invoke(
        cli, ["retention", "explain", "__cluster_metadata-0", "--warehouse", str(built[1])]
    )
    assert "a topic's settings do not hold for it\n" in explained.stdout
    assert "why: KRaft's own log: it goes behind its snapshots, by metadata." in explained.stdout
    assert "retention.ms =" not in explained.stdout


@pytest.mark.slow
def test_krafts_own_log_in_the_plan_of_an_older_release_is_refused(
    spark: SparkSession, built: tuple[Path, Path]
) -> None:
    before = _state(built[0])
    _, planned = run_plan(_tables(spark, built[1]), _options(), has_digests=False, dry_run=True)
    of_old = planned.where("topic = 'txn'").withColumns(
        {
            "plan_id": F.lit("old"),
            "topic": F.lit("__cluster_metadata"),
            "path": F.replace("path", F.lit("/txn-0/"), F.lit("/__cluster_metadata-0/")),
        }
    )
    tables = Warehouse(spark, str(built[1]))
    tables.create(RETENTION_PLANS)
    tables.append(RETENTION_PLANS, of_old)

    (move,) = run_apply(_tables(spark, built[1]), MoveOptions("old", execute=True))

    assert move.status == "refused"
    assert move.reason == "KRaft's own log goes by other rules: plan again"
    assert _state(built[0]) == before


@pytest.mark.slow
def test_a_plan_with_digests_refuses_a_file_of_the_same_size_and_mtime(
    spark: SparkSession, built: tuple[Path, Path]
) -> None:
    file = built[0] / "txn-0" / f"{0:020d}.log"
    data, stat = file.read_bytes(), file.stat()
    plan_id, planned = run_plan(
        _tables(spark, built[1]), _options(), has_digests=True, dry_run=False
    )
    digests = [row["digests"] for row in planned.where("topic = 'txn'").collect()]
    assert digests == [{file.name: hashlib.sha256(data).hexdigest()}]
    try:
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        moves = list(run_apply(_tables(spark, built[1]), MoveOptions(plan_id)))
    finally:
        file.write_bytes(data)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert [move.status for move in moves] == ["would move", "would move", "refused"]
    assert "size and mtime are the same: plan again" in moves[2].reason


@pytest.mark.slow
def test_an_unknown_plan_and_a_target_inside_the_logs_are_refused(
    spark: SparkSession, built: tuple[Path, Path]
) -> None:
    plan_id, _ = run_plan(_tables(spark, built[1]), _options(), has_digests=False, dry_run=False)

    with pytest.raises(UsageError, match="has no plan nothing"):
        list(run_apply(_tables(spark, built[1]), MoveOptions("nothing", execute=True)))
    with pytest.raises(UsageError, match="lies in the log directory"):
        list(
            run_apply(_tables(spark, built[1]), MoveOptions(plan_id, built[0] / "x", execute=True))
        )


@pytest.mark.slow
def test_a_segment_that_changed_since_the_build_is_planned_with_its_problem(
    spark: SparkSession, built: tuple[Path, Path]
) -> None:
    file = built[0] / "txn-0" / f"{0:020d}.log"
    mtime_ns = file.stat().st_mtime_ns
    os.utime(file, ns=(0, 0))
    try:
        _, planned = run_plan(_tables(spark, built[1]), _options(), has_digests=False, dry_run=True)
        problems = planned.where("problem IS NOT NULL").select("topic", "problem").collect()
    finally:
        os.utime(file, ns=(mtime_ns, mtime_ns))

    assert [row["topic"] for row in problems] == ["txn"]
    assert problems[0]["problem"].startswith("it has changed since it was read: run `kafka-")


def test_an_active_segment_counts_with_the_bytes_that_recovery_keeps(
    spark: SparkSession, built: tuple[Path, Path]
) -> None:
    segments = segments_to_decide(_tables(spark, built[1]), _options())

    assert segments.where("is_active AND size_bytes <> valid_bytes").isEmpty()
