"""Compact index files, OPTIMIZE and VACUUM the tables, write the report: once a week.

Beside these, a triage of the nodes' directories that the run names, a mapped task each; snapshots,
say. It only reads. What it finds fails its task, which is not tried again, and holds up no other.
Before the first rebuild has ended there are no tables: all but the triage is skipped, and says so.
"""

import logging
from typing import Any

from airflow.sdk import Param, PokeReturnValue, dag, task

from kafka_segments_job import KafkaSegmentsJob
from kafka_segments_params import (
    CONF,
    NAMED_SOURCES,
    NOW_MS,
    REPORT,
    TURN,
    WAREHOUSE,
    dag_args,
    has_turn,
    listed_or_none,
    log_dir_params,
    log_dirs,
    report_params,
    shared_params,
)

_LOG = logging.getLogger(__name__)
_TRIAGE_DIRS = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "required": ["name", "sources"],
        "additionalProperties": False,
        "properties": NAMED_SOURCES,
    },
}


@dag(
    **dag_args(
        "kafka_segments_upkeep",
        description="Compact index files and tables, write the report, take a triage.",
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
            "triage_dirs": Param(
                None,
                **_TRIAGE_DIRS,
                description="Nodes, each with a name and all of its directories, or a snapshot's,"
                " as the worker has them: a mapped task each; default: variable"
                " kafka_segments_triage_dirs, and none where that is empty.",
            ),
        },
        doc=__doc__,
        pages=("compaction", "triage"),
    )
)
def upkeep() -> None:
    """Order the tasks: each folder of index files, the tables, the report; beside them, triage."""

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
        skips_before_build=True,
        map_index_template="{{ task.name }}",
        max_active_tis_per_dagrun=1,
    ).expand_kwargs(list_index_folders())
    tables = KafkaSegmentsJob(
        task_id="compact_tables",
        job="compact_indexes",
        options={**options, "vacuum-hours": "{{ params.vacuum_hours }}"},
        trigger_rule="none_failed",
        skips_before_build=True,
    )
    report = KafkaSegmentsJob(
        task_id="report",
        job="report_segments",
        options={"warehouse": WAREHOUSE, "out": REPORT, "now-ms": NOW_MS},
        skips_before_build=True,
    )
    files >> tables >> report

    @task(pool="default_pool")
    def list_triage_dirs(params: dict[str, Any]) -> list[dict[str, Any]]:
        """Give the options by node; without nodes the triage is skipped, and a line says so."""
        nodes = listed_or_none(params, "triage_dirs", _TRIAGE_DIRS)
        if not nodes:
            _LOG.info("no param and no variable names triage_dirs: triage is skipped")
        return [
            {"name": node["name"], "mapped_options": {"source": node["sources"]}} for node in nodes
        ]

    KafkaSegmentsJob.partial(
        task_id="triage",
        job="triage_directories",
        options={"now-ms": NOW_MS},
        fails_on_findings=True,
        map_index_template="{{ task.name }}",
    ).expand_kwargs(list_triage_dirs())


upkeep()
