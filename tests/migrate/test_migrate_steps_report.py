"""What the steps of migrate print, and the exit status that comes of it."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from kafka_segments.engine.tables.outcomes import Outcome
from kafka_segments.verbs.change.migrate.steps.command import exit_status
from kafka_segments.verbs.change.migrate.steps.log_step import LogStep
from kafka_segments.verbs.change.migrate.steps.report import print_steps


def _steps() -> Iterator[LogStep]:
    for broker, status, message in (
        (1, Outcome.REFUSED, "by the plan: /d1/t-0/0.log: damaged"),
        (2, Outcome.DONE, ""),
        (3, Outcome.DONE, ""),
        (4, Outcome.REFUSED, "by the plan: /d4/t-0/0.log: damaged"),
    ):
        place = f"/d{broker}"
        yield LogStep("c", broker, place, "t", 0, f"{place}/t-0", 2, 70, status, "before", message)


def test_refusals_that_are_alike_are_one_line_and_the_last_line_counts_all_logs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = print_steps(_steps(), "table")
    printed = capsys.readouterr()
    print_steps(_steps(), "json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    print_steps((), "table")

    assert printed.out.splitlines()[-1] == (
        "2 such, e.g. broker 1, /d1/t-0: refused, 2 segments, 70 bytes, in place: before; by the"
        " plan: /d1/t-0/0.log: damaged"
    )
    assert printed.err == "logs: 2 done (140 bytes), 2 refused (140 bytes)\n"
    assert counts == Counter({Outcome.DONE: 2, Outcome.REFUSED: 2})
    assert [(row["broker_id"], row["log_dir"]) for row in rows] == [
        (1, "/d1"),
        (2, "/d2"),
        (3, "/d3"),
        (4, "/d4"),
    ]
    assert capsys.readouterr().err == "logs: none\n"


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({}, 0),
        ({Outcome.DONE: 3}, 0),
        ({Outcome.DONE: 3, Outcome.REFUSED: 1}, 1),
        ({Outcome.DONE: 3, Outcome.REFUSED: 1, Outcome.FAILED: 1}, 3),
    ],
)
def test_a_log_refused_is_a_finding_and_one_that_failed_a_failure(
    counts: dict[str, int], status: int
) -> None:
    assert exit_status(Counter(counts)) == status
