"""``kafka_segments.forecast``: the rows of ``recovery forecast``, without a session."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import kafka_segments
from kafka_segments.cli import cli


@pytest.fixture(scope="module")
def node(cluster: Path) -> Path:
    return next(cluster.rglob("node-1"))


@pytest.mark.parametrize("rows", ["options", "logs", "findings"])
def test_rows_are_those_of_the_command(node: Path, rows: str) -> None:
    words = ["recovery", "forecast", "--source", str(node), "--broker-threads", "2"]
    done = CliRunner().invoke(cli, [*words, "--rows", rows, "--output", "json"])

    found = kafka_segments.forecast(node, broker_threads=2)

    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert json.loads(json.dumps(getattr(found, rows))) == printed
    assert found.has_findings == (done.exit_code == 1)
    assert all(note in done.stderr for note in (*found.notes, *found.problems))


@pytest.mark.parametrize(
    ("sources", "options", "says"),
    [
        ((), {}, "needs a source"),
        (("x",), {"check": "half"}, "check is 'half': tails or full expected"),
        (("x",), {"broker_threads": 0}, "broker_threads is 0: 1 or more expected"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    sources: tuple[str, ...], options: dict[str, object], says: str
) -> None:
    with pytest.raises(kafka_segments.UsageError, match=says):
        kafka_segments.forecast(*sources, **options)  # type: ignore[arg-type]
