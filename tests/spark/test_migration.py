"""A migration from its plan to its rollback, on logs with messages v0 and v1."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.errors import UsageError
from kafka_segments.index.kip33_index import WithoutTimestamps
from kafka_segments.pipelines import migration as pipeline
from kafka_segments.pipelines.migration import LogStep, Migration
from kafka_segments.pipelines.migration_plan import MigrationOptions, plan_migration
from kafka_segments.storage.migrated_segments import MigrationRules
from plain_decoder import PlainRecord, plain_records

MTIME_NS = 1_400_000_000_123_456_789
NOW_MS = 1_795_000_000_000
CASES = ("v0-gzip", "v0-multi-segment", "v1-compacted-gaps", "v1-lz4-createtime", "v1-ts-none")
REFUSED, DAMAGED, WHOLE = "v2-offset-overflow", "v1-tail-partial", "v2-headers-and-nulls"
Tree = dict[str, tuple[bytes, int]]


@pytest.fixture
def logs(synthetic: Path, tmp_path: Path) -> Path:
    """A log directory as an old broker leaves it; one log is as it is to be."""
    logs = tmp_path / "logs"
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


def _records(folder: Path) -> list[tuple[Any, ...]]:
    def form(record: PlainRecord) -> tuple[Any, ...]:
        return record.offset, record.key, record.value, tuple(record.headers)

    logs = sorted(folder.glob("*.log"))
    return [form(record) for log in logs for record in plain_records(log.read_bytes())]


def _plan(
    spark: SparkSession, logs: Path, *, rules: MigrationRules, plan_id: str = "p", **options: Any
) -> list[Any]:
    asked = MigrationOptions(
        (str(logs),), str(logs.parent / "wh"), rules, NOW_MS, plan_id=plan_id, **options
    )
    with ExitStack() as caches:
        _, planned = plan_migration(spark, asked, caches, dry_run=False)
        return planned.orderBy("path").collect()


def _migration(spark: SparkSession, logs: Path, plan_id: str = "p") -> Migration:
    return Migration(spark, str(logs.parent / "wh"), plan_id, now_ms=NOW_MS)


def _said(steps: Sequence[LogStep]) -> dict[str, tuple[str, str]]:
    return {Path(step.log).name.removesuffix("-0"): (step.status, step.in_place) for step in steps}


def test_from_plan_to_rollback_with_conversion(spark: SparkSession, logs: Path) -> None:
    before = _tree(logs)
    records = {case: _records(logs / f"{case}-0") for case in CASES}

    planned = _plan(spark, logs, rules=MigrationRules(convert=True))
    assert {row["topic"]: row["action"] for row in planned} == {
        **dict.fromkeys(CASES, "convert"),
        REFUSED: "refuse",
        DAMAGED: "indexes",
        WHOLE: "keep",
    }
    damaged = next(row for row in planned if row["topic"] == DAMAGED)
    assert any("it is not converted: its end is damaged" in text for text in damaged["hazards"])
    first = _migration(spark, logs)
    assert _said(list(first.status()))[CASES[0]] == ("planned", "before")
    done = dict.fromkeys((*CASES, DAMAGED), ("done", "before"))
    assert _said(first.stage()) == done
    assert _tree(logs) == before
    refused = _said(list(_migration(spark, logs).apply(execute=True)))
    assert refused == dict.fromkeys((*CASES, DAMAGED), ("refused", "before"))
    assert _said(_migration(spark, logs).verify()) == done
    assert _said(list(_migration(spark, logs).apply(execute=False))) == dict.fromkeys(
        done, ("would swap in", "before")
    )
    assert _tree(logs) == before

    assert _said(list(_migration(spark, logs).apply(execute=True))) == dict.fromkeys(
        done, ("done", "after")
    )
    for case in CASES:
        folder = logs / f"{case}-0"
        assert _records(folder) == records[case]
        sizes = {row["path"]: row["expected_bytes"] for row in planned}
        for log in folder.glob("*.log"):
            assert log.stat().st_size == sizes[str(log)]
            assert log.stat().st_mtime_ns == MTIME_NS
            assert log.read_bytes()[16] == 2
    migrated = _tree(logs)
    assert {name for name in before if migrated.get(name) == before[name]} >= {
        name for name in before if name.startswith((REFUSED, WHOLE))
    }
    assert _said(list(_migration(spark, logs).status())) == {
        **dict.fromkeys(done, ("applied", "after")),
        **dict.fromkeys((REFUSED, WHOLE), ("left alone", "before")),
    }
    assert _said(_migration(spark, logs).stage()) == dict.fromkeys(done, ("done", "after"))
    assert _said(_migration(spark, logs).verify()) == dict.fromkeys(done, ("done", "after"))
    assert _tree(logs) == migrated

    back = list(_migration(spark, logs).roll_back(execute=True, discard=False))
    assert _said(back) == dict.fromkeys(done, ("done", "before"))
    assert _tree(logs) == before
    assert set(_said(list(_migration(spark, logs).status())).values()) == {
        ("rolled back", "before"),
        ("left alone", "before"),
    }


def test_index_files_alone_by_kip_33_under_a_stage_folder_of_choice(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    rules = MigrationRules(without_timestamps=WithoutTimestamps.MTIME_FIRST)
    with pytest.raises(UsageError, match="lies in the log directory"):
        _plan(spark, logs, rules=rules, stage_dir=f"{logs}/x")
    before = _tree(logs)
    _plan(spark, logs, rules=rules, stage_dir=str(tmp_path / "aside"))
    (logs / ".lock").touch()
    migration = _migration(spark, logs)
    migration.stage()
    migration.verify()

    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX |"
        " fcntl.LOCK_NB); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, logs / ".lock"]
    broker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert broker.stdout is not None
        broker.stdout.readline()
        refused = list(migration.apply(execute=True))
    finally:
        broker.communicate()
    assert {step.status for step in refused} == {"refused"}
    assert all("its .lock is held: stop its broker first" in step.message for step in refused)
    with (logs / ".lock").open("r+") as free:
        fcntl.lockf(free, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert {step.status for step in migration.apply(execute=True)} == {"done"}
    migrated = _tree(logs)
    assert {name: file for name, file in migrated.items() if name in before} == before
    index = (logs / "v0-multi-segment-0" / f"{0:020d}.timeindex").read_bytes()
    assert index == (MTIME_NS // 1_000_000).to_bytes(8, "big") + bytes(4)
    assert (tmp_path / "aside" / "p" / str(logs).lstrip("/") / "v0-gzip-0.json").exists()


def test_a_process_that_dies_after_the_swap_leaves_what_the_next_run_finds_done(
    spark: SparkSession, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for case in (*CASES[1:], REFUSED, DAMAGED, WHOLE):
        shutil.rmtree(logs / f"{case}-0")
    _plan(spark, logs, rules=MigrationRules())
    migration = _migration(spark, logs)
    migration.stage()
    migration.verify()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.Migration, "_note_swaps", die)
        with pytest.raises(KeyboardInterrupt):
            list(migration.apply(execute=True))

    assert _said(list(_migration(spark, logs).status())) == {CASES[0]: ("applied", "after")}
    again = _said(list(_migration(spark, logs).apply(execute=True)))
    assert again == {CASES[0]: ("in place already", "after")}


def test_replicas_that_hold_other_records_are_not_proven(
    spark: SparkSession, logs: Path, synthetic: Path
) -> None:
    other = logs.parent / "more" / "logs"
    for folder in (logs, other):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "t-0").mkdir(parents=True)
    log = (synthetic / "v1-none-createtime" / "t-0" / f"{0:020d}.log").read_bytes()
    (logs / "t-0" / f"{0:020d}.log").write_bytes(log)
    (other / "t-0" / f"{0:020d}.log").write_bytes(log)
    (logs / "u-0").mkdir()
    (other / "u-0").mkdir()
    small = {logs: "v0-one-record", other: "v2-one-record"}
    for folder, case in small.items():
        source = synthetic / case / "t-0"
        shutil.copytree(source, folder / "u-0", dirs_exist_ok=True)
    asked = MigrationOptions(
        (str(logs), str(other)), str(logs.parent / "wh"), MigrationRules(), NOW_MS, plan_id="p"
    )
    with ExitStack() as caches:
        plan_migration(spark, asked, caches, dry_run=False)
    migration = _migration(spark, logs)
    migration.stage()

    proven = {step.log: step for step in migration.verify()}

    assert {Path(log).name: step.status for log, step in proven.items()} == {
        "t-0": "done",
        "u-0": "refused",
    }
    assert "do not hold the same records" in proven[str(logs / "u-0")].message
