"""docs/index-formats.md and broker-rules.md: examples run, figures are measured."""

import doctest
import re
from pathlib import Path

import pytest

from kafka_segments.kafka.index.segment.recovered_segment import TIME_ENTRY_BYTES
from support.logs.index_sizes import (
    GIB,
    EntryCounts,
    bytes_by_the_clock,
    bytes_by_the_interval,
    sizes_by_granularity,
    table,
)

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = (DOCS / "index-formats.md").read_text("utf-8")
RULES = (DOCS / "broker-rules.md").read_text("utf-8")


def examples(text: str) -> list[tuple[str, str]]:
    """Give (heading, example) of every block that is a session."""
    blocks = r"^## (.+?)$.*?^```pycon\n(.*?)^```$"
    return re.findall(blocks, text, flags=re.MULTILINE | re.DOTALL)


def test_every_format_and_rule_has_an_example() -> None:
    assert [title for title, _ in examples(FORMATS)] == ["kip33", "minute", "every-n", "kafka"]
    assert [title for title, _ in examples(RULES)] == [
        "Start",
        "Truncation",
        "Size of index files",
    ]


@pytest.mark.parametrize(("title", "example"), examples(FORMATS) + examples(RULES))
def test_the_examples_run(title: str, example: str) -> None:
    found = doctest.DocTestParser().get_doctest(example, {}, title, "docs", 0)
    said: list[str] = []

    results = doctest.DocTestRunner().run(found, out=said.append)

    assert results.failed == 0, "".join(said)


def test_the_table_is_what_the_brokers_segments_give(broker: Path) -> None:
    assert table([str(broker / "logs")]) in FORMATS


def test_the_texts_own_figures() -> None:
    assert bytes_by_the_clock(1_000) == 3_628_800_000
    assert round(bytes_by_the_clock(1_000) / 2**30, 1) == 3.4
    assert bytes_by_the_clock(60_000) == 60_480_000
    assert int(bytes_by_the_clock(60_000) / 2**20) == 57
    assert bytes_by_the_interval(4096) == 262_144 * 8 == 2 * 2**20
    assert bytes_by_the_interval(4096, TIME_ENTRY_BYTES) == 3 * 2**20


def test_sizes_are_means_of_the_segments_and_of_the_logs() -> None:
    segments = [
        EntryCounts("t-0", 1024, 10, 1, 4, 2, 3),
        EntryCounts("t-0", 3072, 30, 3, 8, 6, 5),
    ]

    second, minute, offset, time, every_100 = sizes_by_granularity(segments)

    assert second == ("second", 12, 20, 240, 480 * GIB / 4096, 480 * 3500)
    assert (minute.bytes_per_segment, offset.bytes_per_segment) == (24, 48)
    assert (time.bytes_per_segment, every_100.bytes_per_segment) == (48, 32)


@pytest.mark.parametrize("segments", [[], [EntryCounts("t-0", 0, 0, 0, 0, 0, 0)]])
def test_nothing_to_measure_is_an_error(segments: list[EntryCounts]) -> None:
    with pytest.raises(ValueError, match="no segments to measure, or only empty ones"):
        sizes_by_granularity(segments)
