"""Compact index files, OPTIMIZE and VACUUM the tables, write the report: once a week."""

from typing import Any

from airflow.sdk import Param, PokeReturnValue, dag, task

from kafka_segments_job import KafkaSegmentsJob
from kafka_segments_params import (
    CONF,
    NOW_MS,
    REPORT,
    TURN,
    WAREHOUSE,
    dag_args,
    has_turn,
    log_dir_params,
    log_dirs,
    report_params,
    shared_params,
)


@dag(
    **dag_args(
        "kafka_segments_upkeep",
        description="Compact index files and tables, write the report.",
        schedule="@weekly",
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
        doc_md=__doc__,
    )
)
def upkeep() -> None:
    """Order the tasks: each folder of index files, the tables, the report."""

    @task.sensor(**TURN)
    def list_index_folders(params: dict[str, Any], ti: Any) -> PokeReturnValue:
        """Wait until no other upkeep is under way; give the folders that builds wrote to."""
        options = [
            {"name": entry["name"], "mapped_options": {"index-dir": entry["index_dir"]}}
            for entry in log_dirs(params)
            if entry["index_dir"]
        ]
        return PokeReturnValue(has_turn(ti), options)

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
