"""Verify every backup against its cluster, once a night.

A mapped task a backup. A backup that misses something fails its task, which is not tried again; the
others are verified all the same. Digests of what was read stay in the warehouse, so that a night
reads only files that are new or have changed.
"""

from typing import Any

from airflow.sdk import Param, PokeReturnValue, dag, task

from kafka_segments_job import KafkaSegmentsJob, table_asset
from kafka_segments_params import (
    NAME,
    NOW_MS,
    TURN,
    WAREHOUSE,
    dag_args,
    has_turn,
    listed,
    shared_params,
)

_BACKUPS = {
    "type": ["array", "null"],
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["name", "backup", "against"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "pattern": NAME},
            "backup": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            "against": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "pattern": "^[^=/]+=."},
            },
            "moment": {"type": "string", "minLength": 1},
        },
    },
}


@dag(
    **dag_args(
        "kafka_segments_backups",
        description="Verify every backup against its cluster: complete to which offset.",
        schedule="0 5 * * *",
        params={
            "warehouse": shared_params()["warehouse"],
            "backups": Param(
                None,
                **_BACKUPS,
                description="Each with a name, where it lies, and NAME=URI of today's disks: a"
                " mapped task each; default: variable kafka_segments_backups. {date} becomes the"
                " run's date.",
            ),
            "check": Param(
                "full",
                enum=["full", "headers", "records"],
                description="Verify checksums of what is read, or trust them and read headers;"
                " records: also look for the keys of what compaction may have taken.",
            ),
            "read_all": Param(
                False,
                type="boolean",
                description="Read all files, as what rots changes no mtime: now and then.",
            ),
        },
        doc=__doc__,
        pages=("divergence",),
    )
)
def backups() -> None:
    """Order the tasks: the list, each backup."""

    @task.sensor(**TURN)
    def list_backups(params: dict[str, Any], ti: Any, dag_run: Any) -> PokeReturnValue:
        """Wait until no other run is under way; give the options by backup."""
        moment = dag_run.logical_date or dag_run.run_after
        options = [
            {
                "name": entry["name"],
                "mapped_options": {
                    key: _dated(entry.get(key), f"{moment:%Y-%m-%d}")
                    for key in ("backup", "against", "moment")
                },
            }
            for entry in listed(params, "backups", _BACKUPS)
        ]
        return PokeReturnValue(has_turn(ti), options)

    KafkaSegmentsJob.partial(
        task_id="verify",
        job="check_backup",
        command="verify",
        options={
            "warehouse": WAREHOUSE,
            "digests": f"{{% if not params.read_all %}}{WAREHOUSE}{{% endif %}}",
            "now-ms": NOW_MS,
            "check": "{{ params.check }}",
        },
        fails_on_findings=True,
        map_index_template="{{ task.name }}",
        writes=("divergences",),
        outlets=[table_asset("divergences")],
    ).expand_kwargs(list_backups())


def _dated(value: str | list[str] | None, date: str) -> str | list[str] | None:
    """Put the run's date in the place of {date}."""
    if isinstance(value, list):
        return [one.replace("{date}", date) for one in value]
    return value and value.replace("{date}", date)


backups()
