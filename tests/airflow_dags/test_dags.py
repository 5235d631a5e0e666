"""The DAGs in a real Airflow, run by its scheduler; by Spark only where that is the point."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.house.local_airflow import Api, LocalAirflow, listening_addresses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(3000)

PARTITIONS = ("ct-two-partitions-0", "ct-two-partitions-1")
# The last two midnights: with the later one in the backfill, the schedule adds no run of its own.
_MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = {
    day.date().isoformat(): int(day.timestamp() * 1000)
    for day in (_MIDNIGHT - timedelta(days=1), _MIDNIGHT)
}
IN_CI = {"real", "shut", "killed", "misspelt", "recovery"}
"""Runs that tests ask for which are not long."""
TRIES = 3
"""What a task has by the DAGs' defaults: two more after the first."""
_POOL = {"name": "kafka_segments", "slots": 3, "description": "", "include_deferred": False}
_REBUILDS = ["build_indexes.py", "validate_tables.py"]
REBUILD, RETENTION, UPKEEP, MIGRATION, ROLLBACK, RECOVERY, BACKUPS = (
    f"kafka_segments_{name}"
    for name in (
        *("rebuild", "retention", "upkeep", "migration", "migration_rollback", "recovery"),
        "backups",
    )
)


# In place of spark-submit: notes what is submitted, and hands it on where the warehouse's name is
# real. A log of two is refused, a gate is shut, a driver killed and a backup short where the names
# say so.
_STAND_IN = f"""#!{sys.executable}
import json, os, signal, sys, time

arguments = sys.argv[1:]
at = next(i for i, argument in enumerate(arguments) if argument.endswith(".py"))
job, given = os.path.basename(arguments[at]), arguments[at + 1:]
with open(os.environ["SUBMITTED"], "a") as notes:
    notes.write(json.dumps([job, *given]) + "\\n")
option = "--warehouse" if "--warehouse" in given else given[0]
warehouse = os.path.basename(given[given.index(option) + 1])
if warehouse == "real":
    os.execv({str(Path(sys.executable).with_name("spark-submit"))!r}, ["spark-submit", *arguments])
print("WARNING: Using incubator modules: jdk.incubator.vector", flush=True)
time.sleep(1)
if warehouse == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if (warehouse, job) == ("shut", "validate_tables.py"):
    sys.exit("findings: fatal segments offsets_do_not_overlap: 3 of 24 rows")

if job == "check_backup.py" and any("/short/" in argument for argument in given):
    sys.exit("findings: 1 of 2 logs is incomplete")

def say(log, status, message=""):
    print(json.dumps(dict(log=log, status=status, segments=2, bytes=300, message=message)))

if job == "migrate_legacy.py":
    done = {{"status": "verified", "rollback": "would swap back"}}.get(given[0], "done")
    if given[0] in ("stage", "verify", "status", "apply", "rollback"):
        say("/logs/a-0", done)
    if given[0] in ("stage", "status"):
        say("/logs/b-0", "refused", "bad CRC at byte 99")
        sys.exit(1)
if job == "plan_recovery.py":
    status = "state" if given[0] == "kit" else "status"
    cut = dict(cut_bytes=700, cut_records=12)
    print(json.dumps({{"log": "a-0", status: "ready", "message": "torn", **cut}}))
    sys.exit(1)
"""


@dataclass
class Scheduled:
    """A started Airflow that has much to do: runs as paths of its API."""

    airflow: LocalAirflow
    api: Api
    runs: dict[str, str]

    def warehouse(self, name: str) -> Path:
        """Give the warehouse of this name."""
        return self.airflow.folder / name

    def submitted(self, name: str) -> list[list[str]]:
        """Give the jobs for a warehouse, each with its arguments."""
        notes = (self.airflow.folder / "submitted").read_text("utf-8").splitlines()
        return [job for job in map(json.loads, notes) if str(self.warehouse(name)) in job]


