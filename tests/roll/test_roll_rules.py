"""Roll decisions as a transform against Kafka's own LogSegment.shouldRoll."""

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from kafka_segments.errors import UsageError
from kafka_segments.verbs.judge.roll.decide.rolls import decide_rolls
from kafka_segments.verbs.judge.roll.decide.rules import RollRules
from support.kafka.kafka_referee import Referee
from support.model.plain_rolls import (
    COLUMNS,
    LONG_MAX,
    NOW_MS,
    clock,
    draw_segment,
    largest_jitter,
    max_segment_ms,
    rules_that_hold,
)
from support.spark.rows_of import rows_of

PARTITIONS = int(os.environ.get("ROLL_PARTITIONS", "8"))
CASES = int(os.environ.get("ROLL_CASES", "40"))
LATEST = RollRules()
RULES = (
    "segment_bytes",
    "segment_ms",
    "offset_index_full",
    "time_index_full",
    "offset_overflow",
)
SEGMENT: dict[str, Any] = {
    "cluster": "c",
    "broker_id": 1,
    "log_dir": "/d",
    "topic": "t",
    "partition": 0,
    "base_offset": 0,
    "size_bytes": 900,
    "next_offset": 10,
    "first_batch_timestamp_ms": 1_000,
    "max_timestamp_ms": 2_000,
    "created_ms": 5_000,
    "index_entries": 0,
    "time_index_entries": 1,
    "segment_bytes": 1_000,
    "segment_ms": 604_800_000,
    "segment_jitter_ms": 0,
    "segment_index_bytes": 10_485_760,
    "max_compaction_lag_ms": LONG_MAX,
    "cleanup_policy": "delete",
    "append_bytes": 100,
    "append_timestamp_ms": 2_000,
    "append_last_offset": 10,
    "index_source": "beside",
    "cut_short": None,
}


