"""A warehouse at a glance: sums and spans of few segments."""

from pyspark.sql import SparkSession

from kafka_segments.engine.derived.first_look_only import with_unverified
from kafka_segments.verbs.tell.report.decide.overview import (
    YEAR_10000_MS,
    draw_spans,
    sum_by_bin,
    sum_freed_by_dir,
    summarize_logs,
)
from support.spark.rows_of import LOG, frame, rows_of

NOW_MS = 1_000
SEGMENTS = (
    "base_offset long, size_bytes long, damage string, min_timestamp_ms long,"
    " first_batch_timestamp_ms long, max_timestamp_ms long, largest_timestamp_ms long,"
    " largest_timestamp_source string, is_unverified boolean"
)
ROWS = [
    {"min_timestamp_ms": 0, "max_timestamp_ms": 0, "largest_timestamp_ms": 0},
    {"min_timestamp_ms": -1, "max_timestamp_ms": -1, "largest_timestamp_ms": 70}
    | {"largest_timestamp_source": "last_modified"},
    {"min_timestamp_ms": 30, "max_timestamp_ms": 1_001, "largest_timestamp_ms": 1_001},
    {"min_timestamp_ms": 20, "max_timestamp_ms": 1_000, "largest_timestamp_ms": 1_000},
    {"min_timestamp_ms": 0, "max_timestamp_ms": 2**62, "largest_timestamp_ms": 2**62}
    | {"damage": "bad"},
]
_SIZED = [{"base_offset": 10 * n, "size_bytes": 1 << n, **row} for n, row in enumerate(ROWS)]


def test_a_log_is_summed_up(spark: SparkSession) -> None:
    (row,) = frame(spark, SEGMENTS, *_SIZED).transform(summarize_logs(now_ms=NOW_MS)).collect()

    assert tuple(row)[5:] == (5, 31, 1, 0, 2, 1, 0, 2**62)


def test_what_was_not_verified_is_counted_and_what_was_not_read_at_all_is_damage(
    spark: SparkSession,
) -> None:
    columns = "next_offset long, checked string"
    rows = [(9, "full"), (9, "headers"), (9, "index"), (9, None), (None, None)]

    told = frame(spark, columns, *({"next_offset": end, "checked": how} for end, how in rows))
    older = told.drop("checked")

    assert [row[-1] for row in told.transform(with_unverified).collect()] == [
        *(False, True, True, True, False),
    ]
    assert [row[-1] for row in older.transform(with_unverified).collect()] == [*[True] * 4, False]


def test_of_a_directory_goes_what_is_due_and_what_retention_does_not_know_is_counted(
    spark: SparkSession,
) -> None:
    columns = "decision string, reason_code string, frees_disk_at_ms long, size_bytes long"
    rows = [
        ("delete", "retention_ms", NOW_MS),
        ("keep", "not_expired", NOW_MS + 1),
        ("keep", "high_watermark_unknown", None),
        ("unknown", "left_over", None),
    ]
    names = ("decision", "reason_code", "frees_disk_at_ms")
    decisions = [
        {**dict(zip(names, row, strict=True)), "size_bytes": 1 << number}
        for number, row in enumerate(rows)
    ]

    freed = frame(spark, columns, *decisions).transform(sum_freed_by_dir(now_ms=NOW_MS))

    assert [tuple(row)[3:] for row in freed.collect()] == [(4, 2, 1)]


def test_spans_merge_neighbours_of_a_kind(spark: SparkSession) -> None:
    segments = frame(spark, SEGMENTS, *_SIZED)
    columns = f"{LOG}, lane int, spans int"

    def spans(most: int) -> list[tuple[object, ...]]:
        lanes = spark.createDataFrame([("c", 1, "/d", "t", 0, 4, most)], columns)
        drawn = segments.transform(draw_spans(lanes, now_ms=NOW_MS)).collect()
        return sorted(tuple(row)[1:] for row in drawn)

    last = YEAR_10000_MS - 1
    each = [
        (0, 0, 0, 1, 1, "sound"),
        (10, 70, 70, 1, 2, "by_mtime"),
        (20, 30, 1_001, 1, 4, "in_future"),
        (30, 20, 1_000, 1, 8, "sound"),
        (40, 0, last, 1, 16, "damaged"),
    ]
    assert spans(5) == spans(99) == each
    assert spans(1) == [(0, 0, 1_000, 2, 9, "sound"), *each[1:3], each[4]]
    assert spans(2) == each


def test_a_segment_that_was_looked_at_begins_with_its_first_batch(spark: SparkSession) -> None:
    known = {"max_timestamp_ms": 900, "largest_timestamp_ms": 900, "first_batch_timestamp_ms": 40}
    rows = [{"base_offset": 0, "min_timestamp_ms": 30, **known}, {"base_offset": 1, **known}]
    lanes = rows_of(spark, [("c", 1, "/d", "t", 0, 0, 9)], f"{LOG}, lane int, spans int")

    drawn = frame(spark, SEGMENTS, *rows).transform(draw_spans(lanes, now_ms=NOW_MS)).collect()

    assert [(row["start_ms"], row["end_ms"]) for row in drawn] == [(30, 900), (40, 900)]


def test_what_lies_outside_the_bins_goes_to_the_ends(spark: SparkSession) -> None:
    moments = (-5, 100, 109, 110, 129, 130, 2**63 - 1, None)
    rows = [{"at": at, "size_bytes": 1 << n} for n, at in enumerate(moments)]
    summed = sum_by_bin("at", from_ms=100, width_ms=10, bins=3)

    found = frame(spark, "at long, size_bytes long", *rows).transform(summed).collect()

    assert {row["bin"]: row["size_bytes"] for row in found} == {0: 7, 1: 8, 2: 112}
