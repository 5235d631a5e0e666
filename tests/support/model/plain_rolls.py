"""When a broker rolls, written as LogSegment.shouldRoll of each release says it (semantics 8)."""

import random
from typing import Any, NamedTuple

NOW_MS = 1_700_003_600_000
LONG_MAX = 2**63 - 1
WEEK_MS = 604_800_000
COLUMNS = {
    "cluster": "string",
    "broker_id": "int",
    "log_dir": "string",
    "topic": "string",
    "partition": "int",
    "base_offset": "long",
    "size_bytes": "long",
    "next_offset": "long",
    "first_batch_timestamp_ms": "long",
    "max_timestamp_ms": "long",
    "created_ms": "long",
    "index_entries": "long",
    "time_index_entries": "long",
    "segment_bytes": "long",
    "segment_ms": "long",
    "segment_jitter_ms": "long",
    "segment_index_bytes": "long",
    "max_compaction_lag_ms": "long",
    "cleanup_policy": "string",
    "append_bytes": "long",
    "append_timestamp_ms": "long",
    "append_last_offset": "long",
    "index_source": "string",
    "cut_short": "string",
}


class Clock(NamedTuple):
    """What the time rule counts from, what that is, and how long it has waited."""

    at: int
    source: str
    waited: int


def draw_segment(choice: random.Random, number: int) -> dict[str, Any]:
    """Draw a segment and an append beside one limit or another."""
    base = choice.choice([0, 7, 2**40])
    size = choice.choice([0, 900, 900, 900])
    append = choice.choice([61, 100])
    first = choice.choice([-1, -1, 0, 1_000, NOW_MS - 20_000])
    largest = first if first < 0 else first + choice.choice([0, 0, 5_000])
    near = choice.choice([-1, 0, 1])
    segment_ms = choice.choice([1, 10_000, 10_000, WEEK_MS, LONG_MAX])
    limit = min(segment_ms, WEEK_MS)
    lag = choice.choice([LONG_MAX, LONG_MAX, 0, 9_000, -1])
    index_bytes = choice.choice([80, 84, 96, 10_485_760])
    reach = 2**31 - 1 + choice.choice([0, 1])
    return {
        "cluster": "c",
        "broker_id": 1,
        "log_dir": "/d",
        "topic": "t",
        "partition": number,
        "base_offset": base,
        "size_bytes": size,
        "next_offset": base + choice.choice([1, 10]),
        "first_batch_timestamp_ms": first,
        "max_timestamp_ms": largest,
        "created_ms": NOW_MS - choice.choice([0, limit + near, 9_000 + near]),
        "index_entries": choice.choice([0, index_bytes // 8 - 1, index_bytes // 8]),
        "time_index_entries": choice.choice([0, index_bytes // 12 - 2, index_bytes // 12 - 1]),
        "segment_bytes": choice.choice([2**30, 2**30, size + append + near]),
        "segment_ms": segment_ms,
        "segment_jitter_ms": choice.choice([0, 0, 1, 2, 500, LONG_MAX]),
        "segment_index_bytes": index_bytes,
        "max_compaction_lag_ms": lag,
        "cleanup_policy": choice.choice(["delete", "compact", "compact,delete"]),
        "append_bytes": append,
        "append_timestamp_ms": choice.choice([-1, first + limit + near, first + 9_000 + near]),
        "append_last_offset": base + choice.choice([9, 9, 9, -1, 0, reach]),
        "index_source": "beside",
        "cut_short": None,
    }


def max_segment_ms(row: dict[str, Any], release: tuple[int, ...]) -> int:
    """Give LogConfig.maxSegmentMs."""
    lag: int = row["max_compaction_lag_ms"]
    compacts = "compact" in row["cleanup_policy"].split(",")
    segment_ms: int = row["segment_ms"]
    return min(segment_ms, lag) if compacts and lag > 0 and release >= (2, 3) else segment_ms


def largest_jitter(row: dict[str, Any]) -> int:
    """Give the most that LogConfig.randomSegmentJitter can draw."""
    return max(min(row["segment_jitter_ms"], row["segment_ms"], 2**31) - 1, 0)


def clock(row: dict[str, Any], time: str, now_ms: int) -> Clock:
    """Give the clock of a time rule; where there is no timestamp it counts from the creation."""
    first, largest = row["first_batch_timestamp_ms"], row["max_timestamp_ms"]
    if time in ("first-batch", "first-message") and first >= 0:
        return Clock(first, time, row["append_timestamp_ms"] - first)
    if time == "largest-timestamp" and largest >= 0:
        return Clock(largest, time, now_ms - largest)
    return Clock(row["created_ms"], "create-time", now_ms - row["created_ms"])


def rules_that_hold(
    row: dict[str, Any], release: tuple[int, ...], time: str, jitter_ms: int
) -> list[str]:
    """Give the rules by which the append rolls, in Kafka's order."""
    waited = clock(row, time, NOW_MS).waited
    reach = row["append_last_offset"] - row["base_offset"]
    index_bytes = row["segment_index_bytes"]
    is_past = waited > max_segment_ms(row, release) - jitter_ms
    holds = {
        "segment_bytes": row["size_bytes"] > row["segment_bytes"] - row["append_bytes"],
        "segment_ms": row["size_bytes"] > 0 and is_past,
        "offset_index_full": row["index_entries"] >= index_bytes // 8,
        "time_index_full": release >= (0, 10, 1)
        and row["time_index_entries"] >= index_bytes // 12 - 1,
        "offset_overflow": release >= (0, 10, 2) and not 0 <= reach <= 2**31 - 1,
    }
    return [name for name, is_held in holds.items() if is_held]
