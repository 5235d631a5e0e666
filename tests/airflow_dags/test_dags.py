"""The DAGs in a real Airflow, run by its scheduler."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local_airflow import Api, LocalAirflow, listening_addresses

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
DAY = next(iter(DAYS))
_POOL = {"name": "kafka_segments", "description": "Spark jobs", "include_deferred": False}
REBUILD, RETENTION, UPKEEP, MIGRATION, ROLLBACK = (
    f"kafka_segments_{name}"
    for name in ("rebuild", "retention", "upkeep", "migration", "migration_rollback")
)


@dataclass
class Scheduled:
    """A started Airflow that has much to do: runs as paths of its API."""

    airflow: LocalAirflow
    api: Api
    warehouse: Path  # of the backfill, which is not the default one
    brokers: list[Path]
    migration: str
    misspelt: str
    misplaced: str


@pytest.fixture(scope="module")
def logs(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory of two partitions."""
    folder = tmp_path_factory.mktemp("source") / "logs"
    for name in PARTITIONS:
        shutil.copytree(broker / "logs" / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def scheduled(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduled]:
    """All of Airflow's processes, asked for a backfill of DAYS, for migrations, and for nonsense.

    The backfill may have two runs at a time. The migration has the logs of two brokers.
    """
    airflow = LocalAirflow(tmp_path_factory.mktemp("scheduler"), logs)
    own = airflow.folder / "own"
    brokers = [airflow.folder / f"broker-{number}" for number in (1, 2)]
    for name, folder in zip(PARTITIONS, brokers, strict=True):
        shutil.copytree(logs / name, folder / name)
    with airflow.started(RETENTION, MIGRATION, ROLLBACK) as api:
        api.call("PATCH", "/pools/kafka_segments?update_mask=slots", _POOL | {"slots": 3})
        conf = {"sources": list(map(str, brokers)), "warehouse": str(airflow.folder / "migrated")}
        migration = api.trigger(MIGRATION, conf)
        misspelt = api.trigger(MIGRATION, {"sources": ["/data/logs"], "covnert": True})
        api.pause(REBUILD, paused=True)
        days = [f"{day}T00:00:00Z" for day in DAYS]
        backfill = {"dag_id": REBUILD, "from_date": days[0], "to_date": days[-1]}
        conf = {"warehouse": str(own)}
        api.call("POST", "/backfills", {**backfill, "dag_run_conf": conf, "max_active_runs": 2})
        api.pause(REBUILD, paused=False)
        misplaced = api.trigger(RETENTION, {"topic_configs": "/there/is/none"})
        yield Scheduled(airflow, api, own, brokers, migration, misspelt, misplaced)
    assert airflow.processes() == []


@pytest.fixture(scope="module")
def rebuilt(scheduled: Scheduled) -> Scheduled:
    """The same once the backfill has ended well."""

    def is_done() -> bool:
        runs = scheduled.api.runs(REBUILD)
        assert not [run for run in runs if run["state"] == "failed"], scheduled.api.tail()
        return set(DAYS) <= {day(run) for run in runs if run["state"] == "success"}

    scheduled.api.wait("the rebuilds", is_done)
    return scheduled


def test_a_key_that_the_dag_has_not_fails_the_first_task_with_the_one_that_is_meant(
    scheduled: Scheduled,
) -> None:
    assert scheduled.api.wait_ended(scheduled.misspelt) == "failed"

    said = scheduled.airflow.task_log(MIGRATION, scheduled.misspelt, "build")
    assert "no such param: covnert (is convert meant?)" in said
    assert "spark-submit" not in said


def test_a_run_whose_params_do_not_fit_is_refused(scheduled: Scheduled) -> None:
    for conf in ({"sources": ["/data/logs"], "time_index": "none"}, {}):
        with pytest.raises(OSError, match=r"400 POST .*Invalid input for param"):
            scheduled.api.trigger(MIGRATION, conf)


def test_nothing_listens_but_on_this_machine(scheduled: Scheduled) -> None:
    assert listening_addresses(scheduled.airflow.processes()) <= {"127.0.0.1", "::1"}


def test_a_wrong_option_is_one_line_in_the_tasks_log_and_not_tried_again(
    scheduled: Scheduled,
) -> None:
    assert scheduled.api.wait_ended(scheduled.misplaced) == "failed"

    said = scheduled.airflow.task_log(RETENTION, scheduled.misplaced, "decide")
    assert "decide failed: Invalid value for '--topic-configs': File '/there/is/none'" in said
    tried = scheduled.api.call("GET", f"{scheduled.misplaced}/taskInstances/decide/0")
    assert tried["try_number"] == 1


def test_a_migration_is_applied_once_a_person_approves_and_rolled_back(
    scheduled: Scheduled, broker: Path
) -> None:
    api, brokers = scheduled.api, scheduled.brokers
    before = {folder: _all_files(folder) for folder in brokers}

    asked = _approve(api, scheduled.migration)
    assert api.wait_ended(scheduled.migration) == "success"
    applied = {folder: _files(folder) for folder in brokers}
    (plan,) = [word for word in asked["subject"].split() if word.startswith("airflow-")]
    conf = {"plan": plan.rstrip("?"), "warehouse": str(scheduled.airflow.folder / "migrated")}
    rollback = api.trigger(ROLLBACK, conf)
    asked_back = _approve(api, rollback)
    assert api.wait_ended(rollback) == "success"

    assert "status: 2 verified (" in asked["body"]
    assert all(str(folder) in asked["body"] for folder in brokers)
    expected = _rebuilt(broker)
    for name, folder in zip(PARTITIONS, brokers, strict=True):
        assert applied[folder] == {
            path: content for path, content in expected.items() if path.startswith(name)
        }
    assert "preview: 2 would swap back (" in asked_back["body"]
    assert {folder: _all_files(folder) for folder in brokers} == before


def test_a_backfill_of_two_runs_at_a_time_runs_them_one_by_one(rebuilt: Scheduled) -> None:
    tasks = rebuilt.api.call("GET", f"/dags/{REBUILD}/dagRuns/~/taskInstances")["task_instances"]
    spans = [
        (
            min(task["start_date"] for task in tasks if _is(task, run, "build")),
            max(task["end_date"] for task in tasks if _is(task, run, "validate")),
        )
        for run in {task["dag_run_id"] for task in tasks}
    ]

    (_, first_end), (second_start, _) = sorted(spans)
    assert first_end <= second_start


def test_rebuild_gives_the_brokers_index_files(rebuilt: Scheduled, broker: Path) -> None:
    assert _files(rebuilt.airflow.indexes / "broker-0") == _rebuilt(broker)


def test_retention_decides_each_rebuild_in_its_warehouse_and_at_its_moment(
    rebuilt: Scheduled, spark: "SparkSession"
) -> None:
    api = rebuilt.api
    labels = {f"{moment} {rebuilt.warehouse}" for moment in DAYS.values()}
    api.wait("a decision for each", lambda: labels <= api.mapped(RETENTION, "decide"))
    label = str(rebuilt.warehouse)
    api.wait("the reports", lambda: label in api.mapped(RETENTION, "report"))

    decisions = spark.read.format("delta").load(str(rebuilt.warehouse / "retention_decisions"))
    moments = decisions.selectExpr("unix_millis(decided_at)").distinct().collect()
    assert sorted(row[0] for row in moments) == sorted(DAYS.values())
    assert (rebuilt.warehouse / "_report.html").stat().st_size > 0
    assert not rebuilt.airflow.warehouse.exists()


def test_upkeep_compacts_and_writes_the_report(rebuilt: Scheduled) -> None:
    page = rebuilt.airflow.folder / "upkeep.html"
    before = _files(rebuilt.airflow.indexes)

    conf = {"report": str(page), "warehouse": str(rebuilt.warehouse)}
    output = rebuilt.airflow.run("dags", "test", UPKEEP, DAY, "--conf", json.dumps(conf))

    assert _files(rebuilt.airflow.indexes) == before
    assert "table segments" in output
    assert page.stat().st_size > 0


def day(run: dict[str, Any]) -> str:
    """Give the day of a run."""
    return str(run["logical_date"])[:10]


def _is(task: dict[str, Any], run: str, name: str) -> bool:
    return bool(task["dag_run_id"] == run and task["task_id"] == name)


def _approve(api: Api, run: str) -> Any:
    """Approve once a run asks; gives what it asked."""
    api.wait("the question", lambda: api.state(run, "approve") == "awaiting_input")
    details = f"{run}/taskInstances/approve/-1/hitlDetails"
    asked = api.call("GET", details)
    api.call("PATCH", details, {"chosen_options": ["Approve"], "params_input": {}})
    return asked


def _all_files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path: content
        for path, (content, _) in _all_files(folder).items()
        if path.endswith((".index", ".timeindex", ".txnindex"))
    }


def _rebuilt(broker: Path) -> dict[str, bytes]:
    files = _files(broker / "rebuilt")
    return {path: files[path] for path in files if path.startswith(PARTITIONS)}
