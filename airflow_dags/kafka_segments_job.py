"""The operator that submits a job, and the assets that it announces."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from kafka_segments_ending import FINDINGS, USAGE, JobOutput
from kafka_segments_lineage import datasets
from kafka_segments_params import HOME

_STATUS = re.compile(r"Error code is: (-?\d+)")
_LEFT_OUT = ("", "None", "False")


def table_asset(table: str) -> Asset:
    """Give the asset of a Delta table; where the table lies is in its events' ``extra``."""
    return Asset(name=f"kafka_segments.{table}", uri=f"x-delta://kafka-segments/{table}")


BUILT = ("segments", "offset_index", "time_index", "logs", "unrecognized_files")
"""Tables that a build makes."""
BUILD_TABLES = [table_asset(table) for table in BUILT]
SEGMENTS = BUILD_TABLES[0]


class KafkaSegmentsJob(SparkSubmitOperator):
    """Submit one of the project's jobs and read its exit status and what it printed.

    0 succeeds. 1, findings, succeeds with a warning, or fails where ``fails_on_findings``.
    2, wrong usage, fails without a retry, and all else fails. The reason is one line of the log,
    and the next one says whether it is tried again; what the job printed is folded before them.
    ``options``, and ``mapped_options`` over them, become ``--key value``, as rendered: none for
    None, False and "", the key alone for True, one for each element of a list. ``operand`` stands
    before them, behind the command.
    ``skips_before_build``: where no build has made the tables yet the task is skipped, and says so.
    ``list_params``: the param that holds an option's list, which no template can give. An outlet's
    event says which table at which moment, and by which settings. The result is what
    ``JobOutput.steps`` gives. ``reads`` and ``writes``: tables, of which OpenLineage is told.
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
        skips_before_build: bool = False,
        reads: Iterable[str] = (),
        writes: Iterable[str] = (),
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
        self.skips_before_build = skips_before_build
        self.reads = reads
        self.writes = writes
        self._output = JobOutput()
        self._submitted: dict[str, Any] | None = None

    def execute(self, context: Context) -> dict[str, Any] | None:
        """Submit the job; say in one line how it ended where that is not with 0."""
        lists = {key: context["params"][param] for key, param in self.list_params.items()}
        options = {**self.options, **(self.mapped_options or {}), **lists}
        self.application_args = _arguments([self.command, self.operand], options)
        self._submitted = options
        try:
            with self._folded():
                super().execute(context)
        except FileNotFoundError as error:
            missing = f"{error.filename} is not on the worker's PATH"
            self._fail(AirflowFailException, missing, context)
        except AirflowException as error:
            self._ended(str(error), context)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = _extra(asset, options)
        return self._output.steps()

    def get_openlineage_facets_on_complete(self, _: Any) -> Any:
        """Tell OpenLineage's provider, which alone calls this, what a job read and wrote."""
        return self._lineage(has_written=True)

    def get_openlineage_facets_on_failure(self, _: Any) -> Any:
        """Tell it what a job was to read: what one that failed has written is not known."""
        return self._lineage(has_written=False)

    def _lineage(self, *, has_written: bool) -> Any:
        if self._submitted is None:  # its templates may not be filled in
            return None
        from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415
        from openlineage.client.event_v2 import Dataset  # noqa: PLC0415

        read, written = datasets(self._submitted, self.reads, self.writes)
        return OperatorLineage(
            inputs=[Dataset(*one) for one in read],
            outputs=[Dataset(*one) for one in written if has_written],
        )

    @contextmanager
    def _folded(self) -> Iterator[None]:
        """Fold what the job prints in Airflow's view of the log, so that its end is seen first."""
        self.log.info("::group::What the job printed")
        try:
            yield
        finally:
            self.log.info("::endgroup::")

    def _get_hook(self) -> SparkSubmitHook:
        """Give the provider's hook, whose lines pass by the output that is kept."""
        hook = super()._get_hook()
        log_lines = hook._process_spark_submit_log
        hook._process_spark_submit_log = lambda lines: log_lines(self._output.watch(lines))
        return hook

    def _ended(self, failure: str, context: Context) -> None:
        status = _STATUS.search(failure)
        code = int(status[1]) if status else None
        if code is None:  # no exit status: a cluster's own word
            self._fail(AirflowException, " ".join(failure.split()), context)
        if code == USAGE and self.skips_before_build and self._output.has_no_build():
            reason = (
                f"{self.task_id} is skipped, no build has ended yet: {self._output.reason(code)}"
            )
            self.log.warning(reason)
            raise AirflowSkipException(reason)
        if code != FINDINGS:
            kind = AirflowFailException if code == USAGE else AirflowException
            self._fail(kind, self._output.reason(code), context)
        found = f"findings: {self._output.findings()}"
        if self.fails_on_findings:
            self._fail(AirflowFailException, found, context)
        self.log.warning("%s is done, with %s", self.task_id, found)

    def _fail(self, kind: type[AirflowException], reason: str, context: Context) -> None:
        self.log.error("%s failed: %s", self.task_id, reason)
        self.log.error(_what_follows(kind, context["ti"]))
        raise kind(reason) from None


def _what_follows(kind: type[AirflowException], ti: Any) -> str:
    if kind is AirflowFailException:
        return (
            "It is not tried again, as it would fail alike: mend what the line above names, then"
            " clear this task, or start a new run where a param was wrong"
        )
    if ti.try_number > ti.max_tries:
        return f"That was try {ti.try_number}, the last one: clear this task to go on from here"
    return f"It is tried again: that was try {ti.try_number} of {ti.max_tries + 1}"


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
