"""A migration from its plan to its rollback, on logs with messages v0 and v1."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.choose import few_rows
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import NoSpaceError, UsageError
from kafka_segments.kafka.index.formats.kip33_index import WithoutTimestamps
from kafka_segments.verbs.change.migrate.plan.run import MigrationOptions, run_plan
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from kafka_segments.verbs.change.migrate.steps.log_step import LogStep
from kafka_segments.verbs.change.migrate.steps.run import Migration
from kafka_segments.verbs.change.migrate.steps.status import status_without_spark
from support.model.plain_decoder import PlainRecord, plain_records

MTIME_NS = 1_400_000_000_123_456_789
NOW_MS = 1_795_000_000_000
CASES = ("v0-gzip", "v0-multi-segment", "v1-lz4-createtime")
REFUSED, DAMAGED, WHOLE = "v2-offset-overflow", "v1-tail-partial", "v2-headers-and-nulls"
Tree = dict[str, tuple[bytes, int]]


@pytest.fixture
def logs(synthetic: Path, tmp_path: Path) -> Path:
    return _old_logs(synthetic, tmp_path / "logs")


def _old_logs(synthetic: Path, logs: Path) -> Path:
    """Write a log directory as an old broker leaves it; one log is as it is to be."""
    for case in (*CASES, REFUSED, DAMAGED, WHOLE):
        folder = logs / f"{case}-0"
        folder.mkdir(parents=True)
        for log in (synthetic / case / "t-0").glob("*.log"):
            shutil.copy(log, folder)
        if case == WHOLE:
            for file in (synthetic / case / "expected" / "segment").rglob("*index"):
                shutil.copy(file, folder)
        for file in folder.iterdir():
            os.utime(file, ns=(5, MTIME_NS))
    return logs


def _tree(folder: Path) -> Tree:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


def _records(tree: Tree, folder: str) -> list[tuple[Any, ...]]:
    def form(record: PlainRecord) -> tuple[Any, ...]:
        return record.offset, record.key, record.value, tuple(record.headers)

    logs = sorted(name for name in tree if name.startswith(f"{folder}/") and name.endswith(".log"))
    return [form(record) for log in logs for record in plain_records(tree[log][0])]


def _plan(
    spark: SparkSession, sources: Sequence[Path], rules: MigrationRules, **options: Any
) -> list[Any]:
    warehouse = Warehouse(spark, str(sources[0].parent / "wh"))
    asked = MigrationOptions(tuple(map(str, sources)), rules, NOW_MS, plan_id="p", **options)
    with ExitStack() as caches:
        _, planned = run_plan(warehouse, asked, caches, dry_run=False)
        return planned.orderBy("path").collect()


def _migration(spark: SparkSession, logs: Path) -> Migration:
    return Migration(Warehouse(spark, str(logs.parent / "wh")), "p", now_ms=NOW_MS)


def _told(logs: Path) -> list[LogStep]:
    """Give what `migrate status` says without Spark."""
    told = status_without_spark(str(logs.parent / "wh"), "p")
    assert told is not None
    return list(told)


def _said(steps: Iterable[LogStep]) -> dict[str, tuple[str, str]]:
    return {Path(step.log).name.removesuffix("-0"): (step.status, step.in_place) for step in steps}


def _holding(lock: Path) -> subprocess.Popen[bytes]:
    """Start a process that holds a log directory's lock file, as a broker does, until its end."""
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX |"
        " fcntl.LOCK_NB); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, lock]
    broker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert broker.stdout is not None
    broker.stdout.readline()
    return broker


class Planned(NamedTuple):
    """A log directory with a plan that converts, and what it was before."""

    migration: Migration
    logs: Path
    rows: list[Any]
    before: Tree


LEFT = dict.fromkeys((REFUSED, DAMAGED), ("refused", "before"))


@pytest.fixture(scope="module")
def planned(
    spark: SparkSession, synthetic: Path, tmp_path_factory: pytest.TempPathFactory
) -> Planned:
    logs = _old_logs(synthetic, tmp_path_factory.mktemp("migration") / "logs")
    before = _tree(logs)
    with few_rows(spark):
        rows = _plan(spark, (logs,), MigrationRules(convert=True))
    return Planned(_migration(spark, logs), logs, rows, before)


@pytest.fixture(scope="module")
def staged(spark: SparkSession, planned: Planned) -> list[LogStep]:
    with few_rows(spark):
        return list(planned.migration.stage())