def _rows(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return rows_of(spark, [tuple(row[name] for name in COLUMNS) for row in rows], schema)


def _decide(
    spark: SparkSession, rules: RollRules = LATEST, now_ms: int = NOW_MS, **changes: Any
) -> Row:
    rows = _rows(spark, [SEGMENT | changes])
    return rows.transform(decide_rolls(now_ms=now_ms, rules=rules)).collect()[0]


def _draw(choice: random.Random, number: int, segment: dict[str, Any]) -> dict[str, Any]:
    """Draw settings and an append, mostly at the edge of a rule."""
    base, size = segment["baseOffset"], segment["validBytes"]
    first = segment["firstBatchTimestamp"]
    append_bytes = choice.choice([61, 100, 16_384])
    segment_ms = choice.choice([1, 1_000, 604_800_000, LONG_MAX])
    jitter_ms = choice.choice([0, 0, 1, 500, LONG_MAX])
    created = NOW_MS - choice.choice([0, 1_000, 1_001, 1_002, 604_800_001])
    near = choice.choice([-1, 0, 1, 2])
    timestamps = [first, NOW_MS, first + min(segment_ms, 2**40) + near, -1]
    needed = max(8 * segment["indexEntries"], 12 * segment["timeIndexEntries"], 8)
    near_full = [
        8 * segment["indexEntries"] + choice.choice([0, 7, 8]),
        12 * segment["timeIndexEntries"] + choice.choice([0, 12, 23, 24]),
    ]
    reach = base + 2**31 - 1 + choice.choice([0, 1])
    return SEGMENT | {
        "partition": number,
        "base_offset": base,
        "size_bytes": size,
        "next_offset": segment["nextOffset"],
        "first_batch_timestamp_ms": first,
        "max_timestamp_ms": segment["largestTimestamp"],
        "created_ms": created,
        "index_entries": segment["indexEntries"],
        "time_index_entries": segment["timeIndexEntries"],
        "segment_bytes": choice.choice([2**30, 2**30, max(14, size + append_bytes + near)]),
        "segment_ms": segment_ms,
        "segment_jitter_ms": jitter_ms,
        "segment_index_bytes": max(needed, choice.choice([10_485_760, 10_485_760, *near_full])),
        "append_bytes": append_bytes,
        "append_timestamp_ms": choice.choice(timestamps),
        "append_last_offset": choice.choice([segment["nextOffset"]] * 4 + [reach]),
    }


def _kafkas(referee: Referee, folder: Path, rows: list[dict[str, Any]]) -> list[str]:
    """Ask Kafka with no jitter and with the greatest that it can draw."""

    def rolls(jitters: list[int]) -> list[bool]:
        cases = [
            row | {"jitter_ms": jitter, "now_ms": NOW_MS}
            for row, jitter in zip(rows, jitters, strict=True)
        ]
        return referee.roll(folder, rows[0]["base_offset"], cases)

    most = [max(min(row["segment_jitter_ms"], row["segment_ms"], 2**31) - 1, 0) for row in rows]
    return [
        "roll" if late else "jitter" if early else "keep"
        for late, early in zip(rolls([0] * len(rows)), rolls(most), strict=True)
    ]


class Drawn(NamedTuple):
    """Active segments as rows, and what Kafka does with each."""

    rows: list[dict[str, Any]]
    expected: list[str]


@pytest.fixture(scope="module")
def random_segments(referee: Referee, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Drawn:
    choice, root = random.Random(seed), tmp_path_factory.mktemp("rolls")
    rows: list[dict[str, Any]] = []
    expected: list[str] = []
    for number in range(PARTITIONS):
        kind = ("v2", "legacy", "mixed", "transactions")[number % 4]
        folder = referee.generate(root / f"{number}", seed + number, kind)  # type: ignore[arg-type]
        interval = choice.choice([0, 64, 4096])
        for segment in referee.recover(folder, index_interval_bytes=interval):
            drawn = [_draw(choice, len(rows) + case, segment) for case in range(CASES)]
            expected += _kafkas(referee, folder, drawn)
            rows += drawn
    return Drawn(rows, expected)


def test_random_segments_roll_as_kafkas_do(spark: SparkSession, random_segments: Drawn) -> None:
    rows, expected = random_segments

    decided = _rows(spark, rows).transform(decide_rolls(now_ms=NOW_MS, rules=RollRules()))

    found = {row["partition"]: row for row in decided.collect()}
    differences = [
        (rows[number], found[number], answer)
        for number, answer in enumerate(expected)
        if found[number]["decision"] != answer
    ]
    alone = Counter(row["rules"][0] for row in found.values() if len(row["rules"]) == 1)
    print(f"{len(rows)} cases, {Counter(expected)}, one rule alone: {alone}")
    assert differences == []
    assert set(alone) == set(RULES)
    assert set(expected) == {"roll", "jitter", "keep"}


@pytest.mark.parametrize(
    ("release", "time"),
    [
        ((4, 3), "first-batch"),
        ((4, 3), "first-message"),
        ((2, 2), "largest-timestamp"),
        ((0, 10, 1), "first-batch"),
        ((0, 10, 0), "create-time"),
    ],
)
def test_each_release_rolls_as_its_shouldroll_says(
    spark: SparkSession, seed: int, release: tuple[int, ...], time: str
) -> None:
    choice = random.Random(seed)
    rows = [draw_segment(choice, number) for number in range(400)]

    decide = decide_rolls(now_ms=NOW_MS, rules=RollRules.of(release, time))
    decided = _rows(spark, rows).transform(decide).orderBy("partition").collect()

    for row, found in zip(rows, decided, strict=True):
        jitter, longest = largest_jitter(row), max_segment_ms(row, release)
        surely = rules_that_hold(row, release, time, 0)
        held = rules_that_hold(row, release, time, jitter)
        counted = clock(row, time, NOW_MS)
        moments = [counted.at + longest - jitter + 1, counted.at + longest + 1]
        has_moments = row["size_bytes"] > 0 and longest < LONG_MAX
        entries, times = row["segment_index_bytes"] // 8, row["segment_index_bytes"] // 12 - 1
        assert (
            found.asDict()
            | {
                "decision": "roll" if surely else "jitter" if held else "keep",
                "rule": held[0] if held else None,
                "rules": held,
                "clock_ms": counted.at,
                "clock_source": counted.source,
                "rolls_from_ms": moments[0] if has_moments else None,
                "rolls_by_ms": moments[1] if has_moments else None,
                "bytes_left": row["segment_bytes"] - row["size_bytes"],
                "index_entries_left": entries - row["index_entries"],
                "time_index_entries_left": times - row["time_index_entries"],
                "offsets_left": 2**31 - (row["next_offset"] - row["base_offset"]),
            }
            == found.asDict()
        ), row


def test_a_log_without_its_end_is_unknown_and_says_why(spark: SparkSession) -> None:
    row = _decide(spark, cut_short="not known: it ends early", size_bytes=10**6)

    assert (row["decision"], row["reason"]) == ("unknown", "not known: it ends early")
    assert (row["rules"], row["bytes_left"], row["nearest_rule"]) == ([], None, None)


def test_the_nearest_limit_and_when_the_bytes_are_used_up(spark: SparkSession) -> None:
    far = {"append_timestamp_ms": -1, "time_index_entries": 0, "next_offset": 0}
    rows = {
        "half of the bytes": {"size_bytes": 500},
        "time": {"size_bytes": 100, "append_timestamp_ms": 1_000 + 302_400_000},
        "entries": {"size_bytes": 100, "index_entries": 8, "segment_index_bytes": 80},
        "time entries": {"size_bytes": 100, "time_index_entries": 4, "segment_index_bytes": 80},
        "offsets": {"size_bytes": 1, "next_offset": 2**30, "base_offset": 0},
        "empty": {"size_bytes": 0, "append_timestamp_ms": LONG_MAX},
        "no timestamp": {"size_bytes": 500, "first_batch_timestamp_ms": -1, "created_ms": NOW_MS},
        "one timestamp": {"size_bytes": 500, "max_timestamp_ms": 1_000},
        "from 1970 on": {"size_bytes": 500, "first_batch_timestamp_ms": 0},
        "too large": {"size_bytes": 1_500},
        "clock set back": {"size_bytes": 10, "segment_ms": 2},
    }
    frame = _rows(
        spark, [SEGMENT | far | row | {"partition": n} for n, row in enumerate(rows.values())]
    )

    decide = decide_rolls(now_ms=NOW_MS, rules=LATEST)
    decided = frame.transform(decide).orderBy("partition").collect()

    found = {
        name: (row["nearest_rule"], round(row["nearest_share"], 4), row["projected_full_ms"])
        for name, row in zip(rows, decided, strict=True)
    }
    assert found == {
        "half of the bytes": ("segment_bytes", 0.5, 3_000),
        "time": ("segment_ms", 0.5, 11_000),
        "entries": ("offset_index_full", 0.8, 11_000),
        "time entries": ("time_index_full", 0.8, 11_000),
        "offsets": ("offset_overflow", 0.5, 1_001_000),
        "empty": ("time_index_full", 0.0, None),
        "no timestamp": ("segment_bytes", 0.5, None),
        "one timestamp": ("segment_bytes", 0.5, None),
        "from 1970 on": ("segment_bytes", 0.5, 4_000),
        "too large": ("segment_bytes", 1.5, 2_000),
        "clock set back": ("segment_bytes", 0.01, 101_000),
    }


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"append_bytes": 100}, None),
        ({"append_bytes": 101}, "segment_bytes"),
        ({"append_timestamp_ms": 604_801_000}, None),
        ({"append_timestamp_ms": 604_801_001}, "segment_ms"),
        ({"append_timestamp_ms": 604_801_001, "size_bytes": 0}, None),
        ({"first_batch_timestamp_ms": -1}, "segment_ms"),
        ({"append_last_offset": 2**31}, "offset_overflow"),
    ],
)
def test_the_specifications_examples(
    spark: SparkSession, changes: dict[str, Any], rule: str | None
) -> None:
    assert _decide(spark, now_ms=604_805_001, **changes)["rule"] == rule


