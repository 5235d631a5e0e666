"""The DAG files and their operator, loaded by Airflow alone, once."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from kafka_segments.verbs.change.compact.command import compact
from kafka_segments.verbs.change.migrate.command import migrate
from kafka_segments.verbs.change.recovery.command import recovery
from kafka_segments.verbs.copies.backup.command import backup
from kafka_segments.verbs.find.triage.command import triage
from kafka_segments.verbs.judge.retention.command import retention
from kafka_segments.verbs.scan.command import build
from kafka_segments.verbs.tell.report.command import report
from kafka_segments.verbs.tell.validate.command import validate
from support.house.local_airflow import PYTHON, ROOT

DAY = 86400.0
TIMEOUTS = dict.fromkeys(("migration", "migration_rollback", "recovery"), 10 * DAY)
SIX_HOURS = 21600.0
VERBS = {
    "build_indexes": build,
    "check_backup": backup,
    "compact_indexes": compact,
    "decide_retention": retention,
    "migrate_legacy": migrate,
    "plan_recovery": recovery,
    "report_segments": report,
    "triage_directories": triage,
    "validate_tables": validate,
}
STEP = {"log": "/logs/t-0", "segments": 2, "bytes": 300, "in_place": "before", "message": ""}
NO_BUILD = "kafka-segments: /wh has no tables: run `kafka-segments build`"
SAID = [
    [1, ["3 damaged segments: column damage"], {}],
    [1, ["findings: fatal segments x: 1 of 2 rows"], {"fails_on_findings": True}],
    [2, ["kafka-segments: --source /x: not there", "exited with 2"], {}],
    [3, ["kafka-segments: disk full"], {}],
    [-9, ["WARNING: Using incubator modules: jdk.incubator.vector"], {}],
    [1, [json.dumps({**STEP, "status": "refused", "message": "held"})], {}],
    [2, [NO_BUILD], {"skips_before_build": True}],
    [2, [NO_BUILD], {}],
    [2, ["kafka-segments: --source /x: not there"], {"skips_before_build": True}],
]


def _in_airflow(folder: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("in_airflow.py"), ROOT / "airflow_dags", *arguments],
        env=os.environ
        | {
            "AIRFLOW_HOME": str(folder),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that is there, for options that name one."""
    file = tmp_path_factory.mktemp("files") / "settings"
    file.touch()
    return str(file)


