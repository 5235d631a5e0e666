"""What the DAGs share: the operator that submits a job, its clock, params and places."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, Context, Param, Variable
from airflow.sdk.exceptions import AirflowException, AirflowFailException

POOL = "kafka_segments"
HOME = "{{ var.value.kafka_segments_home }}"
_WAREHOUSE = "(params.warehouse or var.value.kafka_segments_warehouse)"
WAREHOUSE = f"{{{{ {_WAREHOUSE} }}}}"
REPORT = f"{{{{ params.report or {_WAREHOUSE} ~ '/_report.html' }}}}"
CONF = "{{ params.conf }}"
# A scheduled run, a backfill and a retry decide at the run's own moment, not at that of the clock.
NOW_MS = "{{ ((dag_run.logical_date or dag_run.run_after).timestamp() * 1000) | int }}"

DEFAULT_ARGS = {
    "owner": "kafka-segments",
    "retries": 2,
    "execution_timeout": timedelta(hours=6),
    "pool": POOL,
}

_FINDINGS, _USAGE = 1, 2
_STATUS = re.compile(r"Error code is: (-?\d+)")
_REASONS = (
    re.compile(r"^kafka-segments: (.*)"),  # the verbs' own last line
    re.compile(r"^Error: (.*)"),  # click's, of an option
    re.compile(r"^(?:Exception in thread .*? )?([\w.]+(?:Exception|Error): .*)"),
)


def table_asset(table: str) -> Asset:
    """Give the asset of a Delta table; where the table lies is in its events' ``extra``."""
    return Asset(name=f"kafka_segments.{table}", uri=f"x-delta://kafka-segments/{table}")


SEGMENTS = table_asset("segments")
BUILD_TABLES = [
    SEGMENTS,
    *map(table_asset, ("offset_index", "time_index", "logs", "unrecognized_files")),
]

_LOG_DIRS = {
    "type": ["array", "null"],
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["name", "sources"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9._-]+$"},
            "sources": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "cluster": {"type": "string", "minLength": 1},
            "broker_id": {"type": "integer"},
        },
    },
}


def shared_params() -> dict[str, Param]:
    """Give the params of every DAG; null takes the variable's value."""
    return {
        "warehouse": Param(
            None,
            type=["string", "null"],
            description="Root of the Delta tables; default: variable kafka_segments_warehouse.",
        ),
        "conf": Param(
            None,
            type=["string", "null"],
            description="TOML file of settings, readable by the driver; default: Kafka's defaults.",
        ),
    }


def log_dir_params() -> dict[str, Param]:
    """Give the params of the DAGs that work on log directories."""
    return {
        "log_dirs": Param(
            None,
            **_LOG_DIRS,
            description="Each with a name and sources: a mapped task each; default: variable"
            " kafka_segments_log_dirs.",
        ),
        "index_dir": Param(
            None,
            type=["string", "null"],
            description="Index files go to a folder by name below; default: variable"
            " kafka_segments_index_dir, and none where that is empty.",
        ),
    }


def report_params() -> dict[str, Param]:
    """Give the param of the DAGs that write the report."""
    return {
        "report": Param(
            None,
            type=["string", "null"],
            description="The HTML page; default: _report.html under the warehouse.",
        )
    }


def log_dirs(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read the log directories of a run, each with its ``index_dir`` or None.

    Raises:
        AirflowFailException: two have one name, so that their index files would mix.
    """
    found = params["log_dirs"] or Variable.get("kafka_segments_log_dirs", deserialize_json=True)
    names = [entry["name"] for entry in found]
    if len(set(names)) != len(names):
        raise AirflowFailException(f"log_dirs: names must differ, found {', '.join(names)}")
    index_dir = params["index_dir"] or Variable.get("kafka_segments_index_dir", default="")
    return [
        {**entry, "index_dir": f"{index_dir}/{entry['name']}" if index_dir else None}
        for entry in found
    ]


class KafkaSegmentsJob(SparkSubmitOperator):
    """Submit one of the project's jobs and read its exit status.

    0 succeeds. 1, findings, succeeds with a warning, or fails where ``fails_on_findings``.
    2, wrong usage, fails without a retry, and all else fails. The reason is one line of the log.
    ``options``, and ``mapped_options`` over them, become ``--key value``, as rendered: none for
    None, False and "", the key alone for True, one for each element of a list. An outlet's event
    says which table at which moment.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "options", "mapped_options")

    def __init__(
        self,
        *,
        job: str,
        options: Mapping[str, Any],
        mapped_options: Mapping[str, Any] | None = None,
        name: str | None = None,
        command: str | None = None,
        fails_on_findings: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            application=f"{HOME}/jobs/{job}.py",
            jars=f"{HOME}/jars/delta/*.jar",
            py_files="{{ var.value.get('kafka_segments_py_files', '') }}",
            name=name or job,
            **kwargs,
        )
        self.command = command
        self.options = options
        self.mapped_options = mapped_options
        self.fails_on_findings = fails_on_findings

    def execute(self, context: Context) -> None:
        """Submit the job; say in one line how it ended where that is not with 0."""
        options = {**self.options, **(self.mapped_options or {})}
        self.application_args = _arguments(self.command, options)
        try:
            super().execute(context)
        except FileNotFoundError as error:
            self._fail(AirflowFailException, f"{error.filename} is not on the worker's PATH")
        except AirflowException as error:
            self._ended(str(error))
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {
                "now_ms": int(options["now-ms"]),
                "path": f"{options['warehouse']}/{asset.name.partition('.')[2]}",
            }

    def _ended(self, failure: str) -> None:
        status = _STATUS.search(failure)
        code = int(status[1]) if status else None
        if code == _FINDINGS and not self.fails_on_findings:
            self.log.warning("done, with findings: see the lines above")
            return
        retried = code not in (_FINDINGS, _USAGE)
        reason = _reason(failure) if code != _FINDINGS else "findings: see the lines above"
        self._fail(AirflowException if retried else AirflowFailException, reason)

    def _fail(self, kind: type[AirflowException], reason: str) -> None:
        self.log.error("%s failed: %s", self.task_id, reason)
        raise kind(reason) from None


def _arguments(command: str | None, options: Mapping[str, Any]) -> list[str]:
    arguments = [] if command is None else [command]
    for key, value in options.items():
        for element in value if isinstance(value, list) else [value]:
            text = str(element)
            if text == "True":
                arguments.append(f"--{key}")
            elif text not in ("", "None", "False"):
                arguments += [f"--{key}", text]
    return arguments


def _reason(failure: str) -> str:
    """Find the line that says why, in what spark-submit printed."""
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    for pattern in _REASONS:
        for line in reversed(lines[1:]):
            if found := pattern.match(line):
                return found[1]
    return lines[-1]
