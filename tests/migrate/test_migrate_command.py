"""The verb migrate: what its steps refuse before anything is read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_segments.verbs.change.migrate.command import migrate


def _refused(*arguments: object) -> str:
    done = CliRunner().invoke(migrate, list(map(str, arguments)))
    assert done.exit_code == 2
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("step", ["stage", "verify", "apply", "rollback", "status"])
def test_a_step_needs_its_plan(step: str) -> None:
    assert _refused(step, "--warehouse", "w") == "Error: Missing option '--plan'."


def test_what_a_plan_cannot_take_is_refused(tmp_path: Path) -> None:
    ids = tmp_path / "topics.txt"
    ids.write_text("orders 6ZvIBo7HSWiOS3Z1Zz8NMg\n")

    said = _refused("plan", "--source", tmp_path, "--warehouse", "w", "--topic-ids", ids)
    assert said == (
        f"kafka-segments: --topic-ids {ids}: no topics: the output of kafka-topics --describe"
        " expected"
    )
    said = _refused("plan", "--source", tmp_path, "--warehouse", "w", "--plan", "../x")
    assert said == "kafka-segments: --plan ../x: letters, digits, . _ - expected"
    said = _refused("plan", "--source", "s3://b/logs", "--warehouse", "w")
    assert said.endswith("s3://b/logs: a migration moves folders of a local file system")