@pytest.fixture(scope="module")
def logs(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory of two partitions."""
    folder = tmp_path_factory.mktemp("source") / "logs"
    for name in PARTITIONS:
        shutil.copytree(broker / "logs" / name, folder / name)
    return folder


def _is_long_one_of(file: Path) -> Callable[[pytest.Item], bool]:
    return lambda item: item.path == file and item.get_closest_marker("long") is not None


@pytest.fixture(scope="module")
def scheduled(
    request: pytest.FixtureRequest, logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scheduled]:
    """All of Airflow's processes with a stand-in for spark-submit, asked for runs of all kinds.

    Among them a backfill of DAYS that may have two runs at a time. Where no long test will ask,
    there are those of CI alone, and a backfill of the last day.
    """
    at_length = any(map(_is_long_one_of(request.path), request.session.items))
    folder = tmp_path_factory.mktemp("scheduler")
    stand_in = folder / "bin" / "spark-submit"
    stand_in.parent.mkdir()
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    airflow = LocalAirflow(folder, logs)
    airflow.env |= {
        "PATH": f"{stand_in.parent}:{os.environ['PATH']}",
        "SUBMITTED": str(folder / "submitted"),
    }
    asked = {
        "real": (REBUILD, {"warehouse": str(folder / "real")}),
        "shut": (REBUILD, {"warehouse": str(folder / "shut")}),
        "killed": (RETENTION, {"warehouse": str(folder / "killed")}),
        "misplaced": (
            RETENTION,
            {"warehouse": str(folder / "real"), "topic_configs": "/there/is/none"},
        ),
        "misspelt": (MIGRATION, {"sources": ["/data/logs"], "covnert": True}),
        "migration": (
            MIGRATION,
            {"sources": ["/logs/1", "/logs/2"], "warehouse": str(folder / "migrated")},
        ),
        "recovery": (RECOVERY, {"sources": ["/logs/1", "/logs/2"], "kits": str(folder / "kits")}),
        "backups": (
            BACKUPS,
            {
                "warehouse": str(folder / "backed-up"),
                "backups": [
                    {
                        "name": name,
                        "backup": [f"/backups/{name}/{{date}}"],
                        "against": ["n1=/logs/1", "n2=/logs/2"],
                        "moment": "{date}T01:00:00Z",
                    }
                    for name in ("short", "whole")
                ],
            },
        ),
    }
    with airflow.started(RETENTION, MIGRATION, ROLLBACK, RECOVERY, BACKUPS) as api:
        api.call("PATCH", "/pools/kafka_segments?update_mask=slots", _POOL)
        api.pause(REBUILD, paused=True)
        days = [f"{day}T00:00:00Z" for day in DAYS][0 if at_length else -1 :]
        backfill = {"dag_id": REBUILD, "from_date": days[0], "to_date": days[-1]}
        conf = {"warehouse": str(folder / "own")}
        api.call("POST", "/backfills", {**backfill, "dag_run_conf": conf, "max_active_runs": 2})
        runs = {
            name: api.trigger(dag, given)
            for name, (dag, given) in asked.items()
            if at_length or name in IN_CI
        }
        api.pause(REBUILD, paused=False)
        yield Scheduled(airflow, api, runs)
    assert airflow.processes() == []


@pytest.fixture(scope="module")
def backfilled(scheduled: Scheduled) -> Scheduled:
    """The same once the backfill has ended well."""

    def is_done() -> bool:
        runs = [run for run in scheduled.api.runs(REBUILD) if run["run_type"] == "backfill"]
        assert not [run for run in runs if run["state"] == "failed"], scheduled.api.tail()
        return len([run for run in runs if run["state"] == "success"]) == len(DAYS)

    scheduled.api.wait("the backfill", is_done)
    return scheduled


@pytest.fixture(scope="module")
def rebuilt(scheduled: Scheduled) -> Scheduled:
    """The same once Spark itself has rebuilt the logs."""
    assert scheduled.api.wait_ended(scheduled.runs["real"]) == "success"
    return scheduled


def test_a_key_that_the_dag_has_not_fails_the_first_task_with_the_one_that_is_meant(
    scheduled: Scheduled,
) -> None:
    assert scheduled.api.wait_ended(scheduled.runs["misspelt"]) == "failed"

    said = scheduled.airflow.task_log(MIGRATION, scheduled.runs["misspelt"], "build")
    assert "no such param: covnert (is convert meant?)" in said
    assert "Spark-Submit" not in said


def test_a_run_whose_params_do_not_fit_is_refused(scheduled: Scheduled) -> None:
    for conf in ({"sources": ["/data/logs"], "time_index": "none"}, {}):
        with pytest.raises(OSError, match=r"400 POST .*Invalid input for param"):
            scheduled.api.trigger(MIGRATION, conf)


def test_nothing_listens_but_on_this_machine(scheduled: Scheduled) -> None:
    assert listening_addresses(scheduled.airflow.processes()) <= {"127.0.0.1", "::1"}


def test_a_killed_driver_is_told_by_its_signal_and_tried_again(scheduled: Scheduled) -> None:
    assert scheduled.api.wait_ended(scheduled.runs["killed"]) == "failed"

    said = scheduled.airflow.task_log(RETENTION, scheduled.runs["killed"], "decide")
    assert "decide failed: the driver was ended by SIGKILL: " in said
    assert "decide failed: WARNING" not in said
    assert f"It is tried again: that was try 1 of {TRIES}" in said
    assert 2 <= len(scheduled.submitted("killed")) <= TRIES  # a lock can end one before its job


@pytest.mark.long
def test_a_wrong_option_is_one_line_in_the_tasks_log_and_not_tried_again(
    scheduled: Scheduled,
) -> None:
    assert scheduled.api.wait_ended(scheduled.runs["misplaced"]) == "failed"

    # A locked database of Airflow's can end a try before its job, or lose how it ended.
    said = scheduled.airflow.task_log(RETENTION, scheduled.runs["misplaced"], "decide")
    wrong = "decide failed: Invalid value for '--topic-configs': File '/there/is/none'"
    assert 1 <= said.count(wrong) < TRIES, said


@pytest.mark.long
def test_a_migration_is_applied_once_a_person_approves_and_rolled_back(
    scheduled: Scheduled,
) -> None:
    api, run = scheduled.api, scheduled.runs["migration"]
    api.wait("the question", lambda: api.state(run, "approve") == "awaiting_input")
    assert scheduled.submitted("migrated")[-1][:2] == ["migrate_legacy.py", "status"]

    asked = _approve(api, run)
    (plan,) = [word.rstrip("?") for word in asked["subject"].split() if "airflow-" in word]
    conf = {"plan": plan, "warehouse": str(scheduled.warehouse("migrated"))}
    rollback = api.trigger(ROLLBACK, conf)
    asked_back = _approve(api, rollback)

    assert asked["body"].startswith("Staged and verified beside /logs/1, /logs/2:\n\n- stage: ")
    assert "- verify: 1 done (2 segments, 300 bytes); 0 refused or failed\n" in asked["body"]
    assert "- `/logs/b-0`: `bad CRC at byte 99`\n" in asked["body"]
    assert "- preview: 1 would swap back (2 segments, 300 bytes); 0 ref" in asked_back["body"]
    steps = [job[1] for job in scheduled.submitted("migrated") if job[0] == "migrate_legacy.py"]
    assert steps == [
        *("inventory", "plan", "stage", "verify", "status", "apply"),
        *("rollback", "rollback"),
    ]
    assert ["--execute" in job for job in scheduled.submitted("migrated")[-3:]] == [
        True,
        False,
        True,
    ]


def test_a_recovery_kit_is_applied_once_a_person_approves(scheduled: Scheduled) -> None:
    def jobs() -> list[list[str]]:
        notes = (scheduled.airflow.folder / "submitted").read_text("utf-8").splitlines()
        return [job[1:] for job in map(json.loads, notes) if job[0] == "plan_recovery.py"]

    api, run = scheduled.api, scheduled.runs["recovery"]
    api.wait("the question", lambda: api.state(run, "approve") == "awaiting_input")
    before = jobs()
    asked = _approve(api, run)
    kit, preview, apply = jobs()

    assert before == [kit, preview]
    assert kit[0] == "kit" and kit.count("--source") == 2
    out = kit[kit.index("--out") + 1]
    assert Path(out).parent == scheduled.airflow.folder / "kits"
    assert preview == ["apply", out, "--output", "json"]
    assert apply == [*preview, "--execute"]
    assert asked["subject"] == "Apply the recovery kit of /logs/1, /logs/2?"
    assert "- `a-0`: 700 bytes, whose headers name 12 records\n" in asked["body"]
    assert f"`kafka-segments recovery rollback {out} --execute`" in asked["body"]


@pytest.mark.long
def test_a_backup_that_misses_something_fails_its_task_alone_and_is_not_tried_again(
    scheduled: Scheduled,
) -> None:
    api, run = scheduled.api, scheduled.runs["backups"]
    assert api.wait_ended(run) == "failed"

    date = api.call("GET", run)["run_after"][:10]
    jobs = {job[job.index("--backup") + 1]: job for job in scheduled.submitted("backed-up")}
    assert len(scheduled.submitted("backed-up")) == 2
    assert sorted(jobs) == [f"/backups/{name}/{date}" for name in ("short", "whole")]
    for job in jobs.values():
        assert job[:2] == ["check_backup.py", "verify"]
        assert [job[at + 1] for at, word in enumerate(job) if word == "--against"] == [
            "n1=/logs/1",
            "n2=/logs/2",
        ]
        assert job[job.index("--moment") + 1] == f"{date}T01:00:00Z"
        assert job[job.index("--digests") + 1] == job[job.index("--warehouse") + 1]
    tries = api.call("GET", f"{run}/taskInstances")["task_instances"]
    verified = [one for one in tries if one["task_id"] == "verify"]
    states = {one["rendered_map_index"]: one["state"] for one in verified}
    assert states == {"short": "failed", "whole": "success"}
    said = scheduled.airflow.task_log(BACKUPS, run, "verify")
    assert "verify failed: findings: 1 of 2 logs is incomplete" in said


@pytest.mark.long
def test_spark_verifies_a_backup_and_keeps_what_it_compared(
    scheduled: Scheduled, logs: Path, tmp_path: Path
) -> None:
    shutil.copytree(logs / PARTITIONS[0], tmp_path / "backup" / PARTITIONS[0])
    nightly = {"name": "half", "backup": [str(tmp_path / "backup")], "against": [f"n1={logs}"]}
    nightly["moment"] = "{date}T00:00:00Z"
    warehouse = tmp_path / "real"  # for which the stand-in starts Spark
    run = scheduled.api.trigger(BACKUPS, {"warehouse": str(warehouse), "backups": [nightly]})
    assert scheduled.api.wait_ended(run) == "failed"

    said = scheduled.airflow.task_log(BACKUPS, run, "verify")
    assert "verify failed: findings: 1 of 2 logs are complete in the backup as of" in said
    assert {table.name for table in warehouse.iterdir()} >= {"divergences", "offset_ranges"}


def test_the_gate_says_which_expectation_failed_how_often_and_holds_retention_off(
    scheduled: Scheduled,
) -> None:
    assert scheduled.api.wait_ended(scheduled.runs["shut"]) == "failed"

    said = scheduled.airflow.task_log(REBUILD, scheduled.runs["shut"], "validate")
    assert "validate failed: findings: fatal segments offsets_do_not_overlap: 3 of 24 rows" in said
    jobs = [job[0] for job in scheduled.submitted("shut")]
    assert jobs == ["build_indexes.py", "validate_tables.py"]


@pytest.mark.long
def test_a_backfill_of_two_runs_at_a_time_runs_them_one_by_one(backfilled: Scheduled) -> None:
    jobs = [job for job in backfilled.submitted("own") if job[0] in _REBUILDS]
    moments = [job[job.index("--now-ms") + 1] for job in jobs]

    assert [job[0] for job in jobs] == [*_REBUILDS, *_REBUILDS]
    assert moments[0] == moments[1] and moments[2] == moments[3]
    assert {moments[0], moments[2]} == set(map(str, DAYS.values()))


@pytest.mark.long
def test_retention_decides_each_rebuild_in_its_warehouse_and_at_its_moment(
    backfilled: Scheduled,
) -> None:
    own = backfilled.warehouse("own")
    labels = {f"{moment} {own}" for moment in DAYS.values()}
    backfilled.api.wait(
        "a decision for each", lambda: labels <= backfilled.api.mapped(RETENTION, "decide")
    )

    assert backfilled.submitted("warehouse") == []


def test_spark_rebuilds_the_brokers_index_files_and_retention_follows(
    rebuilt: Scheduled, broker: Path, spark: "SparkSession"
) -> None:
    place = rebuilt.warehouse("real")
    reports = rebuilt.api.mapped
    rebuilt.api.wait("the report", lambda: str(place) in reports(RETENTION, "report"))

    assert _files(rebuilt.airflow.indexes / "broker-0") == _rebuilt(broker)
    run = rebuilt.api.call("GET", rebuilt.runs["real"])
    asked_ms = int(datetime.fromisoformat(run["run_after"]).timestamp() * 1000)
    decisions = spark.read.format("delta").load(str(place / "retention_decisions"))
    moments = decisions.selectExpr("unix_millis(decided_at)").distinct().collect()
    assert [row[0] for row in moments] == [asked_ms]
    assert (place / "_report.html").stat().st_size > 0


@pytest.mark.long
def test_upkeep_compacts_and_writes_the_report(rebuilt: Scheduled) -> None:
    page = rebuilt.airflow.folder / "upkeep.html"
    before = _files(rebuilt.airflow.indexes)

    conf = {"report": str(page), "warehouse": str(rebuilt.warehouse("real"))}
    day = next(iter(DAYS))
    output = rebuilt.airflow.run("dags", "test", UPKEEP, day, "--conf", json.dumps(conf))

    assert _files(rebuilt.airflow.indexes) == before
    assert "table segments" in output
    assert page.stat().st_size > 0


def _approve(api: Api, run: str) -> Any:
    """Approve once a run asks, and wait until it ends well; gives what it asked.

    Airflow asks once more if the answer came before its scheduler had seen the task go to wait.
    """
    api.wait("the question", lambda: api.state(run, "approve") == "awaiting_input")
    details = f"{run}/taskInstances/approve/-1/hitlDetails"
    asked = api.call("GET", details)

    def end() -> str | None:
        if api.state(run, "approve") == "awaiting_input":
            with contextlib.suppress(OSError):  # the answer is there already
                api.call("PATCH", details, {"chosen_options": ["Approve"], "params_input": {}})
        return "success" if api.call("GET", run)["state"] == "success" else None

    api.wait(run, end)
    return asked


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".index", ".timeindex", ".txnindex")
    }


def _rebuilt(broker: Path) -> dict[str, bytes]:
    files = _files(broker / "rebuilt")
    return {path: files[path] for path in files if path.startswith(PARTITIONS)}
