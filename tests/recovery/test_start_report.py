"""What is printed of the starts of nodes."""

import pytest

from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.node import NodeStart
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.verbs.change.recovery.forecast.report_starts import (
    print_starts,
    print_starts_as_lines,
)
from kafka_segments.verbs.change.recovery.forecast.run_start import NodeOfDirs


def _node(*findings: StartFinding) -> NodeOfDirs:
    return NodeOfDirs(("/d",), NodeStart(True, None, (), findings))


def _stray(folder: str, records: int | None = 7) -> StartFinding:
    found = "there is no partition.metadata"
    rest = ("partition.metadata", found, None, "", 100, 7, records)
    return StartFinding("no-topic-id", Effect.STRAY, "/d", folder, *rest)


def test_findings_of_one_state_are_one_with_what_they_cost_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = _node(_stray("t-0"), _stray("t-1"), StartFinding("gap", Effect.UNSEEN, "/d", "u-0"))

    print_starts([node])
    print_starts_as_lines([node])

    out, err = capsys.readouterr()
    assert out.count("write partition.metadata anew") == 1
    assert "2 such, e.g. " in out
    assert "; together 200 bytes, offsets 14, records 14" in out.replace("\n", " ")
    assert "t-1" not in out
    assert err.count("2 such, e.g. ") == 1
    assert len(err.splitlines()) == 2


def test_what_is_not_known_of_one_is_not_known_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    print_starts([_node(_stray("t-0"), _stray("t-1", records=None))])

    assert "records not known" in capsys.readouterr().out.replace("\n", " ")
