"""Decide what retention deletes each time the tables were rebuilt, and write the report.

Scheduled on the asset of table segments. Rebuilds that ended since the last run, a backfill's too,
are decided each at its own moment; the report shows the latest.
"""

from typing import Any

import pendulum
from airflow.sdk import Param, dag, task

from kafka_segments_job import (
    CONF,
    DEFAULT_ARGS,
    NOW_MS,
    REPORT,
    SEGMENTS,
    WAREHOUSE,
    KafkaSegmentsJob,
    report_params,
    shared_params,
    table_asset,
)


@dag(
    dag_id="kafka_segments_retention",
    schedule=SEGMENTS,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    params={
        **shared_params(),
        **report_params(),
        "topic_configs": Param(
            None,
            type=["string", "null"],
            description="What `kafka-configs --describe` printed: a file the driver can read.",
        ),
    },
    tags=["kafka-segments"],
    doc_md=__doc__,
)
def retention() -> None:
    """Order the tasks: the moments, a decision for each, the report."""

    @task(pool="default_pool")
    def list_moments(own: str, triggering_asset_events: Any) -> list[dict[str, str]]:
        """Give the moments of the rebuilds that triggered the run, else its own, in order."""
        events = triggering_asset_events[SEGMENTS]
        moments = {event.extra["now_ms"] for event in events} or {int(own)}
        return [{"now-ms": str(moment)} for moment in sorted(moments)]

    moments = list_moments(NOW_MS)
    decide = KafkaSegmentsJob.partial(
        task_id="decide",
        job="decide_retention",
        options={
            "warehouse": WAREHOUSE,
            "conf": CONF,
            "topic-configs": "{{ params.topic_configs }}",
        },
        map_index_template="{{ task.mapped_options['now-ms'] }}",
        max_active_tis_per_dagrun=1,
        outlets=[table_asset("retention_decisions")],
    ).expand(mapped_options=moments)
    report = KafkaSegmentsJob(
        task_id="report",
        job="report_segments",
        options={
            "warehouse": WAREHOUSE,
            "out": REPORT,
            "now-ms": "{{ ti.xcom_pull('list_moments')[-1]['now-ms'] }}",
        },
    )
    decide >> report


retention()
