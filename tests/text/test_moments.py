"""Moments as a person gives them."""

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.moments import (
    moment_text,
    mtime_text,
    parse_moment,
    parse_point,
    parse_span,
)

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("9223372036854775807", 2**63 - 1),
        ("-2h", NOW_MS - 7_200_000),
        ("-250ms", NOW_MS - 250),
        ("-1w", NOW_MS - 604_800_000),
        ("now", NOW_MS),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20.0079+01:00", 1_700_000_000_007),
        ("LATEST", -1),
        ("earliest", -2),
        ("-3", -3),
        ("EARLIEST_PENDING_UPLOAD", -6),
    ],
)
def test_a_moment_is_ms_iso_8601_back_from_now_or_a_name(text: str, moment: int) -> None:
    assert parse_moment(text, now_ms=NOW_MS) == moment


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2023-11-14T22:13:20", "has no zone"),
        ("yesterday", "is no moment"),
        ("9223372036854775808", "is no moment"),
        ("-7", "is no length of time"),
        ("-2y", "is no length of time"),
        ("-99999w", "lies before 1970"),
        ("1969-12-31T23:59:59Z", "lies before 1970, at 1969-12-31 23:59:59.000 UTC"),
        ("", "is no moment"),
        ("٣", "is no moment"),
    ],
)
def test_what_is_no_moment_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_moment(text, now_ms=NOW_MS)


def test_a_span_is_a_number_and_a_unit() -> None:
    spans = [parse_span(text) for text in ("7ms", "90s", "5m", "6h", "3d", "2w")]

    assert spans == [7, 90_000, 300_000, 21_600_000, 259_200_000, 1_209_600_000]


@pytest.mark.parametrize("text", ["253402300800000", "LATEST", "-3", "9223372036854775807"])
def test_a_point_in_time_is_no_name_and_not_after_the_year_9999(text: str) -> None:
    assert parse_point("--at", "253402300799999", now_ms=NOW_MS) == 253_402_300_799_999
    with pytest.raises(UsageError, match=f"^--at {text}: a moment up to the year 9999 expected"):
        parse_point("--at", text, now_ms=NOW_MS)


def test_a_span_that_no_moment_goes_back_by_is_refused() -> None:
    with pytest.raises(UsageError, match="is longer than the time from 1970"):
        parse_span("999999999999999w")


def test_a_moment_is_written_as_a_time() -> None:
    assert moment_text(1_700_000_000_007) == "2023-11-14 22:13:20.007 UTC"
    assert moment_text(-1) == "1969-12-31 23:59:59.999 UTC"
    assert moment_text(2**62) == f"{2**62} ms"


def test_an_mtime_is_written_to_the_ns() -> None:
    assert mtime_text(1_600_000_000_987_654_331) == "2020-09-13 12:26:40.987654331 UTC"
    assert mtime_text(2**80) == f"{2**80} ns"