@pytest.fixture(scope="module")
def verified(spark: SparkSession, planned: Planned, staged: list[LogStep]) -> Planned:
    """What is staged, which nothing applies before it is verified."""
    with few_rows(spark):
        refused = _said(planned.migration.apply(execute=True))
        assert refused == dict.fromkeys(CASES, ("refused", "before")) | LEFT
        found = _said(planned.migration.verify())
    assert found == dict.fromkeys(CASES, ("done", "before")) | LEFT
    return planned


@pytest.fixture(scope="module")
def killed(spark: SparkSession, verified: Planned) -> Planned:
    """What an apply left that died before it noted what it had done."""
    with pytest.MonkeyPatch.context() as patch, few_rows(spark):
        patch.setattr(Migration, "_note_swaps", _die)
        with pytest.raises(KeyboardInterrupt):
            list(verified.migration.apply(execute=True))
    return verified


@pytest.fixture(scope="module")
def applied(spark: SparkSession, killed: Planned) -> Planned:
    with few_rows(spark):
        done = _said(_migration(spark, killed.logs).apply(execute=True))
    assert done == dict.fromkeys(CASES, ("in place already", "after")) | LEFT
    return killed


def test_a_plan_says_what_becomes_of_each_log(planned: Planned) -> None:
    assert {row["topic"]: row["action"] for row in planned.rows} == {
        **dict.fromkeys(CASES, "convert"),
        **dict.fromkeys((REFUSED, DAMAGED), "refuse"),
        WHOLE: "keep",
    }
    damaged = next(row for row in planned.rows if row["topic"] == DAMAGED)
    assert "would cut off 632 bytes from byte 28961 on" in damaged["reason"]


@pytest.mark.usefixtures("few")
def test_a_status_by_spark_writes_nothing(
    spark: SparkSession, planned: Planned, tmp_path: Path
) -> None:
    warehouse = tmp_path / "wh"
    shutil.copytree(planned.logs.parent / "wh", warehouse)
    for noted in ("migration_events", "_versions.json"):  # of a plan that no step has begun
        shutil.rmtree(warehouse / noted, ignore_errors=True)
    before = _tree(warehouse)

    steps = list(Migration(Warehouse(spark, str(warehouse)), "p", now_ms=NOW_MS).status())

    assert [step.log for step in steps] == [
        step.log for step in status_without_spark(str(warehouse), "p") or ()
    ]
    assert _tree(warehouse) == before


def test_logs_are_staged_but_for_those_that_the_plan_refuses(
    planned: Planned, staged: list[LogStep]
) -> None:
    damaged = next(row for row in planned.rows if row["topic"] == DAMAGED)

    assert _said(staged) == dict.fromkeys(CASES, ("done", "before")) | LEFT
    assert {step.message for step in staged if step.topic == DAMAGED} == {
        f"by the plan: {damaged['path']}: {damaged['reason']}"
    }


@pytest.mark.usefixtures("few")
def test_what_is_verified_would_be_swapped_in_and_nothing_has_changed(verified: Planned) -> None:
    waiting = _said(verified.migration.apply(execute=False))

    assert waiting == dict.fromkeys(CASES, ("would swap in", "before")) | LEFT
    assert _tree(verified.logs) == verified.before


@pytest.mark.usefixtures("few")
def test_what_a_killed_apply_left_is_told_with_and_without_spark(killed: Planned) -> None:
    steps = list(killed.migration.status())

    assert _told(killed.logs) == steps
    assert _said(steps) == {
        **dict.fromkeys(CASES, ("applied", "after")),
        WHOLE: ("left alone", "before"),
        **LEFT,
    }


def test_what_is_applied_has_the_records_and_the_bytes_that_were_planned(applied: Planned) -> None:
    expected_bytes = {row["path"]: row["expected_bytes"] for row in applied.rows}
    after = _tree(applied.logs)
    for case in CASES:
        assert _records(after, f"{case}-0") == _records(applied.before, f"{case}-0") != []
        for log in (applied.logs / f"{case}-0").glob("*.log"):
            assert log.stat().st_size == expected_bytes[str(log)]
            assert log.stat().st_mtime_ns == MTIME_NS
            assert log.read_bytes()[16] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_what_is_rolled_back_is_as_before(applied: Planned) -> None:
    back = _said(applied.migration.roll_back(execute=True, discard=False))

    assert back == dict.fromkeys(CASES, ("done", "before"))
    assert _tree(applied.logs) == applied.before
    steps = list(applied.migration.status())
    assert _told(applied.logs) == steps
    assert _said(steps)[CASES[0]] == ("rolled back", "before")


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def _give_brokers(logs: Path, other: Path, synthetic: Path) -> Path:
    """Say whose the log directories are; gives a segment of a log that is to change."""
    for broker, log_dir in enumerate((logs, other), start=1):
        (log_dir / "meta.properties").write_text(f"version=1\nnode.id={broker}\ncluster.id=c\n")
    shutil.copytree(synthetic / "v0-none" / "t-0", other / f"{DAMAGED}-0")
    shutil.copytree(synthetic / "v0-none" / "t-0", other / "changes-0")
    return other / "changes-0" / f"{0:020d}.log"


