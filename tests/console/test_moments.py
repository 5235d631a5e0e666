"""A number given for a moment that is no ms by its size is told, and taken as ms all the same."""

import pytest

from kafka_segments.console.moments import given_moment, given_point
from kafka_segments.errors import UsageError

NOW_MS = 1_769_868_000_000  # 2026-01-31 14:00:00 UTC


def test_seconds_are_told_with_the_number_that_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert given_point("--at", "1769868000", now_ms=NOW_MS) == 1_769_868_000
    assert capsys.readouterr().err == (
        "--at 1769868000 is taken as ms, 1970-01-21 11:37:48.000 UTC; were it seconds, it would be"
        " 2026-01-31 14:00:00.000 UTC: --at 1769868000000\n"
    )


@pytest.mark.parametrize(
    ("text", "unit"),
    [("1769868000000001", "microseconds"), ("1769868000000000001", "nanoseconds")],
)
def test_smaller_units_are_told_and_refused_where_no_calendar_has_them_as_ms(
    text: str, unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert given_moment("--time", text, now_ms=NOW_MS) == int(text)
    assert f"were it {unit}, it would be 2026-01-31 14:00:00.000 UTC" in capsys.readouterr().err
    with pytest.raises(UsageError, match=f"were it {unit}, it would be --at 1769868000000$"):
        given_point("--at", text, now_ms=NOW_MS)


@pytest.mark.parametrize("text", ["1769868000000", "-2h", "now", "2026-01-31T14:00:00Z", "0", "7"])
def test_nothing_is_said_of_what_is_no_other_unit(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given_point("--at", text, now_ms=NOW_MS)

    assert capsys.readouterr().err == ""
