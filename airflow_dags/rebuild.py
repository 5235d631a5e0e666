"""Rebuild the indexes and tables of every log directory, and let them through a gate.

A mapped task a log directory; `validate` is the gate: only tables that pass it are announced as
assets, on which `kafka_segments_retention` is scheduled.
"""

from typing import Any

from airflow.sdk import Param, PokeReturnValue, dag, task

from kafka_segments_job import BUILD_TABLES, BUILT, KafkaSegmentsJob
from kafka_segments_params import (
    CONF,
    NOW_MS,
    TURN,
    WAREHOUSE,
    dag_args,
    has_turn,
    log_dir_params,
    log_dirs,
    shared_params,
)


@dag(
    **dag_args(
        "kafka_segments_rebuild",
        description="Rebuild index files and tables of every log directory; validate is the gate.",
        schedule="@daily",
        params={
            **shared_params(),
            **log_dir_params(),
            "check": Param(
                "full",
                enum=["full", "headers"],
                description="Verify checksums, or trust them and read headers alone.",
            ),
            "full": Param(
                False, type="boolean", description="Read all segments, whatever earlier runs know."
            ),
            "digests": Param(
                False,
                type="boolean",
                description="Keep digests of what is read, by which kafka_segments_backups knows"
                " the brokers' disks without reading them.",
            ),
            "internals": Param(
                False,
                type="boolean",
                description="Read the cluster's own topics into their tables, too.",
            ),
            "gate": Param(
                "fatal",
                enum=["fatal", "warning", "info"],
                description="Least severity of a failed expectation that closes the gate.",
            ),
        },
        doc=__doc__,
        pages=("build", "validation"),
    )
)
def rebuild() -> None:
    """Order the tasks: each log directory, then the gate."""

    @task.sensor(**TURN)
    def list_log_dirs(params: dict[str, Any], ti: Any) -> PokeReturnValue:
        """Wait until no other rebuild is under way; give the options by log directory."""
        options = [
            {
                "name": entry["name"],
                "mapped_options": {
                    "source": entry["sources"],
                    "index-dir": entry["index_dir"],
                    "cluster": entry.get("cluster"),
                    "broker-id": entry.get("broker_id"),
                },
            }
            for entry in log_dirs(params)
        ]
        return PokeReturnValue(has_turn(ti), options)

    build = KafkaSegmentsJob.partial(
        task_id="build",
        job="build_indexes",
        options={
            "warehouse": WAREHOUSE,
            "conf": CONF,
            "now-ms": NOW_MS,
            "check": "{{ params.check }}",
            "full": "{{ params.full }}",
            "digests": "{{ params.digests }}",
            "internals": "{{ params.internals }}",
        },
        map_index_template="{{ task.name }}",
        writes=BUILT,
    ).expand_kwargs(list_log_dirs())
    gate = KafkaSegmentsJob(
        task_id="validate",
        job="validate_tables",
        options={
            "warehouse": WAREHOUSE,
            "conf": CONF,
            "now-ms": NOW_MS,
            "fail-on": "{{ params.gate }}",
        },
        fails_on_findings=True,
        reads=BUILT,
        writes=("validation_results",),
        outlets=BUILD_TABLES,
    )
    build >> gate


rebuild()
