"""What the DAGs share that wait for a person: the task that asks, and what it shows."""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from kafka_segments_ending import review_steps

ANSWER_WITHIN = timedelta(days=7)
# A run that waits for its answer is an active one; steps of one log directory exclude each other.
WAITING = {
    "max_active_runs": 100,
    "dagrun_timeout": timedelta(days=10),
    "tags": ["kafka-segments", "approval"],
}


def review(ti: Any, steps: list[str]) -> str:
    """Write what steps of this run did, and what they refused."""
    return review_steps({step: ti.xcom_pull(task_ids=step) for step in steps})


def approval(subject: str, body: str) -> ApprovalOperator:
    """Give the task that waits for a person; no answer in time is a Reject."""
    return ApprovalOperator(
        task_id="approve",
        pool="default_pool",
        subject=subject,
        body=body,
        response_timeout=ANSWER_WITHIN,
        defaults=ApprovalOperator.REJECT,
    )
