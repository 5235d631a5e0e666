"""Decide what retention deletes each time the tables were rebuilt, and write the report.

Scheduled on the asset of table segments. Rebuilds that ended since the last run, a backfill's too,
are decided each at its own moment, in its own warehouse and by its own settings; a warehouse's
report shows the latest.
"""

from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

from kafka_segments_job import SEGMENTS, KafkaSegmentsJob, table_asset
from kafka_segments_params import (
    CONF,
    NOW_MS,
    SERVER_PROPERTIES,
    TOPIC_CONFIGS,
    config_file_params,
    dag_args,
    report_params,
    shared_params,
)

# Where every rebuild names its own warehouse there need not be a default one.
_WAREHOUSE = "{{ params.warehouse or var.value.get('kafka_segments_warehouse', '') }}"


@dag(
    **dag_args(
        "kafka_segments_retention",
        description="Decide what retention deletes, after each rebuild that passed the gate.",
        schedule=SEGMENTS,
        # Airflow hands an event that comes while a run is held back to the next event's run, which
        # may be tomorrow's: so that each gets its run at once, decisions wait and not runs.
        max_active_runs=100,
        params={**shared_params(), **report_params(), **config_file_params()},
        doc=__doc__,
        pages=("retention",),
    )
)
def retention() -> None:
    """Order the tasks: the rebuilds, a decision for each, a report for each warehouse."""

    @task(pool="default_pool")
    def list_rebuilds(own: dict[str, str], triggering_asset_events: Any) -> list[dict[str, str]]:
        """Give moment, warehouse and settings of the rebuilds that triggered the run, in order.

        The run's own where none did, and for what an event does not say.
        """
        found = [
            {
                "warehouse": event.extra.get("path", "").removesuffix("/segments")
                or own["warehouse"],
                "now-ms": str(event.extra.get("now_ms", own["now-ms"])),
                "conf": event.extra.get("conf") or own["conf"],
            }
            for event in triggering_asset_events[SEGMENTS]
        ] or [own]
        if not all(rebuild["warehouse"] for rebuild in found):
            raise AirflowFailException(
                "no warehouse: set variable kafka_segments_warehouse or param warehouse"
            )
        return [
            dict(rebuild)
            for rebuild in sorted(
                {tuple(rebuild.items()) for rebuild in found},
                key=lambda rebuild: (rebuild[0], int(rebuild[1][1])),
            )
        ]

    @task(pool="default_pool")
    def list_reports(rebuilds: list[dict[str, str]]) -> list[dict[str, str]]:
        """Give the latest moment of each warehouse."""
        latest = {rebuild["warehouse"]: rebuild["now-ms"] for rebuild in rebuilds}
        return [{"warehouse": place, "now-ms": moment} for place, moment in latest.items()]

    rebuilds = list_rebuilds({"warehouse": _WAREHOUSE, "now-ms": NOW_MS, "conf": CONF})
    decide = KafkaSegmentsJob.partial(
        task_id="decide",
        job="decide_retention",
        options={"topic-configs": TOPIC_CONFIGS, "server-properties": SERVER_PROPERTIES},
        map_index_template="{{ task.mapped_options['now-ms'] }}"
        " {{ task.mapped_options['warehouse'] }}",
        max_active_tis_per_dag=1,
        reads=("segments", "logs"),
        writes=("retention_decisions",),
        outlets=[table_asset("retention_decisions")],
    ).expand(mapped_options=rebuilds)
    report = KafkaSegmentsJob.partial(
        task_id="report",
        job="report_segments",
        options={
            "out": "{{ params.report or task.mapped_options['warehouse'] ~ '/_report.html' }}"
        },
        map_index_template="{{ task.mapped_options['warehouse'] }}",
        max_active_tis_per_dag=1,
    ).expand(mapped_options=list_reports(rebuilds))
    decide >> report


retention()
