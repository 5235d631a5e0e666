"""How old the tables are is said of answers of now, and of a moment since they were built."""

from collections.abc import Callable
from typing import Any

import pytest

from kafka_segments.console.as_built import tell_age
from kafka_segments.engine.tables import as_built


def _found(builds_ms: list[int]) -> Callable[..., as_built.AsBuilt]:
    return lambda *_: as_built.AsBuilt(builds_ms, (), ())


@pytest.mark.parametrize(
    ("builds_ms", "asked", "said"),
    [
        ([5_000, 7_000], {"now_ms": 8_000}, "the oldest 3.000 s before: what changed since does"),
        ([5_000, 7_000], {"now_ms": 8_000, "at_ms": 6_000}, "the oldest 1.000 s before: what"),
        ([5_000, 7_000], {"now_ms": 8_000, "at_ms": 5_000}, None),
        ([5_000], {"now_ms": None}, None),
        ([], {"now_ms": 8_000, "at_ms": 6_000}, "how old the tables are is not known"),
    ],
)
def test_an_answer_of_a_moment_before_all_builds_alone_says_no_age(
    builds_ms: list[int],
    asked: dict[str, int | None],
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    warehouse: Any = None
    monkeypatch.setattr(as_built, "read_age", _found(builds_ms))

    tell_age(warehouse, **asked)

    told = capsys.readouterr().err
    assert said in told if said else not told
