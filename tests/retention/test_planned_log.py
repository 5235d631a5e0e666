"""Rows of table ``retention_plans`` that name what no plan does are refused."""

from pathlib import Path
from typing import Any

import pytest

from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.judge.retention.planned_log import PlannedLog, moved

LOG = f"{10:020d}.log"


def _row(at: Path, **changed: Any) -> dict[str, Any]:
    folder = at / "t-0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LOG).write_text("x")
    row = {
        **{"plan_id": "p", "topic": "t", "partition": 0, "log_dir": str(at)},
        **{"base_offset": 10, "path": str(folder / LOG), "size_bytes": 1, "problem": None},
        **{"files": [{"name": LOG, "size_bytes": 1, "mtime_ns": 5}], "digests": None},
    }
    return {**row, **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"path": ""}, "folder: found ''"),
        ({"path": f"/etc/{LOG}"}, "no folder of partition 0"),
        ({"topic": "u"}, "no folder of partition 0 of 'u'"),
        ({"base_offset": 11}, "expected"),
        ({"plan_id": ".."}, "plan_id: found '..'"),
        ({"log_dir": "logs\0"}, "no absolute path"),
        ({"files": []}, "files: its .log is not the last one"),
        ({"files": [{"name": LOG, "size_bytes": -1, "mtime_ns": 5}]}, "size_bytes: found -1"),
        ({"files": [{"name": "../x", "size_bytes": 1, "mtime_ns": 5}]}, "its .log is not"),
        ({"digests": {"../x": "0" * 64}}, "digests: of a file that is none of the segment's"),
        ({"digests": {LOG: "x"}}, f"digests.{LOG}: found 'x'"),
        ({"problem": "too new"}, "too new"),
    ],
)
def test_a_row_that_is_not_as_a_plan_has_them_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    row = _row(tmp_path / "logs", **changed)
    before = sorted(tmp_path.rglob("*"))

    made = moved([row], None, lambda log: log.apply(execute=True), None)

    assert (made.status, message in made.reason) == ("refused", True), made.reason
    assert sorted(tmp_path.rglob("*")) == before


def test_a_log_dir_that_is_locked_and_kraft_s_own_log_are_refused(tmp_path: Path) -> None:
    def apply(log: PlannedLog) -> Any:
        return log.apply(execute=True)

    locked = moved([_row(tmp_path)], None, apply, "its .lock is held")
    folder = tmp_path / f"{METADATA_TOPIC}-0"
    of_kraft = {"topic": METADATA_TOPIC, "path": str(folder / LOG)}
    kraft = moved([_row(tmp_path, **of_kraft)], None, apply, None)

    assert (locked.status, locked.reason) == ("refused", "its .lock is held")
    assert kraft.reason == "KRaft's own log goes by other rules: plan again"
