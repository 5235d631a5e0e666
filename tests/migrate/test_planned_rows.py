"""Rows of a migration's tables that name or count what no plan does are refused."""

from typing import Any

import pytest

from kafka_segments.errors import SetAsideError
from kafka_segments.verbs.change.migrate.planned_log import staged_log
from kafka_segments.verbs.change.migrate.planned_rows import planned_segment
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from kafka_segments.verbs.change.migrate.steps.log_step import reached, why_unverified

PATH = f"/d/logs/t-0/{10:020d}.log"
ROW = {
    **{"plan_id": "p", "cluster": "c", "broker_id": 1, "topic": "t", "partition": 0},
    **{"log_dir": "/d/logs", "root": "/d/logs.migration/p", "base_offset": 10, "path": PATH},
    **{"next_base_offset": 20, "size_bytes": 100, "mtime_ns": 5, "action": "cut", "cut_bytes": 9},
    **{"log_start_offset": 0, "topic_id": None, "rules": MigrationRules().text},
}


@pytest.mark.parametrize("root", ["/d/logs.migration/p", "/other/stage/p/d/logs"])
def test_a_row_as_it_was_planned_is_taken(root: str) -> None:
    segment = planned_segment({**ROW, "root": root})

    assert (str(segment.path), segment.valid_bytes) == (PATH, 91)
    assert segment.log == staged_log({**ROW, "root": root, "folder": "/d/logs/t-0"})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"path": ""}, "folder: found ''"),
        ({"path": "/etc/passwd"}, "path: found '/etc', no folder of partition 0 of 't'"),
        ({"path": f"/d/logs/u-0/{10:020d}.log"}, "path: found '/d/logs/u-0', no folder"),
        ({"path": f"/d/logs/x/../t-0/{10:020d}.log"}, "no absolute path"),
        ({"path": "/d/logs/t-0/x.log"}, f"{PATH!r} expected"),
        ({"path": f"{PATH}\0"}, "no absolute path"),
        ({"log_dir": "/d"}, "no folder of partition 0 of 't' in '/d'"),
        ({"partition": 1}, "no folder of partition 1"),
        ({"topic": "u"}, "no folder of partition 0 of 'u'"),
        ({"plan_id": "../p"}, "plan_id: found '../p'"),
        ({"root": "/home/x"}, "root: found '/home/x', '/d/logs.migration/p', or below"),
        ({"root": "/d/logs/p/d/logs"}, "root: found '/d/logs/p/d/logs'"),
        ({"root": "/d/logs.migration/q"}, "root: found '/d/logs.migration/q'"),
        ({"base_offset": -1}, "base_offset: found -1"),
        ({"next_base_offset": 10}, "next_base_offset: 10, no higher one"),
        ({"size_bytes": -1}, "size_bytes: found -1"),
        ({"cut_bytes": 101}, "cut_bytes: 101 of 100"),
        ({"action": "delete"}, "action: found 'delete'"),
        ({"log_start_offset": -7}, "log_start_offset: found -7"),
        ({"topic_id": "a\nb"}, "topic_id: found 'a\\nb'"),
    ],
)
def test_one_that_names_or_counts_something_else_is_refused_in_one_line(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetAsideError) as refused:
        planned_segment({**ROW, **changed})

    assert message in str(refused.value)
    assert str(refused.value).endswith("; nothing of its log is changed: plan again")


def test_the_status_of_such_a_log_is_refused_and_no_error_of_the_run() -> None:
    log = {**ROW, "folder": "/etc/t-0", "segment_count": 1, "verify": None, "stage": None}

    step = reached(log)

    assert (step.status, step.in_place) == ("refused", "unknown")
    assert "no folder of partition 0" in step.message


LOG = {**ROW, "folder": "/d/logs/t-0", "segment_count": 1}
DONE = {
    **{"status": "done", "message": "", "folder": "/d/logs/t-0", "root": ROW["root"]},
    **{"segment_count": 1, "size_bytes": 100},
}


def test_a_step_that_was_noted_is_taken() -> None:
    failed = {**DONE, "status": "failed", "message": "no space"}

    assert why_unverified({**LOG, "stage": None, "verify": None}) is not None
    assert why_unverified({**LOG, "stage": DONE, "verify": DONE}) is None
    assert why_unverified({**LOG, "stage": DONE, "verify": failed}) == (
        "`migrate verify` failed: no space"
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"status": "verified"}, "status: found 'verified'"),
        ({"status": None}, "status: found None"),
        ({"status": "refused"}, "message: found '', but it was refused"),
        ({"message": None}, "message: found None"),
        ({"folder": "/d/logs/t-1"}, "folder: found '/d/logs/t-1', '/d/logs/t-0' expected"),
        ({"root": "/x"}, "root: found '/x', '/d/logs.migration/p' expected"),
        ({"segment_count": 2}, "segment_count: found 2, 1 expected"),
        ({"size_bytes": -1}, "size_bytes: found -1"),
        ({"size_bytes": 99}, "size_bytes: found 99, 100 expected"),
    ],
)
def test_a_noted_step_that_no_run_of_the_plan_noted_proves_nothing(
    changed: dict[str, Any], message: str
) -> None:
    log = {**LOG, "stage": DONE, "verify": {**DONE, **changed}}

    with pytest.raises(SetAsideError) as refused:
        why_unverified(log)
    status = reached(log)

    assert "migration_events, plan p, verify of /d/logs/t-0: " in str(refused.value)
    assert message in str(refused.value)
    assert (status.status, status.message) == ("refused", str(refused.value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "EOF"),
        ("{}[", "trailing"),
        ('{"convert": 1}', "convert: found 1"),
        ('{"more": 1}', "more: found 1"),
        ('{"segment_index_bytes": 3}', "segment_index_bytes: found 3"),
        ('{"index_interval_bytes": -1}', "index_interval_bytes: found -1"),
        ('{"without_timestamps": "x"}', "without_timestamps: found 'x'"),
    ],
)
def test_rules_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(SetAsideError, match=message):
        MigrationRules.of(text)


def test_rules_are_read_as_they_were_written() -> None:
    rules = MigrationRules(convert=True, max_message_bytes=5)

    assert MigrationRules.of(rules.text) == rules
