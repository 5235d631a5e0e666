"""Migrate clusters of 0.8 to 0.10: inventory, plan, stage, verify, a person's word, apply.

The tables are brought up to date first, as the inventory reads them.
Nothing is changed under the log directories before the approval; `stage` writes beside them. An
answer that is not there in a week is a Reject. Runs that wait for an answer hold up no other.
`kafka_segments_migration_rollback` takes a plan back, after an approval of its own.
"""

from typing import Any

from airflow.sdk import Param, dag

from kafka_segments_approval import WAITING, approval, review
from kafka_segments_job import BUILT, KafkaSegmentsJob
from kafka_segments_params import (
    CONF,
    NOW_MS,
    SERVER_PROPERTIES,
    TOPIC_CONFIGS,
    WAREHOUSE,
    config_file_params,
    dag_args,
    shared_params,
    text_param,
)

PLAN = "{{ params.plan or 'airflow-' ~ dag_run.run_after.strftime('%Y%m%dT%H%M%S') }}"
PLAN_ID = {"pattern": "^[A-Za-z0-9._-]+$"}


def migration_step(task_id: str, plan: str, command: str = "", **more: Any) -> KafkaSegmentsJob:
    """Give a task that takes a step of a plan, and whose result sums up its logs."""
    options = {"warehouse": WAREHOUSE, "now-ms": NOW_MS, "plan": plan, "output": "json"}
    return KafkaSegmentsJob(
        task_id=task_id,
        job="migrate_legacy",
        command=command or task_id,
        options={**options, **more.pop("options", {})},
        **more,
    )


@dag(
    **dag_args(
        "kafka_segments_migration",
        description="Migrate log directories of 0.8 to 0.10; applied once a person approves.",
        schedule=None,
        **WAITING,
        user_defined_macros={"review": review},
        params={
            **shared_params(),
            **config_file_params(),
            "sources": Param(
                type="array",
                minItems=1,
                items={"type": "string", "minLength": 1},
                description="Log directories of stopped brokers or of copies, or folders of them.",
            ),
            "plan": text_param(
                "The plan's id; default: airflow- and the time of the run.", **PLAN_ID
            ),
            "topic_ids": text_param(
                "What `kafka-topics --describe` printed of the new cluster, a file that the driver"
                " can read: logs without partition.metadata get one."
            ),
            "stage_dir": text_param(
                "Where migrated folders are written; default: beside the log directory."
            ),
            "convert": Param(
                False, type="boolean", description="Write messages v0 and v1 anew as batches v2."
            ),
            "damaged": Param(
                "refuse",
                enum=["refuse", "cut"],
                description="Logs with bytes that a broker's recovery would cut off: leave them"
                " alone, or leave those bytes behind.",
            ),
            "time_index": Param(
                "kafka",
                enum=["kafka", "mtime-next", "mtime-first"],
                description="Time index of segments in which no record has a timestamp.",
            ),
        },
        doc=__doc__,
        pages=("migration",),
    )
)
def migration() -> None:
    """Order the tasks."""
    run = {"warehouse": WAREHOUSE, "now-ms": NOW_MS, "conf": CONF}
    sources = {"source": "sources"}
    build = KafkaSegmentsJob(
        task_id="build", job="build_indexes", options=run, list_params=sources, writes=BUILT
    )
    inventory = KafkaSegmentsJob(
        task_id="inventory",
        job="migrate_legacy",
        command="inventory",
        options={**run, "topic-configs": TOPIC_CONFIGS, "server-properties": SERVER_PROPERTIES},
    )
    plan = KafkaSegmentsJob(
        task_id="plan",
        job="migrate_legacy",
        command="plan",
        options={
            **run,
            "plan": PLAN,
            "topic-ids": "{{ params.topic_ids }}",
            "stage-dir": "{{ params.stage_dir }}",
            "convert": "{{ params.convert }}",
            "damaged": "{{ params.damaged if params.damaged != 'refuse' else '' }}",
            "time-index": "{{ params.time_index }}",
        },
        list_params=sources,
    )
    stage, verify, status = (migration_step(step, PLAN) for step in ("stage", "verify", "status"))
    approve = approval(
        f"Apply migration plan {PLAN}?",
        "Staged and verified beside {{ params.sources | join(', ') }}:\n\n"
        "{{ review(ti, ['stage', 'verify', 'status']) }}\n\n"
        "Apply swaps the verified logs in. The brokers must be stopped. To take it back: DAG"
        f" `kafka_segments_migration_rollback` with plan `{PLAN}`, or `kafka-segments migrate"
        f" rollback --warehouse {WAREHOUSE} --plan {PLAN} --execute`",
    )
    apply = migration_step("apply", PLAN, options={"execute": True}, fails_on_findings=True)
    build >> inventory >> plan >> stage >> verify >> status >> approve >> apply


@dag(
    **dag_args(
        "kafka_segments_migration_rollback",
        description="Swap the first folders of a migration's plan back in, once a person approves.",
        schedule=None,
        **WAITING,
        user_defined_macros={"review": review},
        params={
            "warehouse": shared_params()["warehouse"],
            "plan": Param(type="string", description="The plan's id.", **PLAN_ID),
            "discard_appended": Param(
                False,
                type="boolean",
                description="Also where segments have changed since; what is there then goes to"
                " the stage folder.",
            ),
        },
        doc="Say what a rollback would swap back, wait for a person's word, do it.",
        pages=("migration",),
    )
)
def migration_rollback() -> None:
    """Order the tasks."""
    plan = "{{ params.plan }}"
    options = {"discard-appended": "{{ params.discard_appended }}"}
    preview = migration_step("preview", plan, "rollback", options=options)
    approve = approval(
        f"Roll back migration plan {plan}?",
        "{{ review(ti, ['preview']) }}\n\n"
        "The first folders come back with their bytes and mtimes. The brokers must be stopped."
        "{% if params.discard_appended %} What was appended since is taken out of the logs; it"
        " stays in the stage folder.{% endif %}",
    )
    rollback = migration_step(
        "rollback", plan, options={**options, "execute": True}, fails_on_findings=True
    )
    preview >> approve >> rollback


migration()
migration_rollback()
