"""Take the rescan away from a broker that died: make a kit, a person's word, apply.

The worker has the broker's disks mounted. `kit` only reads them; `preview` says what would be done,
torn tails with their bytes and records. Nothing is changed under the log directories before the
approval. An answer that is not there in a week is a Reject.
"""

from typing import Any

from airflow.sdk import Param, dag

from kafka_segments_approval import WAITING, approval, review
from kafka_segments_job import KafkaSegmentsJob
from kafka_segments_params import CONF, NOW_MS, dag_args, shared_params

KIT = "{{ params.kits }}/{{ dag_run.run_after.strftime('%Y%m%dT%H%M%S') }}"


def apply_step(task_id: str, **more: Any) -> KafkaSegmentsJob:
    """Give a task that applies the kit, or says what that would do."""
    return KafkaSegmentsJob(
        task_id=task_id, job="plan_recovery", command="apply", operand=KIT, **more
    )


@dag(
    **dag_args(
        "kafka_segments_recovery",
        description="Recover a dead broker's logs before its start, once a person approves.",
        schedule=None,
        **WAITING,
        user_defined_macros={"review": review},
        params={
            "conf": shared_params()["conf"],
            "sources": Param(
                type="array",
                minItems=1,
                items={"type": "string", "minLength": 1},
                description="Log directories of the stopped broker, as the worker has them.",
            ),
            "kits": Param(
                type="string",
                minLength=1,
                description="The kit becomes a folder below: on the file system of the log"
                " directories, but in none of them.",
            ),
            "engine": Param(
                "auto", enum=["auto", "threads", "spark"], description="As of `recovery kit`."
            ),
        },
        doc=__doc__,
        pages=("recovery-kit",),
    )
)
def recovery() -> None:
    """Order the tasks."""
    kit = KafkaSegmentsJob(
        task_id="kit",
        job="plan_recovery",
        command="kit",
        options={
            "out": KIT,
            "conf": CONF,
            "now-ms": NOW_MS,
            "engine": "{{ params.engine }}",
            "output": "json",
        },
        list_params={"source": "sources"},
        retries=0,  # a second try would find half a kit; a new run makes another
    )
    preview = apply_step("preview", options={"output": "json"})
    approve = approval(
        "Apply the recovery kit of {{ params.sources | join(', ') }}?",
        "{{ review(ti, ['kit', 'preview']) }}\n\n"
        "Apply puts the files in place, cuts torn tails off and advances the recovery points. The"
        f" broker must be stopped. To take it back: `kafka-segments recovery rollback {KIT}"
        " --execute`",
    )
    apply = apply_step("apply", options={"output": "json", "execute": True})
    kit >> preview >> approve >> apply


recovery()