def _check_that_staging_asks_for_room(
    migration: Migration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("kafka_segments.files.changes.free_space.free_bytes", lambda _: 100)
        with pytest.raises(NoSpaceError, match=r"are to be written .* 100 are free"):
            migration.stage()
    assert not (tmp_path / "aside").exists()


def _check_that_replicas_name_a_refused_one(planned: Sequence[Any], logs: Path) -> None:
    rows = {(row["broker_id"], row["topic"]): row for row in planned}
    named = [text for text in rows[2, DAMAGED]["hazards"] if "a replica is refused" in text]
    assert named == [f"a replica is refused and stays as it is: broker 1, {logs}"]
    assert not rows[1, DAMAGED]["is_migrated"]
    assert rows[2, DAMAGED]["is_migrated"]
    assert not any("a replica is" in text for text in rows[1, CASES[1]]["hazards"])


@pytest.mark.long
def test_replicas_under_a_running_broker_with_time_indexes_by_kip_33(
    spark: SparkSession,
    logs: Path,
    synthetic: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = MigrationRules(without_timestamps=WithoutTimestamps.MTIME_FIRST)
    with pytest.raises(UsageError, match="lies in the log directory"):
        _plan(spark, (logs,), rules, stage_dir=f"{logs}/x")
    other = tmp_path / "other"
    shutil.copytree(synthetic / CASES[1] / "t-0", other / f"{CASES[1]}-0")
    shutil.copytree(synthetic / "v0-one-record" / "t-0", logs / "differs-0")
    shutil.copytree(synthetic / "v2-one-record" / "t-0", other / "differs-0")
    changed = _give_brokers(logs, other, synthetic)
    before = _tree(logs)
    planned = _plan(spark, (logs, other), rules, stage_dir=str(tmp_path / "aside"))
    _check_that_replicas_name_a_refused_one(planned, logs)
    (logs / ".lock").touch()
    os.utime(changed, ns=(5, 5))
    migration = _migration(spark, logs)
    _check_that_staging_asks_for_room(migration, tmp_path, monkeypatch)
    staged = {(step.broker_id, step.topic): step for step in migration.stage()}
    assert staged[1, DAMAGED].status == "refused"
    assert staged[2, DAMAGED].status == "done"
    assert "when it was planned: plan again" in staged[2, "changes"].message

    proven = {step.log: step for step in migration.verify()}
    broker = _holding(logs / ".lock")
    try:
        locked = {step.log: step.message for step in migration.apply(execute=True)}
    finally:
        broker.communicate()
    applied = {step.log: step.status for step in migration.apply(execute=True)}

    for log_dir in (logs, other):
        assert proven[str(log_dir / f"{CASES[1]}-0")].status == "done"
        spoilt = str(log_dir / "differs-0")
        assert "do not hold the same records" in proven[spoilt].message
        assert applied[spoilt] == "refused"
    why = "`migrate stage` refused: "
    assert why in locked[str(other / "changes-0")]
    assert "plan again" in locked[str(other / "changes-0")]
    assert _told(logs) == list(migration.status())
    said = {step.log: step.message for step in migration.status()}
    assert said[str(other / "changes-0")].startswith(why)
    assert "its .lock is held: stop its broker first" in locked[str(logs / f"{CASES[1]}-0")]
    assert locked[str(other / f"{CASES[1]}-0")] == "migrated"
    assert applied[str(logs / f"{CASES[1]}-0")] == "done"
    migrated = _tree(logs)
    assert {name: file for name, file in migrated.items() if name in before} == before
    index = (logs / f"{CASES[1]}-0" / f"{0:020d}.timeindex").read_bytes()
    assert index == (MTIME_NS // 1_000_000).to_bytes(8, "big") + bytes(4)
    aside = tmp_path / "aside" / "p" / str(logs).lstrip("/")
    assert (aside / f"{CASES[1]}-0.json").exists()
