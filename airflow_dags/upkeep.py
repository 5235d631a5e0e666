"""Compact index files, OPTIMIZE and VACUUM the tables, write the report: once a week."""

from typing import Any

import pendulum
from airflow.sdk import Param, dag, task

from kafka_segments_job import (
    CONF,
    DEFAULT_ARGS,
    NOW_MS,
    REPORT,
    WAREHOUSE,
    KafkaSegmentsJob,
    log_dir_params,
    log_dirs,
    report_params,
    shared_params,
)


@dag(
    dag_id="kafka_segments_upkeep",
    schedule="@weekly",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    params={
        **shared_params(),
        **log_dir_params(),
        **report_params(),
        "index_interval_bytes": Param(
            None,
            type=["integer", "null"],
            minimum=1,
            description="Thin index entries to more than this apart; default: thin none.",
        ),
        "vacuum_hours": Param(
            168,
            type="integer",
            minimum=168,
            description="Files that tables have not needed for so long go.",
        ),
    },
    tags=["kafka-segments"],
    doc_md=__doc__,
)
def upkeep() -> None:
    """Order the tasks: each folder of index files, the tables, the report."""

    @task(pool="default_pool")
    def list_index_folders(params: dict[str, Any]) -> list[dict[str, Any]]:
        """Give the folders that builds wrote to; none where builds write no index files."""
        return [
            {"name": entry["name"], "mapped_options": {"index-dir": entry["index_dir"]}}
            for entry in log_dirs(params)
            if entry["index_dir"]
        ]

    options = {"warehouse": WAREHOUSE, "conf": CONF, "now-ms": NOW_MS}
    files = KafkaSegmentsJob.partial(
        task_id="compact_index_files",
        job="compact_indexes",
        options={
            **options,
            "no-tables": True,
            "index-interval-bytes": "{{ params.index_interval_bytes }}",
        },
        map_index_template="{{ task.name }}",
        max_active_tis_per_dagrun=1,
    ).expand_kwargs(list_index_folders())
    tables = KafkaSegmentsJob(
        task_id="compact_tables",
        job="compact_indexes",
        options={**options, "vacuum-hours": "{{ params.vacuum_hours }}"},
        trigger_rule="none_failed",
    )
    report = KafkaSegmentsJob(
        task_id="report",
        job="report_segments",
        options={"warehouse": WAREHOUSE, "out": REPORT, "now-ms": NOW_MS},
    )
    files >> tables >> report


upkeep()
