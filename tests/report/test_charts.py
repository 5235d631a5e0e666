"""Charts of the report as places in percent, without Spark."""

import pytest

from kafka_segments.console.output import size_text
from kafka_segments.verbs.tell.report.charts import (
    Axis,
    Line,
    LineChart,
    axis_for,
    bars,
    line_chart,
)
from kafka_segments.verbs.tell.report.number_texts import (
    count_text,
    many,
    round_size_text,
    share_text,
)
from kafka_segments.verbs.tell.report.time_axis import time_marks

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000  # 2023-11-14 22:13:20


def _chart(*values: float, are_bytes: bool = True, is_stepped: bool = False) -> LineChart:
    line = Line("l", "solid", list(enumerate(values)), is_stepped)
    across = Axis(0, len(values) - 1)
    return line_chart([line], across, [(0, "a")], text=round_size_text, are_bytes=are_bytes)


def test_bars_are_as_long_as_their_values_say() -> None:
    drawn = bars([("a", 200, "200"), ("b", 50, "50"), ("c", 0, "0")])

    assert [bar.length for bar in drawn.bars] == [100, 25, 0]
    assert not drawn.is_log


def test_one_huge_value_does_not_flatten_the_others() -> None:
    drawn = bars([("huge", 10**12, ""), *((str(n), 10**6 + n, "") for n in range(5))])

    assert drawn.is_log
    assert drawn.bars[0].length == 100
    assert all(4 < bar.length < 10 for bar in drawn.bars[1:])


def test_an_axis_is_logarithmic_only_where_the_greatest_dwarfs_the_median() -> None:
    assert axis_for([]) == axis_for([0, 0]) == Axis(0, 1)
    assert axis_for([0, 1, 50]) == Axis(0, 50)
    assert axis_for([0, 2, 2, 200]) == Axis(1, 200, is_log=True)
    assert axis_for([1, 1, 1, 10**18]).least == 10**6


def test_marks_of_bytes_are_round_in_their_unit() -> None:
    assert [mark.text for mark in _chart(0, 3.3 * 1024**3).up] == [
        *("0 bytes", "1 GiB", "2 GiB", "3 GiB"),
    ]
    assert [mark.text for mark in _chart(0, 900).up][:3] == ["0 bytes", "200 bytes", "400 bytes"]
    assert [mark.text for mark in _chart(1, 1, 1, 2.0**40).up][-1] == "1 TiB"
    assert len(_chart(1, 1, 1, 2.0**60).up) <= 6


def test_a_stepped_line_holds_its_value_until_the_next_point() -> None:
    assert _chart(0, 0, 100, 100, is_stepped=True).paths[0].path == "M0 1000H666.7V0H1000"
    assert _chart(0, 100).paths[0].path == "M0 1000L1000 0"


@pytest.mark.parametrize(
    ("span_ms", "texts"),
    [
        (3000, ["22:13:20", "22:13:21", "22:13:22", "22:13:23"]),
        (3_600_000, ["11-14 22:15", "11-14 22:30", "11-14 22:45", "11-14 23:00"]),
        (3 * DAY_MS, ["11-15 00:00", "11-15 12:00", "11-16 00:00", "11-16 12:00", "11-17 00:00"]),
        (5 * DAY_MS, ["2023-11-15", "2023-11-16", "2023-11-17", "2023-11-18", "2023-11-19"]),
        (120 * DAY_MS, ["2023-12", "2024-01", "2024-02", "2024-03"]),
        (1200 * DAY_MS, ["2024-01", "2024-07", "2025-01", "2025-07", "2026-01", "2026-07"]),
    ],
)
def test_marks_of_time_lie_at_round_moments(span_ms: int, texts: list[str]) -> None:
    found = time_marks(NOW_MS, NOW_MS + span_ms)

    assert [text for _, text in found][: len(texts)] == texts
    assert len(found) <= 7
    assert all(NOW_MS <= at <= NOW_MS + span_ms for at, _ in found)


def test_marks_of_time_reach_to_the_end_of_the_calendar() -> None:
    marks = time_marks(0, 253_402_300_799_999)

    assert [text for _, text in marks] == ["2000", "4000", "6000", "8000"]


def test_numbers_are_written_for_a_person() -> None:
    assert (size_text(1023), size_text(1536), size_text(2.0**60)) == (
        *("1023 bytes", "1.5 KiB", "1024.0 PiB"),
    )
    assert (count_text(1234567), many(1, "segment"), many(2000, "segment")) == (
        *("1,234,567", "1 segment", "2,000 segments"),
    )
    assert [share_text(part, 300) for part in (100, 2, 0)] == ["33 %", "0.7 %", "0 %"]
    assert share_text(0, 0) == "0 %"
    assert share_text(1, 10_000) == "less than 0.1 %"
