"""What the DAGs share apart from their jobs: arguments, params, places, and a run's turn."""

import difflib
import json
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import pendulum
from airflow.sdk import Context, Param, Variable
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

try:
    import kafka_segments_site as site
except ModuleNotFoundError as error:
    if error.name != "kafka_segments_site":
        raise
    site = None

_LOG = logging.getLogger(__name__)
POOL = "kafka_segments"
HOME = "{{ variable('home') }}"
_WAREHOUSE = "(params.warehouse or variable('warehouse', param='warehouse'))"
WAREHOUSE = f"{{{{ {_WAREHOUSE} }}}}"
REPORT = f"{{{{ params.report or {_WAREHOUSE} ~ '/_report.html' }}}}"
CONF = "{{ params.conf or var.value.get('kafka_segments_conf', '') }}"
TOPIC_CONFIGS = "{{ params.topic_configs or var.value.get('kafka_segments_topic_configs', '') }}"
SERVER_PROPERTIES = (
    "{{ params.server_properties or var.value.get('kafka_segments_server_properties', '') }}"
)
# A scheduled run, a backfill and a retry decide at the run's own moment, not at that of the clock.
NOW_MS = "{{ ((dag_run.logical_date or dag_run.run_after).timestamp() * 1000) | int }}"
NAME = "^(?![.]{1,2}$)[A-Za-z0-9._-]+$"
"""Of what a list names; folders of index files have these names, too."""
NAMED_SOURCES = {
    "name": {"type": "string", "pattern": NAME},
    "sources": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
}
_LOG_DIRS = {
    "type": ["array", "null"],
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["name", "sources"],
        "additionalProperties": False,
        "properties": {
            **NAMED_SOURCES,
            "cluster": {"type": "string", "minLength": 1},
            "broker_id": {"type": "integer"},
        },
    },
}
_STARTED_STATES = (
    *("scheduled", "queued", "running", "restarting"),
    *("up_for_retry", "up_for_reschedule", "deferred"),
)


def refuse_unknown_keys(context: Context) -> None:
    """Fail a task whose run was given a key that its DAG has not: Airflow takes any.

    Raises:
        AirflowFailException: names each, with the param that was probably meant.
    """
    params = list(context["dag"].params)
    unknown = [key for key in context["dag_run"].conf or {} if key not in params]
    if not unknown:
        return
    near = {key: difflib.get_close_matches(key, params, 1) for key in unknown}
    named = [f"{key} (is {near[key][0]} meant?)" if near[key] else key for key in unknown]
    _fail_before_the_job(
        f"no such param: {', '.join(named)}; {context['dag'].dag_id} has"
        f" {', '.join(sorted(params)) or 'none'}"
    )


def _fail_before_the_job(reason: str) -> NoReturn:
    """Fail a task in what Airflow folds as "Pre Execute", and leaves open where it fails.

    Without the fold's end, Airflow's view of the log shows nothing of the failure.
    """
    _LOG.info("::endgroup::")
    _LOG.error("the task failed: %s", reason)
    raise AirflowFailException(reason)


def _variable_in_template(name: str, *, param: str | None = None) -> str:
    """Return the text of a variable as ``variable`` does; templates are filled in in that fold."""
    try:
        return variable(name, param=param)
    except AirflowFailException as error:
        _fail_before_the_job(str(error))


DEFAULT_ARGS = {
    "owner": "kafka-segments",
    "retries": 2,
    "execution_timeout": timedelta(hours=6),
    "pool": POOL,
    **getattr(site, "DEFAULT_ARGS", {}),
    "pre_execute": refuse_unknown_keys,
}


_DOCS_URL = getattr(site, "DOCS_URL", "").rstrip("/")
_WHEN_IT_FAILS = """**When a task fails**: its log says why in the line `… failed: …`, below the
fold "What the job printed", and in the next one whether it is tried again.

| reason | what to do |
|---|---|
| `no such param`, `variable … is not set`, `cannot list …`, a wrong option | \
Not tried again. Mend it, then clear the task; where a param was wrong, start a new run. |
| `findings: …` | Not tried again. The job is done: look at what it found. |
| `the driver was ended by …`, and all else | Tried again. A job that was killed leaves nothing \
half written: clear the task to go on from there. |"""


def dag_args(dag_id: str, *, doc: str, pages: Sequence[str], **own: Any) -> dict[str, Any]:
    """Give the arguments of a DAG: those of all, its own, and over them those of the site.

    ``doc``: what it does; ``pages``: those of ``docs/`` that tell more, without ending.
    """
    of_site = getattr(site, "DAG_ARGS", {}).get(dag_id, {})
    macros = "user_defined_macros"
    return {
        "dag_id": dag_id,
        "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
        "catchup": False,
        "max_active_runs": 1,
        "dagrun_timeout": timedelta(days=2),
        "default_args": DEFAULT_ARGS,
        "tags": ["kafka-segments"],
        "owner_links": {DEFAULT_ARGS["owner"]: f"{_DOCS_URL}/airflow.html"} if _DOCS_URL else {},
        "doc_md": _doc(doc, own["params"], pages),
        **own,
        **of_site,
        macros: {
            **own.get(macros, {}),
            **of_site.get(macros, {}),
            "variable": _variable_in_template,
        },
    }


