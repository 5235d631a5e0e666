"""Decisions by themselves, on a few rows at the edge of each rule; no warehouse is built."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.derived.expired_but_kept import find_blocked
from kafka_segments.engine.derived.timestamps import guess_unit
from kafka_segments.engine.derived.written_times import with_written_ms
from kafka_segments.engine.sources import broker_identity
from kafka_segments.engine.tables.as_of import last_at_or_below
from kafka_segments.kafka.text.moments import YEAR_2000_S
from kafka_segments.verbs.find.failover import decide as plans
from kafka_segments.verbs.find.forensics import decide as forensics
from kafka_segments.verbs.find.lag.decide import commits as lag
from kafka_segments.verbs.scan.decide import folding as log_folding
from kafka_segments.verbs.scan.decide import plan as build_plan
from kafka_segments.verbs.tell.report.decide import overview
from support.spark.rows_of import rows_of

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
LOG = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "t", "partition": 0}
LOG_COLUMNS = "cluster string, broker_id int, log_dir string, topic string, partition int"


def _frame(spark: SparkSession, columns: str, *rows: dict[str, Any]) -> DataFrame:
    """Give rows as a frame; what a row leaves out is null."""
    names = [column.split()[0] for column in columns.split(",")]
    return rows_of(spark, [tuple(row.get(name) for name in names) for row in rows], columns)


def _values(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*names).collect()]


def test_the_unit_of_a_timestamp_at_the_ends_of_what_is_plausible(spark: SparkSession) -> None:
    first, last = 946_684_800, 4_102_444_800
    units = {"s": 1, "us": 10**6, "ns": 10**9}
    inside = {
        (first, -1): None, (first, 0): "", (first, 1): "",
        (last, -1): "", (last, 0): "", (last, 1): None,
    }  # fmt: skip
    rows = [
        (number * factor + step, unit if inside[number, step] is not None else None)
        for unit, factor in units.items()
        for number, step in inside
    ]
    rows += [(-1, None), (0, None), (NOW_MS, None)]

    found = rows_of(spark, rows, "ms long, unit string").withColumn(
        "guess", guess_unit(F.col("ms"))
    )

    assert _values(found, "ms", "guess") == rows


def test_where_a_failover_goes_back_to(spark: SparkSession) -> None:
    cases = [
        # last consumed, least unread -> target, is the margin enough
        (5_000, 4_500, 4_000, True),
        (5_000, 4_000, 4_000, True),
        (5_000, 3_999, 3_999, False),
        (5_000, None, 4_000, True),
        (None, 700, 700, True),
        (-1, 700, 700, True),
        (-1, None, None, True),
        (1_000, 0, 0, True),
        (1_001, 1, 1, True),
        (0, 9, 0, True),
        (999, 9, 0, True),
    ]
    groups = rows_of(
        spark,
        [case[:2] for case in cases],
        "last_timestamp_ms long, least_unread_timestamp_ms long",
    )

    found = groups.transform(plans.aim_failover(max_latency_ms=1_000))

    assert _values(found, *found.columns) == cases


def test_an_entry_is_taken_from_its_own_value_on(spark: SparkSession) -> None:
    entries = rows_of(
        spark, [("a", 5, "x"), ("a", 9, "y"), ("b", 0, "z")], "k string, e long, v string"
    )
    rows = rows_of(
        spark,
        [("a", 4), ("a", 5), ("a", 8), ("a", 9), ("b", -1), ("b", 7), ("c", 1)],
        "k string, n long",
    )

    found = rows.transform(
        last_at_or_below(entries, keys=["k"], at="n", entry_at="e", given=("v",))
    )

    assert sorted(_values(found, "k", "n", "v"), key=lambda row: row[:2]) == [
        ("a", 4, None), ("a", 5, "x"), ("a", 8, "x"), ("a", 9, "y"),
        ("b", -1, None), ("b", 7, "z"), ("c", 1, None),
    ]  # fmt: skip


SEGMENTS = (
    f"{LOG_COLUMNS}, base_offset long, size_bytes long, damage string, min_timestamp_ms long,"
    " max_timestamp_ms long, largest_timestamp_ms long, largest_timestamp_source string,"
    " last_modified_ms long, valid_bytes long, index_entries long, first_batch_timestamp_ms long"
)


def _segment(base: int, **changes: Any) -> dict[str, Any]:
    return {
        **LOG,
        "base_offset": base,
        "size_bytes": 100,
        "min_timestamp_ms": NOW_MS - 10,
        "max_timestamp_ms": NOW_MS,
        "largest_timestamp_ms": changes.get("max_timestamp_ms", NOW_MS),
        "largest_timestamp_source": "record",
        "last_modified_ms": NOW_MS - DAY_MS,
        "valid_bytes": 100,
        **changes,
    }


BY_MTIME = {
    "min_timestamp_ms": -1,
    "max_timestamp_ms": -1,
    "largest_timestamp_ms": NOW_MS - DAY_MS,
    "largest_timestamp_source": "last_modified",
}


def test_a_log_is_summed_up(spark: SparkSession) -> None:
    segments = _frame(
        spark,
        SEGMENTS,
        _segment(0, min_timestamp_ms=0, max_timestamp_ms=7),
        _segment(1, damage="corrupt", max_timestamp_ms=NOW_MS + 1),
        _segment(2, **BY_MTIME),
        _segment(0, topic="none", **BY_MTIME),
    ).withColumn("is_unverified", F.col("base_offset") == 2)

    found = segments.transform(overview.summarize_logs(now_ms=NOW_MS)).orderBy("topic")

    assert _values(found, "topic", *found.columns[5:]) == [
        ("none", 1, 100, 0, 0, 0, 1, None, None),
        ("t", 3, 300, 1, 1, 1, 1, 0, NOW_MS + 1),
    ]


def test_neighbours_are_merged_into_spans(spark: SparkSession) -> None:
    far = overview.YEAR_10000_MS
    segments = _frame(
        spark,
        SEGMENTS,
        *(
            _segment(n, min_timestamp_ms=n, max_timestamp_ms=n + 5, size_bytes=n + 1)
            for n in range(5)
        ),
        _segment(5, min_timestamp_ms=0, max_timestamp_ms=far),
        _segment(0, topic="few", min_timestamp_ms=9, max_timestamp_ms=8, damage="corrupt"),
        _segment(1, topic="few", **BY_MTIME),
        _segment(0, topic="left out"),
    )
    lanes = _frame(
        spark,
        f"{LOG_COLUMNS}, lane int, spans int",
        {**LOG, "lane": 0, "spans": 2},
        {**LOG, "topic": "few", "lane": 1, "spans": 50},
    )

    found = segments.transform(overview.draw_spans(lanes, now_ms=NOW_MS))

    assert _values(found, *found.columns) == [
        (0, 0, 0, 7, 3, 6, "sound"),
        (0, 3, 3, 9, 2, 9, "sound"),
        (0, 5, 0, far - 1, 1, 100, "in_future"),
        (1, 0, 8, 8, 1, 100, "damaged"),
        (1, 1, NOW_MS - DAY_MS, NOW_MS - DAY_MS, 1, 100, "by_mtime"),
    ]


def test_bins_take_what_lies_outside_at_their_ends(spark: SparkSession) -> None:
    moments = [-5, 99, 100, 109, 110, 119, 120, 129, 130, 10**12, None]
    rows = rows_of(spark, [(ms, 1) for ms in moments], "ms long, size_bytes long")

    found = rows.transform(overview.sum_by_bin("ms", from_ms=100, width_ms=10, bins=3))

    assert sorted(_values(found, "bin", "size_bytes")) == [(0, 4), (1, 2), (2, 4)]


def test_odd_timestamps_are_found_at_their_limits(spark: SparkSession) -> None:
    old = overview.KAFKA_0_8_MS
    rows = [_segment(0, max_timestamp_ms=old), _segment(1, max_timestamp_ms=old - 1)]
    rows += [_segment(2, max_timestamp_ms=NOW_MS), _segment(3, max_timestamp_ms=NOW_MS)]
    rows += [_segment(4, max_timestamp_ms=NOW_MS + 1), _segment(5, **BY_MTIME)]

    found = _frame(spark, SEGMENTS, *rows).transform(overview.find_oddities(now_ms=NOW_MS))

    older, before = "older than Kafka 0.8 (2012)", "before the segment that precedes it"
    assert sorted(_values(found, "base_offset", "oddities")) == [
        (1, [older, before]),
        (4, ["in the future"]),
        (5, [before, "no timestamps: mtime"]),
    ]


def test_bytes_an_entry_are_counted_by_quarters_of_a_doubling(spark: SparkSession) -> None:
    sizes = [(1, 1), (4096, 1), (4870, 1), (4871, 1), (8191, 1), (8192, 2), (1, 0), (0, 1)]
    rows = [_segment(n, valid_bytes=size, index_entries=of) for n, (size, of) in enumerate(sizes)]

    found = _frame(spark, SEGMENTS, *rows).transform(overview.count_density("index_entries"))

    assert _values(found, "step", "segments") == [(0, 1), (48, 3), (49, 1), (51, 1)]


def test_when_a_segment_was_written_as_far_as_that_can_be_believed(spark: SparkSession) -> None:
    first = YEAR_2000_S * 1000
    cases = [
        # largest timestamp, mtime, read at -> written
        (first, 1, 1, first),
        (first - 1, first, 1, first),
        (NOW_MS, 1, 1, NOW_MS),
        (NOW_MS + 1, NOW_MS, 1, NOW_MS),
        (-1, NOW_MS + 1, NOW_MS - 5, NOW_MS - 5),
        (-1, 0, NOW_MS + 5, NOW_MS),
    ]
    rows = rows_of(
        spark,
        [case[:3] for case in cases],
        "largest_timestamp_ms long, last_modified_ms long, at long",
    ).withColumn("scanned_at", F.timestamp_millis("at"))

    found = rows.transform(with_written_ms(now_ms=NOW_MS))

    assert [row[0] for row in _values(found, "written_ms")] == [case[3] for case in cases]


def test_what_has_expired_behind_an_older_segment(spark: SparkSession) -> None:
    def row(base: int, decision: str, blocked_by: int | None, expires: int) -> dict[str, Any]:
        return {
            **LOG,
            "base_offset": base,
            "size_bytes": 10 + base,
            "decision": decision,
            "blocked_by_base_offset": blocked_by,
            "expires_at_ms": expires,
        }

    decisions = _frame(
        spark,
        f"{LOG_COLUMNS}, base_offset long, size_bytes long, decision string,"
        " blocked_by_base_offset long, expires_at_ms long",
        row(0, "keep", None, 0),
        row(1, "keep", 0, NOW_MS),
        row(2, "keep", 0, NOW_MS - 1),
        row(3, "keep", 0, NOW_MS + 1),
        row(4, "delete", 0, 0),
        row(5, "keep", 3, 0),
    )

    found = decisions.transform(find_blocked(now_ms=NOW_MS))

    columns = ("blocked_by_base_offset", "segments", "size_bytes")
    assert sorted(_values(found, *columns)) == [(0, 2, 23), (3, 1, 15)]


@pytest.mark.parametrize(
    ("sources", "below"),
    [
        ([], []),
        (["/a/b"], ["/a/b", "/a/b/c"]),
        (["/a/b/"], ["/a/b/c"]),
        (["/a/bc", "/x"], ["/a/bc", "/x/y"]),
        (["/"], ["/a/b", "/a/b/c", "/a/bc", "/x/y", "/z"]),
    ],
)
def test_what_lies_below_a_source(
    spark: SparkSession, sources: list[str], below: list[str]
) -> None:
    paths = rows_of(
        spark, [(path,) for path in ("/a/b", "/a/b/c", "/a/bc", "/x/y", "/z")], "path string"
    )

    found = paths.where(broker_identity.lies_below(F.col("path"), sources))

    assert [row[0] for row in _values(found, "path")] == below


def test_a_segment_is_read_again_where_something_of_it_differs(spark: SparkSession) -> None:
    columns = f"{LOG_COLUMNS}, base_offset long, size_bytes long, mtime_ns long,"
    found = _frame(
        spark,
        f"{columns} next_base_offset long, is_active boolean, source string,"
        " relative_path string, name string",
        *(
            {**LOG, "base_offset": n, "size_bytes": 5, "mtime_ns": 7, "next_base_offset": 9}
            | {"is_active": n == 5}
            for n in range(7)
        ),
    )

    def known(rows: DataFrame) -> DataFrame:
        return rows.where("base_offset < 6").select(
            *build_plan.SEGMENT_KEYS,
            F.lit("").alias("path"),
            F.when(F.col("base_offset") == 1, "5/8")
            .otherwise(F.col("fingerprint"))
            .alias("fingerprint"),
            (F.col("base_offset") == 2).alias("is_active"),
            F.lit("kafka").alias("index_format"),
            F.when(F.col("base_offset") == 3, F.timestamp_millis(F.lit(0))).alias("vanished_at"),
        )

    def plans_of(before: DataFrame | None, **options: Any) -> list[str]:
        marked = found.transform(build_plan.plan_scan(before, options="o", **options))
        return [row[0] for row in _values(marked.orderBy("base_offset"), "plan")]

    first = found.transform(build_plan.plan_scan(None, options="o", full=False))
    assert _values(first.limit(1), "fingerprint", "plan") == [("5/7/o", "scan")]
    before = known(first)
    assert plans_of(None, full=False) == ["scan"] * 7
    assert plans_of(before, full=False) == [
        "same", "scan", "retouch", "retouch", "same", "retouch", "scan",
    ]  # fmt: skip
    assert plans_of(before, full=True) == ["scan"] * 7
    assert plans_of(before, full=False, needs_next=True) == ["scan"] * 7


def test_verdicts_of_the_fold_take_indexes_away(spark: SparkSession) -> None:
    columns = f"{LOG_COLUMNS}, base_offset long, damage string, index_entries long,"
    columns += " time_index_entries long, txn_index_entries long, fingerprint string"
    segments = _frame(
        spark,
        columns,
        *(
            {**LOG, "base_offset": n, "index_entries": 5, "time_index_entries": 6}
            | {"txn_index_entries": 1, "fingerprint": "f"}
            for n in range(4)
        ),
        {**LOG, "base_offset": 4, "damage": "own"},
    )
    verdicts = _frame(
        spark,
        f"{LOG_COLUMNS}, base_offset long, txn_index_entries long, log_damage string,"
        " is_scanned boolean",
        {**LOG, "base_offset": 0, "txn_index_entries": 2, "is_scanned": False},
        {**LOG, "base_offset": 1, "txn_index_entries": 1, "is_scanned": False},
        {**LOG, "base_offset": 2, "log_damage": "removed", "is_scanned": False},
        {**LOG, "base_offset": 3, "txn_index_entries": 9, "is_scanned": True},
        {**LOG, "base_offset": 4, "txn_index_entries": 9, "is_scanned": True},
    )
    names = ("base_offset", "damage", "index_entries", "time_index_entries")
    names = (*names, "txn_index_entries", "fingerprint")
    judged = [
        (0, None, 5, 6, 2, "f"),
        (1, None, 5, 6, 1, "f"),
        (2, "removed", None, None, None, None),
        (3, None, 5, 6, 9, "f"),
        (4, "own", None, None, None, None),
    ]

    assert (
        sorted(_values(segments.transform(log_folding.with_verdicts(verdicts)), *names)) == judged
    )
    plain = segments.transform(log_folding.with_verdicts(None))
    assert sorted(_values(plain, "base_offset", "txn_index_entries")) == [
        (0, 0), (1, 0), (2, 0), (3, 0), (4, None),
    ]  # fmt: skip
    again = segments.transform(log_folding.rejudged(verdicts))
    assert sorted(_values(again, *names)) == [judged[0], judged[2]]
    assert _values(log_folding.withheld(verdicts), "base_offset") == [(2,)]


def test_how_far_a_commit_is_behind(spark: SparkSession) -> None:
    columns = "cluster string, group_id string, topic string, partition int,"
    columns += " committed_offset long, commit_timestamp_ms long, log_start_offset long,"
    columns += " end_offset long, first_unread_offset long, first_unread_timestamp_ms long,"
    columns += " problem string, commits_doubt string, doubt string"
    cases = [
        # committed, end, unread, its timestamp -> status, offset lag, time lag, gone, is least
        (5, 9, 5, NOW_MS - 7, lag.BEHIND, 4, 7, 0, False),
        (5, 9, 5, 0, lag.BEHIND, 4, NOW_MS, 0, False),
        (5, 9, 5, -1, lag.BEHIND, 4, None, 0, False),
        (5, 9, 7, NOW_MS - 7, lag.COMPACTED, 4, 7, 2, True),
        (5, 9, None, None, lag.COMPACTED, 4, None, 4, True),
        (2, 9, 3, NOW_MS - 7, lag.EXPIRED, 7, 7, 1, True),
        (3, 9, 3, NOW_MS - 7, lag.BEHIND, 6, 7, 0, False),
        (9, 9, None, None, lag.UP_TO_DATE, 0, 0, 0, False),
        (None, 9, None, None, lag.NO_COMMIT, None, None, None, False),
        (5, None, None, None, lag.NO_LOG, None, None, None, False),
    ]
    names = ("committed_offset", "end_offset", "first_unread_offset", "first_unread_timestamp_ms")
    rows = [
        dict(zip(names, case, strict=False)) | {"log_start_offset": 3, "partition": number}
        for number, case in enumerate(cases)
    ]

    found = _frame(spark, columns, *rows).transform(lag.decide_lag(at_ms=NOW_MS))

    given = ("status", "offset_lag", "time_lag_ms", "gone_offsets", "is_time_lag_least")
    assert _values(found.orderBy("partition"), *given) == [case[4:] for case in cases]
    unread = _values(found.orderBy("partition"), "first_unread_offset")
    assert unread == [(case[2],) for case in cases]


def test_what_a_broker_would_refuse_at_the_limits(spark: SparkSession) -> None:
    columns = "topic string, partition int, producer_id long, segment_base_offset long,"
    columns += " position long, path string, timestamp_type string, max_timestamp_ms long,"
    columns += " base_timestamp_ms long, has_delete_horizon boolean, last_offset long"
    stamped, created = "LogAppendTime", "CreateTime"
    cases = [
        # type, first record's, greatest -> create, arrival, skew, refused by
        (stamped, NOW_MS - 100, NOW_MS, NOW_MS - 100, NOW_MS, 100, []),
        (stamped, NOW_MS - 101, NOW_MS, NOW_MS - 101, NOW_MS, 101, ["before"]),
        (stamped, NOW_MS + 50, NOW_MS, NOW_MS + 50, NOW_MS, -50, []),
        (stamped, NOW_MS + 51, NOW_MS, NOW_MS + 51, NOW_MS, -51, ["after"]),
        (stamped, NOW_MS - 201, NOW_MS, NOW_MS - 201, NOW_MS, 201, ["before", "difference"]),
        (stamped, -1, NOW_MS, None, NOW_MS, None, []),
        (stamped, 0, 100, 0, 100, 100, []),
        (created, 0, NOW_MS, NOW_MS, NOW_MS, None, []),
        (created, 0, NOW_MS + 50, NOW_MS + 50, None, None, []),
        (created, 0, NOW_MS + 201, NOW_MS + 201, None, None, ["after", "difference"]),
        (created, 0, -1, None, None, None, []),
    ]
    rows = [
        {"topic": "t", "partition": number, "producer_id": 1, "segment_base_offset": 0}
        | {"position": 0, "path": "p", "timestamp_type": kind, "base_timestamp_ms": base}
        | {"max_timestamp_ms": greatest, "has_delete_horizon": False, "last_offset": 9}
        for number, (kind, base, greatest, *_) in enumerate(cases)
    ]
    admission = forensics.Admission(before_ms=100, after_ms=50, difference_ms=200)

    judge = forensics.judge_timestamps(now_ms=NOW_MS, admission=admission)
    found = _frame(spark, columns, *rows).transform(judge).orderBy("partition")

    given = ("create_ms", "arrival_ms", "skew_ms", "refused_by")
    assert _values(found, *given) == [case[3:] for case in cases]


def test_a_brokers_own_limits_of_timestamps() -> None:
    latest = forensics.Admission()

    assert (latest.before_ms, latest.after_ms) == (2**63 - 1, 60 * 60 * 1000)
    assert latest.difference_ms == 2**63 - 1


def test_a_restore_does_not_cut_krafts_own_log(spark: SparkSession) -> None:
    logs = [LOG, LOG | {"topic": "__cluster_metadata"}]
    later = {"role": "true", "found_offset": 5, "found_batch_offset": 4, "found_position": 100}
    found = _frame(
        spark,
        f"{LOG_COLUMNS}, base_offset long, role string, found_offset long,"
        " found_batch_offset long, path string, found_position long, problem string",
        *(log | later | {"base_offset": 0, "path": "/d/0.log"} for log in logs),
    )
    segments = _frame(
        spark,
        f"{LOG_COLUMNS}, base_offset long, path string, valid_bytes long, next_offset long,"
        " is_active boolean, truncated_bytes long, damage struct<kind: string, message: string>",
        *(log | {"base_offset": 0, "path": "/d/0.log", "valid_bytes": 300} for log in logs),
    )
    bounds = _frame(
        spark,
        f"{LOG_COLUMNS}, log_start_offset long, log_end_offset long, high_watermark long",
        *(log | {"log_start_offset": 0, "log_end_offset": 10} for log in logs),
    )

    planned = found.transform(plans.plan_restore(segments, bounds)).orderBy("topic")

    names = ("topic", "last_offset_kept", "cut_position", "bytes_needed")
    assert _values(planned, *names) == [("__cluster_metadata", 9, None, 300), ("t", 3, 100, 100)]
    problems = [row["problem"] for row in planned.collect()]
    assert problems == [
        "KRaft's own log: kept whole, a cluster's metadata is not cut by time",
        None,
    ]