@pytest.mark.slow
def test_older_rules_count_from_other_clocks(spark: SparkSession) -> None:
    changes = {"segment_ms": 10_000, "max_timestamp_ms": 9_000, "append_timestamp_ms": 2_000}

    def rule(version: tuple[int, ...], time: str | None, now_ms: int) -> object:
        return _decide(spark, RollRules.of(version, time), now_ms, **changes)["rule"]

    assert rule((4, 3), None, 99_000) is None  # the append's timestamp counts
    assert rule((4, 3), "first-message", 99_000) is None
    assert rule((4, 3), "largest-timestamp", 19_000) is None
    assert rule((4, 3), "largest-timestamp", 19_001) == "segment_ms"
    assert rule((0, 10, 0), None, 15_000) is None
    assert rule((0, 10, 0), None, 15_001) == "segment_ms"
    with pytest.raises(UsageError, match="rule last"):
        RollRules.of((4, 3), "last")


def test_offsets_and_timestamps_at_the_end_of_a_long_roll_by_overflow(spark: SparkSession) -> None:
    ends = {"base_offset": LONG_MAX - 10, "next_offset": LONG_MAX, "max_timestamp_ms": LONG_MAX}

    found = _decide(spark, **ends, append_last_offset=None)
    assert (found["rule"], found["offsets_left"]) == ("offset_overflow", 2**31 - 1 - 9)
    far = {"base_offset": LONG_MAX, "next_offset": -LONG_MAX - 1, "first_batch_timestamp_ms": -1}
    found = _decide(spark, **{**ends, **far}, append_last_offset=-LONG_MAX - 1)
    assert found["rules"][-1] == "offset_overflow"