def _doc(doc: str, params: Mapping[str, Param], pages: Sequence[str]) -> str:
    """Write the page of a DAG as Markdown."""
    told = "\n".join(f"- `{name}`: {param.description}" for name, param in params.items())
    linked = ", ".join(
        f"[{page}]({_DOCS_URL}/{page}.html)" if _DOCS_URL else f"`docs/{page}.md`"
        for page in (*pages, "runbook", "airflow")
    )
    return f"{doc.strip()}\n\n**Params**\n\n{told}\n\n{_WHEN_IT_FAILS}\n\n**More**: {linked}"


def text_param(description: str, **schema: Any) -> Param:
    """Give a param that may be left out, null."""
    return Param(None, type=["string", "null"], description=description, **schema)


def shared_params() -> dict[str, Param]:
    """Give the params of every DAG; null takes the variable's value."""
    return {
        "warehouse": text_param(
            "Root of the Delta tables; default: variable kafka_segments_warehouse."
        ),
        "conf": text_param(
            "TOML file of settings, readable by the driver; default: variable"
            " kafka_segments_conf, and Kafka's defaults where that is empty."
        ),
    }


def config_file_params() -> dict[str, Param]:
    """Give the params that name files with configurations of brokers and topics."""
    return {
        "topic_configs": text_param(
            "What `kafka-configs --describe` printed: a file that the driver can read; default:"
            " variable kafka_segments_topic_configs, and none where that is empty."
        ),
        "server_properties": text_param(
            "The brokers' server.properties: a file that the driver can read; default: variable"
            " kafka_segments_server_properties, and none where that is empty."
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
        "index_dir": text_param(
            "Index files go to a folder by name below; default: variable"
            " kafka_segments_index_dir, and none where that is empty."
        ),
    }


def report_params() -> dict[str, Param]:
    """Give the param of the DAGs that write the report."""
    return {"report": text_param("The HTML page; default: _report.html under the warehouse.")}


def log_dirs(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read the log directories of a run, each with its ``index_dir`` or None.

    Raises:
        AirflowFailException: there are none, the variable does not fit the schema of the param, or
            two have one name, so that their index files would mix.
    """
    found = listed(params, "log_dirs", _LOG_DIRS)
    names = [entry["name"] for entry in found]
    if len(set(names)) != len(names):
        raise AirflowFailException(f"log_dirs: names must differ, found {', '.join(names)}")
    index_dir = params["index_dir"] or Variable.get("kafka_segments_index_dir", default="")
    return [
        {**entry, "index_dir": f"{index_dir}/{entry['name']}" if index_dir else None}
        for entry in found
    ]


def listed(params: Mapping[str, Any], param: str, schema: Mapping[str, Any]) -> Any:
    """Read a list from a param or, where that is null, from the variable that fits its schema.

    Airflow itself takes a value that is no JSON for a variable that is not there, and tries again.

    Raises:
        AirflowFailException: the variable is not set, is no JSON, is empty or does not fit; or
            another one that the run's later tasks need is not set.
    """
    given = params[param] or _listed_by_variable(param, schema)
    variable("home")
    if not params["warehouse"]:
        variable("warehouse", param="warehouse")
    return given


def listed_or_none(params: Mapping[str, Any], param: str, schema: Mapping[str, Any]) -> Any:
    """Read a list that may be left out: from a param, else from a variable, else it is empty.

    Raises:
        AirflowFailException: the variable is no JSON, or does not fit the schema.
    """
    if params[param] is not None:
        return params[param]
    text, name = Variable.get(f"kafka_segments_{param}", default=""), _variable_of(param)
    return _fitting(name, _parsed(name, text), schema) or [] if text else []


def _listed_by_variable(param: str, schema: Mapping[str, Any]) -> Any:
    text, name = variable(param, param=param), _variable_of(param)
    given = _parsed(name, text)
    if not given:
        raise AirflowFailException(f"{name} is an empty list: there would be nothing to do")
    return _fitting(name, given, schema)


def _variable_of(param: str) -> str:
    return f"variable kafka_segments_{param}"


def _parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise AirflowFailException(f"{name} is no JSON: {error}") from None


def _fitting(name: str, given: Any, schema: Mapping[str, Any]) -> Any:
    try:
        return Param(given, **schema).resolve()
    except ParamValidationError as error:
        wrong: Any = error.args[0]
        raise AirflowFailException(f"{name}: {wrong.json_path}: {wrong.message}") from None


def variable(name: str, *, param: str | None = None) -> str:
    """Return the text of a variable that has no default.

    Where a template names a variable by itself, one that is not set is tried again.

    Raises:
        AirflowFailException: it is not set, or is empty.
    """
    text = Variable.get(f"kafka_segments_{name}", default=None)
    if not text:
        without = "" if param is None else f", and the run has no param {param}"
        found = "not set" if text is None else "empty"
        raise AirflowFailException(f"variable kafka_segments_{name} is {found}{without}")
    return str(text)


def has_turn(ti: Any) -> bool:
    """Say whether no other run of the DAG is past its first task, which is the one that asks.

    ``max_active_runs`` does not hold for a backfill, which has a limit of its own. The first task
    must have ``max_active_tis_per_dag=1``. The runs that wait are counted first: one that starts
    meanwhile is then taken to be past it, so that this one waits for longer, never too short.
    """
    waiting = ti.get_ti_count(dag_id=ti.dag_id, task_ids=[ti.task_id], states=list(_STARTED_STATES))
    return ti.get_dr_count(dag_id=ti.dag_id, states=["running"]) <= waiting


TURN = {
    "mode": "reschedule",
    "poke_interval": 20,
    "max_active_tis_per_dag": 1,
    "pool": "default_pool",
}
