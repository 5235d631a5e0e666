"""Other settings' segments against a plain loop over every batch, many logs in one DataFrame."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.judge.roll.decide.recut import compare_cuts
from support.spark.rows_of import rows_of

INTERVAL = 300
GRID = [
    {"segment_bytes": size, "segment_ms": ms, "index_interval_bytes": interval}
    for size in (250, 1_000, 5_000, 10**6)
    for ms in (3, 50, 10**6)
    for interval in (100, 4096)
] + [{"segment_bytes": 2_000}, {"segment_ms": 20}]
KEYS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int, base_offset long"
)
Batch = tuple[int, int]  # size, timestamp


def _draw(choice: random.Random, kind: str) -> list[Batch]:
    batches, clock = [], 1_000
    for _ in range(choice.choice([0, 1, 3, 60, 200])):
        clock += choice.choice([0, 1, 2, 40])
        late = choice.choice([0, 10, 900]) if kind == "late" else 0
        timestamp = -1 if kind == "none" else clock - late
        batches.append((choice.choice([70, 100, 400]), timestamp))
    return batches


def _cut(batches: list[Batch], segment_bytes: int, segment_ms: int) -> list[list[Batch]]:
    """Do what a broker does: roll before an append that passes a limit."""
    segments: list[list[Batch]] = [[]]
    size = 0
    for batch in batches:
        first = segments[-1][0][1] if segments[-1] else -1
        is_late = first >= 0 and batch[1] - first > segment_ms
        if segments[-1] and (size > segment_bytes - batch[0] or is_late):
            segments.append([])
            size = 0
        segments[-1].append(batch)
        size += batch[0]
    return segments


def _index(segment: list[Batch], base: int, interval: int) -> tuple[list[Any], list[Any]]:
    """Write both indexes of a segment as its recovery does; a batch is one record."""
    offsets, times = [], []
    position = indexed = 0
    largest, at = -1, base
    for offset, (size, timestamp) in enumerate(segment, start=base):
        if timestamp > largest:
            largest, at = timestamp, offset
        if position - indexed > interval:
            offsets.append((offset, position))
            indexed = position
            if not times or largest > times[-1][0]:
                times.append((largest, at))
        position += size
    if largest >= 0 and (not times or largest > times[-1][0]):
        times.append((largest, at))
    return offsets, times


@pytest.mark.slow
@pytest.mark.parametrize("points_a_segment", [1024, 4])
def test_a_plain_cut_of_every_batch_lies_within_the_bounds(
    spark: SparkSession, points_a_segment: int, seed: int
) -> None:
    choice = random.Random(seed)
    logs = [_draw(choice, ("ordered", "ordered", "late", "none")[n % 4]) for n in range(80)]
    segments, offsets, times = [], [], []
    for number, log in enumerate(logs):
        base = 0
        for part in _cut(log, 3_000, 400):
            key = ("c", 1, "/d", "t", number, base)
            stamps = [batch[1] for batch in part]
            size = sum(batch[0] for batch in part)
            known = (size, *((stamps[0], max(stamps)) if part else (-1, -1)), len(part))
            segments.append((*key, *known, 3_000, (400, 90)[number % 2], INTERVAL))
            own_offsets, own_times = _index(part, base, INTERVAL)
            offsets += [(*key, *entry) for entry in own_offsets]
            times += [(*key, *entry) for entry in own_times]
            base += len(part)

    compare = compare_cuts(
        offset_index=rows_of(spark, offsets, f"{KEYS}, offset long, position long"),
        time_index=rows_of(spark, times, f"{KEYS}, timestamp_ms long, offset long"),
        grid=GRID,
        points_a_segment=points_a_segment,
    )
    columns = (
        "size_bytes long, first_batch_timestamp_ms long, max_timestamp_ms long, batch_count long,"
        " segment_bytes long, segment_ms long, index_interval_bytes long"
    )
    frame = rows_of(spark, segments, f"{KEYS}, {columns}")
    found = {(row["partition"], row["setting"]): row for row in frame.transform(compare).collect()}

    assert len(found) == len(logs) * len(GRID)
    exact = 0
    for (number, setting), row in found.items():
        values = dict(pair.split("=") for pair in setting.split())
        cuts = _cut(logs[number], int(values["segment_bytes"]), int(values["segment_ms"]))
        interval = int(values["index_interval_bytes"])
        entries = [_index(part, 0, interval) for part in cuts]
        index_bytes = sum(8 * len(one) + 12 * len(other) for one, other in entries)
        assert row["segments_least"] <= len(cuts) <= row["segments_most"], (number, row, len(cuts))
        assert row["segments_least"] <= row["segments"] <= row["segments_most"]
        assert row["index_bytes_least"] <= index_bytes <= row["index_bytes_most"], (number, row)
        exact += row["segments_least"] == row["segments_most"]
    print(f"{len(found)} cuts, {exact} of them exact")
    assert exact > len(found) // 10
