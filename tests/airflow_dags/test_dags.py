"""The DAGs in a real Airflow: tested one by one, and run by its scheduler."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from local_airflow import Api, LocalAirflow, messages

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
DAY, DAY_MS = list(DAYS.items())[-1]
REBUILD, RETENTION, MIGRATION = (
    f"kafka_segments_{name}" for name in ("rebuild", "retention", "migration")
)


@dataclass
class Scheduled:
    """A started Airflow that has a backfill and a migration to do."""

    airflow: LocalAirflow
    api: Api
    migrated: Path
    migration: str


@pytest.fixture(scope="module")
def logs(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory of two partitions."""
    folder = tmp_path_factory.mktemp("source") / "logs"
    for name in PARTITIONS:
        shutil.copytree(broker / "logs" / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def scheduled(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduled]:
    """All of Airflow's processes, asked by the API for a backfill of DAYS and a migration."""
    airflow = LocalAirflow(tmp_path_factory.mktemp("scheduler"), logs)
    migrated = airflow.folder / "migrated"
    shutil.copytree(logs, migrated)
    with airflow.started() as api:
        api.pause(REBUILD, paused=True)
        days = [f"{day}T00:00:00Z" for day in DAYS]
        backfill = {"dag_id": REBUILD, "from_date": days[0], "to_date": days[-1]}
        api.call("POST", "/backfills", {**backfill, "max_active_runs": 1})
        for dag in (REBUILD, RETENTION, MIGRATION):
            api.pause(dag, paused=False)
        conf = {"source": str(migrated), "warehouse": str(airflow.folder / "other")}
        run = api.call(
            "POST",
            f"/dags/{MIGRATION}/dagRuns",
            {"logical_date": days[-1], "conf": conf},
        )
        yield Scheduled(
            airflow, api, migrated, f"/dags/{MIGRATION}/dagRuns/{quote(run['dag_run_id'])}"
        )


@pytest.fixture(scope="module")
def rebuilt(
    logs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    scheduled: Scheduled,  # works meanwhile
) -> LocalAirflow:
    """An Airflow whose tables ``airflow dags test`` of the rebuild made, at DAY."""
    airflow = LocalAirflow(tmp_path_factory.mktemp("dags_test"), logs)
    airflow.test_dag("rebuild", DAY)
    return airflow


@pytest.fixture(scope="module")
def decided(rebuilt: LocalAirflow) -> LocalAirflow:
    """The same after ``airflow dags test`` of retention, at DAY."""
    rebuilt.test_dag("retention", DAY)
    return rebuilt


def test_rebuild_gives_the_brokers_index_files(rebuilt: LocalAirflow, broker: Path) -> None:
    assert _files(rebuilt.indexes / "broker-0") == _rebuilt(broker)


def test_retention_decides_at_the_moment_of_its_run(
    decided: LocalAirflow, spark: "SparkSession"
) -> None:
    decisions = spark.read.format("delta").load(str(decided.warehouse / "retention_decisions"))
    moments = decisions.selectExpr("unix_millis(decided_at)").distinct().collect()

    assert [row[0] for row in moments] == [DAY_MS]
    assert (decided.warehouse / "_report.html").stat().st_size > 0


def test_upkeep_compacts_and_writes_the_report(decided: LocalAirflow) -> None:
    page = decided.folder / "upkeep.html"
    before = _files(decided.indexes)

    output = decided.test_dag("upkeep", DAY, "--conf", json.dumps({"report": str(page)}))

    assert _files(decided.indexes) == before
    assert "table segments" in output
    assert page.stat().st_size > 0


def test_a_failure_is_one_line_in_the_tasks_log(rebuilt: LocalAirflow) -> None:
    there_is_none = [{"name": "broker-0", "sources": ["/there/is/none"]}]

    done = rebuilt.try_run(
        *("dags", "test", REBUILD, "2026-01-01"),
        *("--conf", json.dumps({"log_dirs": there_is_none})),
    )

    assert done.returncode != 0
    said = [line for line in messages(done.stdout) if line.startswith("build failed: ")]
    assert [line.partition(": [")[0] for line in said] == [
        "build failed: cannot list /there/is/none"
    ]


def test_a_run_whose_params_do_not_fit_is_refused(scheduled: Scheduled) -> None:
    conf = {"source": "/data/logs", "time_index": "none"}

    with pytest.raises(OSError, match=r"400 POST .*Invalid input for param time_index"):
        scheduled.api.call(
            "POST", f"/dags/{MIGRATION}/dagRuns", {"logical_date": None, "conf": conf}
        )


def test_a_migration_is_applied_once_a_person_approves(
    scheduled: Scheduled, logs: Path, broker: Path
) -> None:
    api, run, migrated = scheduled.api, scheduled.migration, scheduled.migrated
    api.wait("the question", lambda: api.state(run, "approve") == "awaiting_input")
    before = _files(migrated)

    api.call(
        "PATCH",
        f"{run}/taskInstances/approve/-1/hitlDetails",
        {"chosen_options": ["Approve"], "params_input": {}},
    )
    api.wait("the migration", lambda: DAY in api.succeeded(MIGRATION))

    assert before == _files(logs)
    assert _files(migrated) == _rebuilt(broker)


def test_a_backfill_gives_the_tables_of_other_runs_and_retention_follows(
    scheduled: Scheduled, decided: LocalAirflow, spark: "SparkSession"
) -> None:
    airflow, api = scheduled.airflow, scheduled.api

    api.wait("the rebuilds", lambda: set(DAYS) <= api.succeeded(REBUILD))
    moments = set(map(str, DAYS.values()))
    api.wait("a decision for each", lambda: moments <= api.mapped(RETENTION, "decide"))

    assert _files(airflow.indexes) == _files(decided.indexes)
    for table in ("segments", "offset_index", "time_index"):
        assert _rows(spark, airflow, table) == _rows(spark, decided, table)
    then = _rows(spark, airflow, "retention_decisions", f"unix_millis(decided_at) = {DAY_MS}")
    assert then == _rows(spark, decided, "retention_decisions")


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".index", ".timeindex", ".txnindex")
    }


def _rebuilt(broker: Path) -> dict[str, bytes]:
    files = _files(broker / "rebuilt")
    return {path: files[path] for path in files if path.startswith(PARTITIONS)}


def _rows(spark: "SparkSession", airflow: LocalAirflow, table: str, where: str = "true") -> Any:
    """Give a table's rows, in order, without what names the run and its index folder."""
    found = spark.read.format("delta").load(str(airflow.warehouse / table)).where(where)
    return sorted(map(str, found.drop("run_id", "scanned_at", "fingerprint").collect()))
