"""Migrate clusters of 0.8 to 0.10: inventory, plan, stage, verify, a person's word, apply.

The tables are brought up to date first, as the inventory reads them.
Nothing is changed under the log directories before the approval; `stage` writes beside them. An
answer that is not there in a week is a Reject.
"""

from datetime import timedelta

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param, dag

from kafka_segments_job import (
    CONF,
    DEFAULT_ARGS,
    NOW_MS,
    WAREHOUSE,
    KafkaSegmentsJob,
    shared_params,
)

PLAN = "{{ params.plan or 'airflow-' ~ dag_run.run_after.strftime('%Y%m%dT%H%M%S') }}"
JOB = "migrate_legacy"


@dag(
    dag_id="kafka_segments_migration",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    params={
        **shared_params(),
        "source": Param(
            type="string",
            minLength=1,
            description="Log directory of a stopped broker or of a copy, or a folder of several.",
        ),
        "plan": Param(
            None,
            type=["string", "null"],
            pattern="^[A-Za-z0-9._-]+$",
            description="The plan's id; default: airflow- and the time of the run.",
        ),
        "stage_dir": Param(
            None,
            type=["string", "null"],
            description="Where migrated folders are written; default: beside the log directory.",
        ),
        "convert": Param(
            False, type="boolean", description="Write messages v0 and v1 anew as batches v2."
        ),
        "time_index": Param(
            "kafka",
            enum=["kafka", "mtime-next", "mtime-first"],
            description="Time index of segments in which no record has a timestamp.",
        ),
    },
    tags=["kafka-segments"],
    doc_md=__doc__,
)
def migration() -> None:
    """Order the tasks."""
    run = {"warehouse": WAREHOUSE, "now-ms": NOW_MS}
    build = KafkaSegmentsJob(
        task_id="build",
        job="build_indexes",
        options={**run, "conf": CONF, "source": "{{ params.source }}"},
    )
    inventory = KafkaSegmentsJob(
        task_id="inventory", job=JOB, command="inventory", options={**run, "conf": CONF}
    )
    plan = KafkaSegmentsJob(
        task_id="plan",
        job=JOB,
        command="plan",
        options={
            **run,
            "conf": CONF,
            "source": "{{ params.source }}",
            "plan": PLAN,
            "stage-dir": "{{ params.stage_dir }}",
            "convert": "{{ params.convert }}",
            "time-index": "{{ params.time_index }}",
        },
    )
    stage, verify = (
        KafkaSegmentsJob(task_id=step, job=JOB, command=step, options={**run, "plan": PLAN})
        for step in ("stage", "verify")
    )
    approve = ApprovalOperator(
        task_id="approve",
        pool="default_pool",
        subject=f"Apply migration plan {PLAN}?",
        body=(
            "The migrated folders of {{ params.source }} are staged and verified: the logs of"
            " tasks plan and verify say what was refused or not proven; that stays as it is."
            " Apply swaps the others in. The broker must be stopped. Rollback:"
            f" `kafka-segments migrate rollback --warehouse {WAREHOUSE} --plan {PLAN} --execute`"
        ),
        response_timeout=timedelta(days=7),
        defaults=ApprovalOperator.REJECT,
    )
    apply = KafkaSegmentsJob(
        task_id="apply",
        job=JOB,
        command="apply",
        options={**run, "plan": PLAN, "execute": True},
        fails_on_findings=True,
    )
    build >> inventory >> plan >> stage >> verify >> approve >> apply


migration()