@pytest.fixture(scope="module")
def loaded(file: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What Airflow says of the DAGs, each with all of its params given."""
    shared = {"warehouse": "/wh", "conf": file}
    files = {"topic_configs": file, "server_properties": file}
    migration = {
        **{"sources": ["/logs/a", "/logs/b"], "plan": "p-1", "topic_ids": file},
        **{"stage_dir": "/stage", "convert": True, "time_index": "mtime-next", "damaged": "cut"},
    }
    kits = str(Path(file).parent)
    (Path(kits) / "20261118T110640").mkdir()  # `recovery apply` takes a kit that is there
    confs = {
        "kafka_segments_rebuild": {
            **shared,
            "check": "headers",
            "full": True,
            "internals": True,
            "digests": True,
            "gate": "info",
        },
        "kafka_segments_backups": {"warehouse": "/wh", "check": "headers"},
        "kafka_segments_retention": {**shared, "server_properties": file},
        "kafka_segments_upkeep": {**shared, "index_interval_bytes": 8192, "report": "/r.html"},
        "kafka_segments_migration": {**shared, **files, **migration},
        "kafka_segments_migration_rollback": {
            **{"warehouse": "/wh", "plan": "p-1", "discard_appended": True},
        },
        "kafka_segments_recovery": {
            **{"conf": file, "sources": ["/logs/a", "/logs/b"], "kits": kits, "engine": "threads"}
        },
    }
    folder = tmp_path_factory.mktemp("airflow")
    return _in_airflow(folder, file, json.dumps(SAID), json.dumps(confs))


def test_dags_load_without_spark_and_without_the_package(loaded: Any) -> None:
    assert loaded["errors"] == {}
    assert sorted(loaded["dags"]) == [
        f"kafka_segments_{name}"
        for name in (
            *("backups", "migration", "migration_rollback"),
            *("rebuild", "recovery", "retention", "upkeep"),
        )
    ]


def test_every_dag_is_described_ends_in_time_and_refuses_unknown_keys(loaded: Any) -> None:
    for name, dag in loaded["dags"].items():
        assert dag["description"], name
        assert dag["timeout"] == TIMEOUTS.get(name.removeprefix("kafka_segments_"), 2 * DAY)
        assert dag["task_timeouts"] == [SIX_HOURS]
        assert dag["unchecked"] == [], name


def test_the_page_of_every_dag_has_its_params_what_to_do_and_where_to_read_on(loaded: Any) -> None:
    for name, dag in loaded["dags"].items():
        assert re.findall(r"^- `(\w+)`: \w", dag["doc"], re.MULTILINE) == dag["params"], name
        assert "**When a task fails**" in dag["doc"]
        pages = re.findall(r"`(docs/[a-z-]+\.md)`", dag["doc"])
        assert len(pages) > 2 and "docs/runbook.md" in pages
        assert all((ROOT / page).is_file() for page in pages), pages
        assert dag["owner_links"] == {}
        asks = name.startswith(("kafka_segments_migration", "kafka_segments_recovery"))
        assert ("approval" in dag["tags"]) == asks
        assert "kafka-segments" in dag["tags"]


def test_runs_that_wait_for_a_person_hold_up_no_others(loaded: Any) -> None:
    runs = {name: dag["runs"] for name, dag in loaded["dags"].items()}

    assert runs["kafka_segments_migration"] == runs["kafka_segments_migration_rollback"] == 100
    assert runs["kafka_segments_retention"] == 100  # or an event waits for the next one
    assert runs["kafka_segments_rebuild"] == 1


def test_a_sites_own_file_adds_callbacks_and_timeouts(tmp_path: Path) -> None:
    (tmp_path / "kafka_segments_site.py").write_text(
        "from datetime import timedelta\n"
        "DOCS_URL = 'https://docs.example/kafka-segments/'\n"
        "def page(context): ...\n"
        "DEFAULT_ARGS = {'on_failure_callback': page, 'execution_timeout': timedelta(hours=1)}\n"
        "_REBUILD = {'on_failure_callback': page, 'dagrun_timeout': timedelta(hours=3)}\n"
        "DAG_ARGS = {'kafka_segments_rebuild': _REBUILD}\n"
    )

    dags = _in_airflow(tmp_path, "", "[]", "{}")["dags"]

    rebuild, upkeep = dags["kafka_segments_rebuild"], dags["kafka_segments_upkeep"]
    assert (rebuild["on_failure"], rebuild["timeout"], rebuild["task_failures"]) == (True, 10800, 3)
    assert (upkeep["on_failure"], upkeep["timeout"], upkeep["task_failures"]) == (False, 2 * DAY, 6)
    assert upkeep["task_timeouts"] == [3600]
    assert upkeep["unchecked"] == []
    docs = "https://docs.example/kafka-segments"
    assert upkeep["owner_links"] == {"kafka-segments": f"{docs}/airflow.html"}
    assert f"[runbook]({docs}/runbook.html)" in upkeep["doc"]


def test_a_key_that_a_dag_has_not_is_named_with_the_one_that_is_meant(loaded: Any) -> None:
    none, known, misspelt, unlike = loaded["unknown_keys"]

    assert none is None and known is None
    assert misspelt[0] == "AirflowFailException"
    assert misspelt[1].startswith(
        "no such param: covnert (is convert meant?); kafka_segments_migration has conf, convert,"
    )
    assert unlike[1].startswith("no such param: zzz; ")
    assert misspelt[2] == ["::endgroup::", "the task failed: %s"]  # or Airflow's fold hides it


def test_a_variable_of_log_directories_is_checked_as_the_param_is(loaded: Any) -> None:
    sound, *others = loaded["variable_log_dirs"]

    assert sound is None
    assert {kind for kind, _ in others} == {"AirflowFailException"}  # which is not tried again
    name = "variable kafka_segments_log_dirs"
    for (_, said), begin in zip(
        others,
        (
            f"{name} is not set, and the run has no param log_dirs",
            f"{name} is empty, and the run has no param log_dirs",
            f"{name} is no JSON: Expecting property name",
            f"{name} is an empty list: there would be nothing to do",
            f"{name}: $[0]: 'name' is a required property",
            f"{name}: $[0]: Additional properties are not allowed ('brokr' was unexpected)",
            f"{name}: $[0].name: '..' does not match ",
            f"{name}: $[0].sources[0]: '' ",
            "variable kafka_segments_home is not set",
            "variable kafka_segments_warehouse is not set, and the run has no param warehouse",
        ),
        strict=True,
    ):
        assert said.startswith(begin)


def test_a_triage_is_of_what_the_run_names_and_skipped_with_a_line_where_it_names_none(
    loaded: Any,
) -> None:
    by_param, off, by_variable, *none, no_json, unfit = loaded["triage_dirs"]

    assert by_param == [[{"name": "p", "mapped_options": {"source": ["/p/a", "/p/b"]}}]]
    assert by_variable == [[{"name": "v", "mapped_options": {"source": ["/v"]}}]]
    said = "no param and no variable names triage_dirs: triage is skipped"
    assert [off, *none] == [[[], said]] * 5
    kinds = [no_json[0], unfit[0]]
    assert kinds == ["AirflowFailException"] * 2  # which is not tried again
    name = "variable kafka_segments_triage_dirs"
    assert no_json[1].startswith(f"{name} is no JSON: ")
    assert unfit[1].startswith(f"{name}: $[0].sources: ")


def test_a_variable_that_a_template_needs_and_that_is_not_set_is_named_by_every_dag(
    loaded: Any,
) -> None:
    ends = loaded["unset_variables"]

    assert {name.partition(" ")[0] for name in ends} == set(loaded["dags"])
    for name, (of_home, *of_warehouse) in ends.items():
        found = "not set" if name.endswith(" None") else "empty"
        assert of_home == ["AirflowFailException", f"variable kafka_segments_home is {found}"]
        warehouse = f"variable kafka_segments_warehouse is {found}, and the run has no param"
        assert of_warehouse == [["AirflowFailException", f"{warehouse} warehouse"]] * len(
            of_warehouse
        )
        assert bool(of_warehouse) != name.startswith("kafka_segments_recovery")


def test_retention_decides_where_and_when_each_rebuild_was(loaded: Any) -> None:
    by_hand, rebuilds, from_rest, nowhere = loaded["triggered"]

    assert by_hand == from_rest == [{"warehouse": "/own", "now-ms": "9", "conf": ""}]
    assert rebuilds == [
        {"warehouse": "/a", "now-ms": "5", "conf": ""},
        {"warehouse": "/b", "now-ms": "3", "conf": "/c.toml"},
        {"warehouse": "/b", "now-ms": "20", "conf": ""},
    ]
    assert nowhere[0] == "AirflowFailException" and nowhere[1].startswith("no warehouse: ")


def test_a_run_waits_while_another_is_past_its_first_task(loaded: Any) -> None:
    alone, all_wait, one_inside, one_of_three_inside = loaded["turns"]

    assert alone and all_wait
    assert not one_inside and not one_of_three_inside


def test_an_exit_status_becomes_an_end_with_its_reason_in_one_line(loaded: Any) -> None:
    found = loaded["endings"]
    (damaged, no_steps, none), gate, usage, full, killed, (refused, steps, _), *unbuilt = found

    assert damaged is None and no_steps is None and none is None
    assert {gate[2], usage[2]} == {
        "It is not tried again, as it would fail alike: mend what the line above names, then clear"
        " this task, or start a new run where a param was wrong"
    }
    assert {full[2], killed[2]} == {"It is tried again: that was try 1 of 3"}
    assert gate[0] == ["AirflowFailException", "findings: fatal segments x: 1 of 2 rows"]
    assert usage[0] == ["AirflowFailException", "--source /x: not there"]
    assert full[0] == ["AirflowException", "disk full"]
    assert killed[0][0] == "AirflowException"
    assert killed[0][1].startswith("the driver was ended by SIGKILL: ")
    assert refused is None
    assert steps["refused"] == [{"log": "/logs/t-0", "message": "held"}]
    kinds = ("AirflowSkipException", "AirflowFailException", "AirflowFailException")
    assert tuple(ended[0][0] for ended in unbuilt) == kinds
    assert unbuilt[0][0][1] == (
        "t is skipped, no build has ended yet: /wh has no tables: run `kafka-segments build`"
    )


def test_openlineage_is_told_of_log_directories_and_tables(loaded: Any) -> None:
    told = loaded["lineage"]

    tables = ("segments", "offset_index", "time_index", "logs", "unrecognized_files")
    built = [["file", f"/wh/{table}"] for table in tables]
    assert told["build"] == [
        [["file", "/logs/a"], ["s3://b", "k"]],
        [["file", "/i"], *built],
    ]
    assert told["validate"] == [built, [["file", "/wh/validation_results"]]]
    decided = [["file", "/wh/segments"], ["file", "/wh/logs"]]
    assert told["decide"] == [decided, [["file", "/wh/retention_decisions"]]]
    assert told["verify"] == [[["file", "/b"], ["file", "/mnt/n1"]], [["file", "/wh/divergences"]]]
    assert told["before"] is None  # nothing was submitted: its templates may not be filled in


def test_openlineages_provider_takes_them(loaded: Any) -> None:
    if "provider" not in loaded["lineage"]:
        pytest.skip("the provider is not in .venv-airflow, as it is not in DAGs' requirements")

    read, written = [["file", "/logs"]], [["file", "/wh/segments"]]
    assert loaded["lineage"]["provider"] == [read, written, read, []]


def test_what_is_submitted_is_what_the_verbs_take(loaded: Any, file: str) -> None:
    parsed = {}
    for script, task, arguments in loaded["submitted"]:
        verb: click.Command = VERBS[script]
        if isinstance(verb, click.Group) and arguments[0] in verb.commands:
            verb = verb.commands[arguments[0]]
            arguments = arguments[1:]  # noqa: PLW2901
        if task in ("decide", "report"):
            arguments += ["--warehouse", "/mapped"] * ("--warehouse" not in arguments)  # noqa: PLW2901
        if task == "build":
            arguments += ["--source", "/logs/a"] * ("--source" not in arguments)  # noqa: PLW2901
        if script == "check_backup":
            mapped = ["--backup", "/logs/b", "--against", f"n1={Path(file).parent}"]
            parsed[script, task] = verb.make_context(task, [*arguments, *mapped]).params
            continue
        parsed[script, task] = verb.make_context(task, list(arguments)).params

    nightly = parsed["check_backup", "verify"]
    assert (nightly["warehouse"], nightly["digests"]) == ("/wh", ("/wh",))
    assert nightly["check"] == "headers"
    rebuild, *_ = [sent for _, task, sent in loaded["submitted"] if task == "build"]
    assert "--digests" in rebuild
    plan = parsed["migrate_legacy", "plan"]
    assert plan["sources"] == ("/logs/a", "/logs/b")
    assert (plan["plan_id"], str(plan["topic_ids"]), plan["convert"]) == ("p-1", file, True)
    assert plan["damaged"] == "cut"
    inventory = parsed["migrate_legacy", "inventory"]
    assert str(inventory["server_properties"]) == file
    assert parsed["migrate_legacy", "apply"]["execute"]
    assert not parsed["migrate_legacy", "preview"]["execute"]
    rollback = parsed["migrate_legacy", "rollback"]
    assert rollback["execute"] and rollback["discard"]
    kit = parsed["plan_recovery", "kit"]
    assert (kit["sources"], kit["engine"]) == (("/logs/a", "/logs/b"), "threads")
    preview, apply = (parsed["plan_recovery", task] for task in ("preview", "apply"))
    assert str(preview["kit"]) == str(apply["kit"]) == kit["out"]
    assert apply["execute"] and not preview["execute"]
    (decide,) = [sent for _, task, sent in loaded["submitted"] if task == "decide"]
    assert decide[:2] == ["--topic-configs", file]  # by the variable
    looked_at = parsed["triage_directories", "triage"]
    assert (looked_at["now_ms"], looked_at["check"]) == (1_795_000_000_000, "tails")
