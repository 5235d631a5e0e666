"""The operator that submits a job, and the assets that it announces."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from kafka_segments_ending import FINDINGS, USAGE, JobOutput
from kafka_segments_params import HOME

_STATUS = re.compile(r"Error code is: (-?\d+)")
_LEFT_OUT = ("", "None", "False")


def table_asset(table: str) -> Asset:
    """Give the asset of a Delta table; where the table lies is in its events' ``extra``."""
    return Asset(name=f"kafka_segments.{table}", uri=f"x-delta://kafka-segments/{table}")


SEGMENTS = table_asset("segments")
BUILD_TABLES = [
    SEGMENTS,
    *map(table_asset, ("offset_index", "time_index", "logs", "unrecognized_files")),
]


class KafkaSegmentsJob(SparkSubmitOperator):
    """Submit one of the project's jobs and read its exit status and what it printed.

    0 succeeds. 1, findings, succeeds with a warning, or fails where ``fails_on_findings``.
    2, wrong usage, fails without a retry, and all else fails. The reason is one line of the log.
    ``options``, and ``mapped_options`` over them, become ``--key value``, as rendered: none for
    None, False and "", the key alone for True, one for each element of a list. ``operand`` stands
    before them, behind the command.
    ``list_params``: the param that holds an option's list, which no template can give. An outlet's
    event says which table at which moment, and by which settings. The result is what
    ``JobOutput.steps`` gives.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "operand", "options", "mapped_options")

    def __init__(
        self,
        *,
        job: str,
        options: Mapping[str, Any],
        mapped_options: Mapping[str, Any] | None = None,
        list_params: Mapping[str, str] | None = None,
        name: str | None = None,
        command: str | None = None,
        operand: str | None = None,
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
        self.operand = operand
        self.options = options
        self.mapped_options = mapped_options
        self.list_params = list_params or {}
        self.fails_on_findings = fails_on_findings
        self._output = JobOutput()

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Submit the job; say in one line how it ended where that is not with 0."""
        lists = {key: context["params"][param] for key, param in self.list_params.items()}
        options = {**self.options, **(self.mapped_options or {}), **lists}
        self.application_args = _arguments([self.command, self.operand], options)
        try:
            super().execute(context)
        except FileNotFoundError as error:
            self._fail(AirflowFailException, f"{error.filename} is not on the worker's PATH")
        except AirflowException as error:
            self._ended(str(error))
        for asset in self.outlets:
            context["outlet_events"][asset].extra = _extra(asset, options)
        return self._output.steps()

    def _get_hook(self) -> SparkSubmitHook:
        """Give the provider's hook, whose lines pass by the output that is kept."""
        hook = super()._get_hook()
        log_lines = hook._process_spark_submit_log
        hook._process_spark_submit_log = lambda lines: log_lines(self._output.watch(lines))
        return hook

    def _ended(self, failure: str) -> None:
        status = _STATUS.search(failure)
        code = int(status[1]) if status else None
        if code is None:  # no exit status: a cluster's own word
            self._fail(AirflowException, " ".join(failure.split()))
        if code != FINDINGS:
            kind = AirflowFailException if code == USAGE else AirflowException
            self._fail(kind, self._output.reason(code))
        found = f"findings: {self._output.findings()}"
        if self.fails_on_findings:
            self._fail(AirflowFailException, found)
        self.log.warning("%s is done, with %s", self.task_id, found)

    def _fail(self, kind: type[AirflowException], reason: str) -> None:
        self.log.error("%s failed: %s", self.task_id, reason)
        raise kind(reason) from None


def _extra(asset: Asset, options: Mapping[str, Any]) -> dict[str, Any]:
    extra = {
        "now_ms": int(options["now-ms"]),
        "path": f"{options['warehouse']}/{asset.name.partition('.')[2]}",
    }
    conf = str(options.get("conf"))
    return extra if conf in _LEFT_OUT else {**extra, "conf": conf}


def _arguments(words: Iterable[str | None], options: Mapping[str, Any]) -> list[str]:
    arguments = [word for word in words if word is not None]
    for key, value in options.items():
        for element in value if isinstance(value, list) else [value]:
            text = str(element)
            if text == "True":
                arguments.append(f"--{key}")
            elif text not in _LEFT_OUT:
                arguments += [f"--{key}", text]
    return arguments
