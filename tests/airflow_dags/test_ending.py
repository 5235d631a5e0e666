"""How a job's end is told from what it said: without Airflow."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.console.early import ANY_TABLE, require_tables
from kafka_segments.engine.tables.missing import missing_table, missing_tables
from kafka_segments.errors import UsageError
from kafka_segments.verbs.find.triage.decide import Line, Section, Step
from kafka_segments.verbs.find.triage.report import print_triage
from kafka_segments.verbs.find.triage.run import TriagedNode
from kafka_segments.verbs.tell.validate.checkpoint import CheckResult
from kafka_segments.verbs.tell.validate.decide.checks import Severity
from kafka_segments.verbs.tell.validate.report import print_summary
from kafka_segments.verbs.tell.validate.run import Validation
from support.house.local_airflow import ROOT

_SPEC = importlib.util.spec_from_file_location(
    "kafka_segments_ending", ROOT / "airflow_dags" / "kafka_segments_ending.py"
)
assert _SPEC is not None and _SPEC.loader is not None
ending = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(ending)

INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"
STEP = {"segments": 2, "bytes": 300, "in_place": "before", "message": ""}


def _heard(*lines: str) -> Any:
    output = ending.JobOutput()
    assert list(output.watch(lines)) == list(lines)
    return output


@pytest.mark.parametrize(
    ("status", "lines", "reason"),
    [
        (2, ["kafka-segments: --source /x: not there", "exited with 2"], "--source /x: not there"),
        (2, ["Usage: …", "Error: No such option '--x'."], "No such option '--x'."),
        (3, ["kafka-segments: disk full", "Exception in thread main"], "disk full"),
        (
            1,
            ['Exception in thread "main" a.b.OutOfMemoryError: heap'],
            "a.b.OutOfMemoryError: heap",
        ),
        (4, ["it went wrong", INCUBATOR, "at a.b.C(D.java:1)", "  ", "----"], "it went wrong"),
        (4, ["it went wrong", "12:00:01 WARN Shell: no winutils"], "it went wrong"),
        (4, [INCUBATOR], "exit status 4, without a word"),
    ],
)
def test_the_reason_is_what_the_job_says_of_itself(
    status: int, lines: list[str], reason: str
) -> None:
    assert _heard(*lines).reason(status) == reason


@pytest.mark.parametrize("status", [-9, 137])  # the JVM killed, and the Python below it
def test_a_killed_driver_is_told_by_its_signal(status: int) -> None:
    killed = "the driver was ended by SIGKILL: by the kernel for want of memory"

    assert _heard(INCUBATOR).reason(status).startswith(killed)
    assert _heard(INCUBATOR).reason(status).endswith("; it said nothing")
    said = _heard("read 3 of 9 segments", INCUBATOR).reason(status)
    assert said.endswith("; its last line: read 3 of 9 segments")


def test_that_no_build_has_made_the_tables_is_told_by_what_verbs_say_of_it(tmp_path: Path) -> None:
    def why(warehouse: str, *tables: str) -> str:
        with pytest.raises(UsageError) as told:
            require_tables(warehouse, tables)
        return f"kafka-segments: {told.value}"

    (tmp_path / "other").mkdir()
    said = [why(str(tmp_path / folder), "segments") for folder in ("none", "other")]
    said += [why(str(tmp_path / "other"), ANY_TABLE), f"kafka-segments: {missing_tables('s3://w')}"]

    assert [line for line in said if not _heard(line).has_no_build()] == []
    assert not _heard("kafka-segments: --source /x: not there").has_no_build()
    assert not _heard(f"kafka-segments: {missing_table('/wh', 'offset_ranges')}").has_no_build()


def test_a_signal_counts_more_than_what_was_said_before_it() -> None:
    said = _heard("kafka-segments: ConnectionRefusedError: [Errno 111]").reason(-15)

    assert said.startswith("the driver was ended by SIGTERM: by a person, the task's timeout")


def test_the_gate_names_expectations_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    def result(check: str, severity: Severity, failed: int) -> CheckResult:
        return CheckResult("segments", check, severity, "why", 24, failed, [])

    results = (
        result("holes", Severity.WARNING, 2),
        result("holds", Severity.FATAL, 0),
        result("overlap", Severity.FATAL, 3),
        result("regress", Severity.INFO, 1),
    )
    validation = Validation("run", results, 0, None)
    for fail_on, found in (
        (Severity.FATAL, "fatal segments overlap: 3 of 24 rows"),
        (
            Severity.WARNING,
            "fatal segments overlap: 3 of 24 rows; warning segments holes: 2 of 24 rows",
        ),
    ):
        print_summary(validation, "/wh", fail_on=fail_on, page=None, dry_run=False)
        said = capsys.readouterr().err.splitlines()
        assert _heard(*said).findings() == found


def test_findings_of_a_build_are_its_counts() -> None:
    said = ["read 24 of 24 segments", "3 damaged segments: column damage", "tables: /wh"]

    assert _heard(*said).findings() == "3 damaged segments: column damage"
    blocked = ["blocks: no_topic_id (4, e.g. /logs/t-0)", "  no topic id", "  action: start it"]
    assert _heard(*blocked).findings() == "blocks: no_topic_id (4, e.g. /logs/t-0)"
    assert _heard("tables: /wh").findings() == "tables: /wh"


@pytest.mark.parametrize("starts", [True, False, None])
@pytest.mark.parametrize("section", Section)
def test_findings_of_a_triage_are_its_verdict_and_the_first_of_each_part(
    starts: bool | None, section: Section, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [Line(section, "/d/a", "meta.properties", what) for what in ("is spoilt", "is old")]
    facts = (False, True, 1, 2, 10, 0)
    broken = TriagedNode("c", 1, ("/d/a", "/d/b"), starts, ("/d/a",), *facts, tuple(lines), ())
    sound = TriagedNode("c", 2, ("/e",), True, (), *facts, (), (Step("start the broker"),))
    print_triage([broken, sound], "table")

    said = capsys.readouterr().out.splitlines()
    verdict = {True: "starts", False: "does not start", None: "not known whether it starts"}[starts]
    cost = "; offsets 0, records 0" if section == Section.LOSES else ""
    assert _heard(*said).findings() == (
        f"broker 1 of cluster c, /d/a, /d/b: {verdict}, without /d/a;"
        f" {section}: /d/a/meta.properties: is spoilt{cost}; broker 2 of cluster c, /e: starts"
    )


def test_steps_are_counted_and_refused_logs_named_but_not_all_of_them() -> None:
    steps = [
        {**STEP, "log": "/logs/a-0", "status": "done"},
        {**STEP, "log": "/logs/b-0", "status": "left alone", "message": "bad CRC"},
        {**STEP, "log": "/logs/c-0", "status": "left alone", "message": "there is nothing to do"},
        *(
            {**STEP, "log": f"/logs/d-{n:02}", "status": "refused", "message": ""}
            for n in range(30)
        ),
    ]

    output = _heard(*map(json.dumps, steps), '{"no": "step"}', "{no json")
    found = output.steps()

    assert found["logs"] == {"done": 1, "left alone": 2, "refused": 30}
    assert (found["segments"], found["bytes"], found["refusals"]) == (66, 9900, 31)
    assert len(found["refused"]) == 20
    assert output.findings().startswith(
        "31 logs refused or failed: /logs/b-0 (bad CRC); /logs/d-00"
    )
    assert len(output.findings()) <= 501
    full = _heard(json.dumps({**STEP, "log": "/logs/a-0", "status": "failed", "message": "ENOSPC"}))
    assert full.reason(3) == "1 logs refused or failed: /logs/a-0 (ENOSPC)"
    assert _heard("no steps").steps() is None


def test_a_review_has_counts_by_step_and_every_refused_log_once() -> None:
    staged = _heard(
        json.dumps({**STEP, "log": "/logs/a-0", "status": "done"}),
        json.dumps({**STEP, "log": "/logs/b-0", "status": "refused", "message": "no space"}),
    ).steps()
    states = _heard(
        json.dumps({**STEP, "log": "/logs/a-0", "status": "verified"}),
        json.dumps(
            {**STEP, "log": "/logs/b-0", "status": "left alone", "message": "[bad](x)\n`CRC`"}
        ),
    ).steps()

    assert ending.review_steps(
        {"stage": staged, "verify": None, "status": states}
    ).splitlines() == [
        "- stage: 1 done, 1 refused (4 segments, 600 bytes); 1 refused or failed",
        "- verify: no logs",
        "- status: 1 left alone, 1 verified (4 segments, 600 bytes); 1 refused or failed",
        "",
        "Left as they are:",
        "",
        "- `/logs/b-0`: `[bad](x) 'CRC'`",
    ]


def test_a_review_of_a_recovery_shows_each_torn_tail_with_its_bytes_and_records() -> None:
    cut = {"cut_bytes": 700, "cut_records": 12}
    whole = {"cut_bytes": 0, "cut_records": 0}
    kit = _heard(
        json.dumps({**STEP, "log": "a-0", "state": "ready", **cut, "message": "torn"}),
        json.dumps({**STEP, "log": "b-0", "state": "refused", **whole, "message": "bad CRC"}),
    ).steps()
    preview = _heard(
        json.dumps({"log_dir": "/d", "log": "a-0", "status": "would be done", "message": "", **cut})
    ).steps()

    assert ending.review_steps({"kit": kit, "preview": preview}).splitlines() == [
        "- kit: 1 ready, 1 refused (4 segments, 600 bytes); 1 refused or failed",
        "- preview: 1 would be done (0 segments, 0 bytes); 0 refused or failed",
        "",
        "Torn tails that are cut off:",
        "",
        "- `/d/a-0`: 700 bytes, whose headers name 12 records",
        "",
        "Left as they are:",
        "",
        "- `b-0`: `bad CRC`",
    ]