@pytest.mark.slow
def test_releases_differ_in_full_time_indexes_overflow_and_compaction_lag(
    spark: SparkSession,
) -> None:
    full = {"segment_index_bytes": 24}
    far = {"append_last_offset": 2**31}
    lag = {
        "cleanup_policy": "compact,delete",
        "max_compaction_lag_ms": 100,
        "append_timestamp_ms": 1_101,
    }

    assert _decide(spark, RollRules.of((0, 10, 1)), **full)["rule"] == "time_index_full"
    assert _decide(spark, RollRules.of((0, 10, 0)), 5_000, **full)["rule"] is None
    assert _decide(spark, RollRules.of((0, 10, 2)), **far)["rule"] == "offset_overflow"
    assert _decide(spark, RollRules.of((0, 10, 1)), **far)["rule"] is None
    assert _decide(spark, RollRules.of((2, 3)), **lag)["rule"] == "segment_ms"
    assert _decide(spark, RollRules.of((2, 2)), **lag)["rule"] is None


def test_moments_hold_both_bounds_of_the_jitter(spark: SparkSession) -> None:
    row = _decide(spark, segment_ms=5_000, segment_jitter_ms=1_000)

    assert (row["rolls_from_ms"], row["rolls_by_ms"]) == (1_000 + 5_001 - 999, 1_000 + 5_001)
    assert row["projected_full_ms"] == 2_000 + 111
    assert (row["nearest_rule"], row["bytes_left"]) == ("segment_bytes", 100)
    assert _decide(spark, segment_ms=LONG_MAX)["rolls_by_ms"] is None


def test_a_segment_that_no_broker_loads_is_unknown(spark: SparkSession) -> None:
    row = _decide(spark, index_entries=None, time_index_entries=None)

    assert (row["decision"], row["rule"], row["bytes_left"]) == ("unknown", None, None)


def test_absurd_timestamps_are_no_failure(spark: SparkSession) -> None:
    row = _decide(spark, first_batch_timestamp_ms=LONG_MAX, max_timestamp_ms=LONG_MAX, now_ms=2**62)

    assert (row["decision"], row["rolls_by_ms"]) == ("keep", None)
