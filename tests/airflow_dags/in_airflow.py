"""Run by Airflow's Python: loads the DAGs once and prints, as JSON, what tests ask of them.

Neither Spark's Python nor this package may be imported while DAGs are parsed.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

REFUSED = ("pyspark", "delta", "kafka_segments", "great_expectations")


class Refusing(MetaPathFinder):
    """Refuses what DAG files must not import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise for a refused package."""
        if name.partition(".")[0] in REFUSED:
            raise ImportError(f"{name} is imported while DAGs are parsed")


DAGS = sys.argv[1]
sys.meta_path.insert(0, Refusing())
sys.path.insert(0, DAGS)

import jinja2  # noqa: E402
from airflow.dag_processing.dagbag import DagBag  # noqa: E402
from airflow.providers.apache.spark.operators.spark_submit import (  # noqa: E402
    SparkSubmitOperator,
)
from airflow.sdk.exceptions import AirflowException  # noqa: E402

import kafka_segments_params as shared  # noqa: E402
from kafka_segments_job import SEGMENTS, KafkaSegmentsJob  # noqa: E402
from kafka_segments_lineage import datasets  # noqa: E402

BAG = DagBag(DAGS)
VARIABLES = {
    "kafka_segments_home": "/srv/home",
    "kafka_segments_warehouse": "/srv/warehouse",
    "kafka_segments_topic_configs": sys.argv[2],
}


def failure(act: Callable[[], Any]) -> list[str] | None:
    """Name the failure that a call ends with."""
    try:
        act()
    except AirflowException as error:
        return [type(error).__name__, str(error)]
    return None


def dags() -> dict[str, Any]:
    """Give what is said of every DAG, and whether each of its tasks has the check of keys."""
    return {
        dag.dag_id: {
            "description": dag.description,
            "timeout": dag.dagrun_timeout and dag.dagrun_timeout.total_seconds(),
            "runs": dag.max_active_runs,
            "on_failure": bool(dag.has_on_failure_callback),
            "doc": dag.doc_md,
            "params": list(dag.params),
            "tags": sorted(dag.tags),
            "owner_links": dag.owner_links,
            "unchecked": [
                task.task_id
                for task in dag.tasks
                if getattr(task, "_pre_execute_hook", None) is not shared.refuse_unknown_keys
                and getattr(task, "partial_kwargs", {}).get("pre_execute")
                is not shared.refuse_unknown_keys
            ],
            "task_failures": sum(bool(task.has_on_failure_callback) for task in dag.tasks),
            "task_timeouts": sorted(
                {
                    task.partial_kwargs["execution_timeout"].total_seconds()
                    if hasattr(task, "partial_kwargs")
                    else task.execution_timeout.total_seconds()
                    for task in dag.tasks
                }
            ),
        }
        for dag in BAG.dags.values()
    }


def unknown_keys() -> list[Any]:
    """Give how runs with these keys end, and what is logged of it."""
    dag = BAG.dags["kafka_segments_migration"]
    found = []
    for conf in (None, {"convert": True}, {"covnert": True}, {"sources": [], "zzz": 1}):
        run = {"dag": dag, "dag_run": SimpleNamespace(conf=conf)}
        with mock.patch.object(shared, "_LOG") as log:
            failed = failure(lambda run=run: shared.refuse_unknown_keys(run))
        found.append(failed and [*failed, [call.args[0] for call in log.method_calls]])
    return found


def variable_log_dirs() -> list[Any]:
    """Give how a run ends whose variable of log directories has these values."""

    def ends(value: str | None, **others: str | None) -> Any:
        found = {"kafka_segments_home": "/h", "kafka_segments_warehouse": "/w", **others}
        found["kafka_segments_log_dirs"] = value
        params = {"log_dirs": None, "index_dir": None, "warehouse": None}

        def get(name: str, default: Any = None) -> Any:
            return default if found.get(name) is None else found[name]

        with mock.patch.object(shared.Variable, "get", get):
            return failure(lambda: shared.log_dirs(params))

    unnamed, strange = '[{"sources": ["/a"]}]', '[{"name": "a", "sources": ["/a"], "brokr": 1}]'
    above, nowhere = '[{"name": "..", "sources": ["/a"]}]', '[{"name": "a", "sources": ["", "/b"]}]'
    sound = '[{"name": "a", "sources": ["/a"], "broker_id": 1}]'
    values = (sound, None, "", "[{'name'", "[]", unnamed, strange, above, nowhere)
    unset = (ends(sound, kafka_segments_home=None), ends(sound, kafka_segments_warehouse=None))
    return [*map(ends, values), *unset]


def triage_dirs() -> list[Any]:
    """Give what a triage is taken of, and what is said: by the param, else by the variable."""
    listing = BAG.dags["kafka_segments_upkeep"].get_task("list_triage_dirs").python_callable
    own, node = [{"name": "p", "sources": ["/p/a", "/p/b"]}], '[{"name": "v", "sources": ["/v"]}]'

    def taken(given: Any, value: str | None) -> Any:
        with (
            mock.patch.object(
                shared.Variable, "get", lambda _, default: default if value is None else value
            ),
            mock.patch.object(listing.__globals__["_LOG"], "info") as said,
        ):
            found: list[Any] = []
            failed = failure(lambda: found.append(listing({"triage_dirs": given})))
        return failed or [*found, *(call.args[0] for call in said.call_args_list)]

    return [
        taken(given, value)
        for given, value in (
            *((own, node), ([], node), (None, node)),
            *((None, None), (None, ""), (None, "[]"), (None, "null")),
            *((None, "[{'name'"), (None, '[{"name": "v", "sources": []}]')),
        )
    ]


def unset_variables() -> dict[str, Any]:
    """Give how the templates of each DAG end where no variable is set, and where one is empty."""

    def ends(dag: Any, template: str, value: str | None) -> Any:
        rendered = dag.get_template_env().from_string(template)
        with mock.patch.object(shared.Variable, "get", lambda *_, **__: value):
            return failure(lambda: rendered.render(params=dict.fromkeys(dag.params)))

    return {
        f"{name} {value}": [
            ends(dag, template, value)
            for template in (shared.HOME, shared.WAREHOUSE)
            if template == shared.HOME or "warehouse" in dag.params
        ]
        for name, dag in BAG.dags.items()
        for value in (None, "")
    }


def triggered() -> list[Any]:
    """Give what retention decides after these events."""
    list_rebuilds = BAG.dags["kafka_segments_retention"].get_task("list_rebuilds").python_callable
    own = {"warehouse": "/own", "now-ms": "9", "conf": ""}

    def given(*extras: Any, own: dict[str, str] = own) -> Any:
        events = {SEGMENTS: [SimpleNamespace(extra=extra) for extra in extras]}
        return list_rebuilds(own, events)

    return [
        given(),
        given(
            {"now_ms": 20, "path": "/b/segments"},
            {"now_ms": 3, "path": "/b/segments", "conf": "/c.toml"},
            {"now_ms": 20, "path": "/b/segments"},
            {"now_ms": 5, "path": "/a/segments"},
        ),
        given({"from_rest_api": True}),
        failure(lambda: given(own={**own, "warehouse": ""})),
    ]


def turns() -> list[bool]:
    """Say whether a run has its turn: by the runs that wait, itself too, and those that run."""

    def ask(waiting: int, running: int) -> bool:
        return shared.has_turn(
            SimpleNamespace(
                dag_id="d",
                task_id="t",
                get_ti_count=lambda **_: waiting,
                get_dr_count=lambda **_: running,
            )
        )

    return [ask(1, 1), ask(2, 2), ask(1, 2), ask(2, 3)]


def submitted(dag_id: str, params: dict[str, Any]) -> list[list[Any]]:
    """Give the job and the arguments of every task of a DAG, as these params render them.

    Files that mapped tasks get at run time are left out, their own options are not.
    """
    dag = BAG.dags[dag_id]
    jinja = jinja2.Environment(undefined=jinja2.StrictUndefined)
    jinja.globals.update(dag.user_defined_macros)
    given = {name: dag.params.get_param(name).value for name in dag.params} | params
    context = {
        "params": given,
        "dag_run": SimpleNamespace(logical_date=None, run_after=Moment()),
        "var": {"value": VARIABLES},
        "outlet_events": {},
        "task": SimpleNamespace(mapped_options={"warehouse": "/mapped"}),
    }
    found = []
    for task in dag.tasks:
        is_mapped = hasattr(task, "partial_kwargs")
        kwargs = task.partial_kwargs if is_mapped else vars(task)
        if not issubclass(task.operator_class if is_mapped else type(task), KafkaSegmentsJob):
            continue
        options = {
            key: _rendered(jinja, value, context) for key, value in kwargs["options"].items()
        }
        job = KafkaSegmentsJob(
            task_id=task.task_id,
            job="job",
            options=options,
            command=kwargs.get("command"),
            operand=_rendered(jinja, kwargs.get("operand"), context),
            list_params=kwargs.get("list_params"),
        )
        job._hook = SimpleNamespace(
            submit=lambda _: None,
            **dict.fromkeys(("_should_track_driver_status", "_is_yarn_cluster_mode"), False),
            _should_track_driver_via_k8s_api=lambda: False,
        )
        job.execute(context)
        script = kwargs.get("job") or Path(str(kwargs["application"])).stem
        found.append([script, task.task_id, job.application_args])
    return found


class Moment:
    """A moment that has the methods which templates call."""

    def timestamp(self) -> float:
        """Give it in seconds."""
        return 1_795_000_000.0

    def strftime(self, _: str) -> str:
        """Give it as text."""
        return "20261118T110640"


def _rendered(jinja: jinja2.Environment, value: Any, context: dict[str, Any]) -> Any:
    return jinja.from_string(value).render(context) if isinstance(value, str) else value


def lineage() -> dict[str, Any]:
    """Give what OpenLineage is told of jobs; its provider may not be there."""
    told = {}
    for dag_id, task_id, given in (
        (
            "kafka_segments_rebuild",
            "build",
            {"source": ["/logs/a", "s3a://b/k"], "index-dir": "/i"},
        ),
        ("kafka_segments_rebuild", "validate", {}),
        ("kafka_segments_retention", "decide", {}),
        ("kafka_segments_backups", "verify", {"backup": ["/b"], "against": ["n1=/mnt/n1"]}),
    ):
        task = BAG.dags[dag_id].get_task(task_id)
        kwargs = getattr(task, "partial_kwargs", vars(task))
        tables = {key: kwargs.get(key, ()) for key in ("reads", "writes")}
        told[task_id] = datasets({"warehouse": "/wh", **given}, **tables)
    job = KafkaSegmentsJob(task_id="t", job="j", options={}, writes=("segments",))
    before = job.get_openlineage_facets_on_complete(None)
    if importlib.util.find_spec("openlineage") is not None:
        job._submitted = {"warehouse": "/wh", "source": "/logs"}
        ends = (job.get_openlineage_facets_on_complete, job.get_openlineage_facets_on_failure)
        told["provider"] = [
            [[one.namespace, one.name] for one in kind]
            for facets in (end(None) for end in ends)
            for kind in (facets.inputs, facets.outputs)
        ]
    return {**told, "before": before}


def endings() -> list[Any]:
    """Give how a job ends that says these lines and leaves with that status, and what follows."""
    found = []
    context = {"ti": SimpleNamespace(try_number=1, max_tries=2)}
    for status, lines, more in json.loads(sys.argv[3]):
        job = KafkaSegmentsJob(task_id="t", job="j", options={}, **more)
        hook = SimpleNamespace(_process_spark_submit_log=list)
        with mock.patch.object(SparkSubmitOperator, "_get_hook", lambda _, hook=hook: hook):
            job._get_hook()._process_spark_submit_log(lines)
        text = f"Cannot execute: …. Error code is: {status}.\nLast output:\n…"
        with mock.patch.object(job.log, "error") as said:
            failed = failure(lambda job=job, text=text: job._ended(text, context))
        follows = said.call_args.args[0] if said.called else None
        found.append([failed, job._output.steps(), follows])
    return found


if __name__ == "__main__":
    confs = json.loads(sys.argv[4])
    answers = {
        "errors": BAG.import_errors,
        "dags": dags(),
        "unknown_keys": unknown_keys(),
        "variable_log_dirs": variable_log_dirs(),
        "triage_dirs": triage_dirs(),
        "unset_variables": unset_variables(),
        "triggered": triggered(),
        "turns": turns(),
        "lineage": lineage(),
        "endings": endings(),
        "submitted": [
            submission for dag, conf in confs.items() for submission in submitted(dag, conf)
        ],
    }
    print(json.dumps(answers))
