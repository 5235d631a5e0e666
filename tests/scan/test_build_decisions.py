"""Which segments a build reads, and what a fold changes of those it does not read."""

from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.sources.broker_identity import lies_below
from kafka_segments.engine.tables.catalog import UNRECOGNIZED_FILES
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.verbs.scan.decide.entries import scanned_segments, with_gone
from kafka_segments.verbs.scan.decide.folding import (
    fold_order,
    has_transactions,
    needs_fold,
    rejudged,
    segments_to_fold,
    with_log_start,
)
from kafka_segments.verbs.scan.decide.plan import (
    GONE,
    RETOUCH,
    SAME,
    SCAN,
    count_work,
    gone,
    plan_scan,
    vanished,
)
from kafka_segments.verbs.scan.decide.plan import (
    KNOWN as KNOWN_ROWS,
)
from kafka_segments.verbs.scan.decide.rows import changes_since
from support.spark.rows_of import frame, rows_of

FOUND = (
    "base_offset long, size_bytes long, mtime_ns long, next_base_offset long, is_active boolean,"
    " source string, relative_path string, name string"
)
KNOWN = (
    "base_offset long, path string, fingerprint string, is_active boolean, index_format string,"
    " vanished_at timestamp"
)
DAMAGE = "damage struct<kind: string>"
JUDGED = (
    "base_offset long, index_entries long, time_index_entries long, fingerprint string,"
    " damage string, txn_index_entries long"
)


def _plans(found: DataFrame, known: DataFrame | None, **options: bool) -> dict[int, str]:
    planned = found.transform(plan_scan(known, options="o", full=False, **options))
    return {row["base_offset"]: row["plan"] for row in planned.collect()}


def test_what_is_read_again_is_what_differs(spark: SparkSession) -> None:
    same = {"size_bytes": 10, "mtime_ns": 7, "next_base_offset": 9, "is_active": False}
    found = frame(spark, FOUND, *({"base_offset": base, **same} for base in range(9)))
    known = {"path": "", "fingerprint": "10/7/o", "is_active": False, "index_format": "kafka"}
    changes = [
        {},
        {"fingerprint": "11/7/o"},
        {"fingerprint": "10/8/o"},
        {"fingerprint": "10/7/other"},
        {"fingerprint": None},
        {"is_active": True},
        {"vanished_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"path": "/t-0.0123456789abcdef0123456789abcdef-future/0.log"},
    ]
    before = frame(
        spark, KNOWN, *({"base_offset": base, **known, **one} for base, one in enumerate(changes))
    )

    assert _plans(found, before) == {
        0: SAME, 1: SCAN, 2: SCAN, 3: SCAN, 4: SCAN, 5: RETOUCH, 6: RETOUCH, 7: SCAN, 8: SCAN,
    }  # fmt: skip
    assert set(_plans(found, None).values()) == {SCAN}
    everything = found.transform(plan_scan(before, options="o", full=True)).collect()
    assert {row["plan"] for row in everything} == {SCAN}


def test_a_first_look_leaves_rows_of_whole_files_that_have_not_changed(spark: SparkSession) -> None:
    found = frame(
        spark,
        FOUND,
        *(
            {"base_offset": base, "size_bytes": 10, "mtime_ns": 7_000_000, "is_active": False}
            for base in range(10)
        ),
    )
    known = {"path": "", "is_active": False, "size_bytes": 10, "last_modified_ms": 7}
    changes = [
        {"fingerprint": "10/7000000/full", "checked": "full"},
        {"fingerprint": "10/7000000/full"},  # of an earlier release, which read all
        {"fingerprint": "10/7000000/other", "checked": "index"},
        {"fingerprint": "10/7000000/o", "checked": "index"},
        {"fingerprint": "11/7000000/full", "checked": "full"},
        {"fingerprint": "10/70000000/full", "checked": "full"},
        {"damage": ("log_not_loaded",), "checked": "full"},
        {"damage": ("changed_while_read",), "checked": "full"},
        {"fingerprint": "10/7000000/full", "checked": "full", "path": "/elsewhere"},
    ]
    before = frame(
        spark,
        f"{KNOWN}, checked string, size_bytes long, last_modified_ms long, {DAMAGE}",
        *({"base_offset": base, **known, **one} for base, one in enumerate(changes)),
    )

    assert _plans(found, before, is_first_look=True) == {
        0: SAME, 1: SAME, 2: SCAN, 3: SAME, 4: SCAN, 5: SCAN, 6: SAME, 7: SCAN, 8: SCAN, 9: SCAN,
    }  # fmt: skip
    again = found.transform(plan_scan(before, options="o", full=True, is_first_look=True))
    looked_again = {row["base_offset"] for row in again.collect() if row["plan"] == SCAN}
    assert looked_again == {2, 3, 4, 5, 7, 8, 9}


def test_the_next_segment_counts_where_it_is_asked_for(spark: SparkSession) -> None:
    found = frame(
        spark,
        FOUND,
        *(
            {"base_offset": base, "size_bytes": 10, "mtime_ns": 7, "next_base_offset": following}
            | {"is_active": False}
            for base, following in ((0, 9), (1, 8), (2, 9))
        ),
    )
    before = frame(
        spark,
        KNOWN,
        {"base_offset": 0, "path": "", "fingerprint": "10/7/9/o", "is_active": False},
        {"base_offset": 1, "path": "", "fingerprint": "10/7/9/o", "is_active": False},
        {"base_offset": 2, "path": "", "fingerprint": "10/7/o", "is_active": False},
    )

    assert _plans(found, before, needs_next=True) == {0: SAME, 1: SCAN, 2: SCAN}
    assert _plans(found, before) == {0: SCAN, 1: SCAN, 2: SAME}


def test_a_path_lies_below_a_source_or_is_one(spark: SparkSession) -> None:
    paths = ("/a", "/a/b", "/ab", "/x/y", "/x", "/")
    sources: list[tuple[str, ...]] = [("/a", "/x/"), ("/",), ()]
    row = spark.range(1).select(
        *(
            F.array(*(lies_below(F.lit(path), one) for path in paths)).alias(str(number))
            for number, one in enumerate(sources)
        )
    )

    found = [[path for path, is_in in zip(paths, one, strict=True) if is_in] for one in row.first()]

    assert found == [["/a", "/a/b", "/x/y"], list(paths), []]


def test_a_log_in_which_something_changed_is_folded_as_a_whole(spark: SparkSession) -> None:
    columns = "base_offset long, size_bytes long"
    scanned = frame(spark, columns, {"base_offset": 5, "size_bytes": 50})
    known = frame(
        spark,
        columns,
        *({"base_offset": base, "size_bytes": base * 10} for base in (0, 3, 5, 7)),
        {"base_offset": 0, "topic": "quiet"},
    )
    found = frame(
        spark,
        "base_offset long",
        *({"base_offset": base} for base in (0, 3, 5)),
        {"base_offset": 0, "topic": "quiet"},
    )
    planned = frame(
        spark,
        "base_offset long, plan string",
        {"base_offset": 3, "plan": RETOUCH},
        {"base_offset": 5, "plan": SCAN},
    )

    def folded(before: DataFrame | None) -> list[tuple[object, ...]]:
        to_fold = segments_to_fold(scanned, before, found, planned, ["size_bytes"])
        rows = scanned.transform(to_fold)
        return sorted(tuple(row)[3:] for row in rows.collect())

    assert folded(known) == [
        ("t", 0, 0, 0, False), ("t", 0, 3, 30, False), ("t", 0, 5, 50, True),
    ]  # fmt: skip
    assert folded(None) == [("t", 0, 5, 50, True)]


def test_known_segments_change_where_the_fold_says_something_new(spark: SparkSession) -> None:
    known = frame(
        spark,
        JUDGED,
        *(
            {"base_offset": base, "index_entries": 3, "time_index_entries": 4, "fingerprint": "f"}
            | {"txn_index_entries": 1}
            for base in range(5)
        ),
    )
    verdicts = frame(
        spark,
        "base_offset long, txn_index_entries long, log_damage string, is_scanned boolean",
        {"base_offset": 0, "txn_index_entries": 1, "is_scanned": False},
        {"base_offset": 1, "txn_index_entries": 2, "is_scanned": False},
        {"base_offset": 2, "txn_index_entries": 1, "log_damage": "bad", "is_scanned": False},
        {"base_offset": 3, "txn_index_entries": 2, "is_scanned": True},
    )

    rows = known.transform(rejudged(verdicts)).orderBy("base_offset").collect()

    names = ("base_offset", "txn_index_entries", "damage", "index_entries", "fingerprint")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 2, None, 3, "f"),
        (2, None, "bad", None, None),
    ]


def test_logs_are_folded_where_something_changed_and_segments_can_matter_to_each_other() -> None:
    nothing = dict.fromkeys(("is_load", "has_transactions", "has_known"), False)

    assert not needs_fold(has_changed=True, **nothing)
    for reason in nothing:
        assert needs_fold(has_changed=True, **{**nothing, reason: True})
        assert not needs_fold(has_changed=False, **{**nothing, reason: True})


def test_entries_of_segments_that_were_read_again_are_gone_where_they_are_not_found_again(
    spark: SparkSession,
) -> None:
    columns = "base_offset long, offset long, position long"
    before = frame(
        spark,
        columns,
        {"base_offset": 0, "offset": 5, "position": 70},
        {"base_offset": 0, "offset": 9, "position": 140},
        {"base_offset": 10, "offset": 15, "position": 70},
        {"base_offset": 20, "offset": 25, "position": 70},  # a killed build left it
    )
    found = frame(spark, columns, {"base_offset": 0, "offset": 5, "position": 71})
    planned = frame(
        spark,
        "base_offset long, plan string",
        {"base_offset": 0, "plan": SCAN},
        {"base_offset": 10, "plan": SAME},
        {"base_offset": 20, "plan": SCAN},
    )

    scanned = scanned_segments(planned, None)
    keys = (*SEGMENT_KEYS, "offset")
    rows = found.transform(with_gone(before, scanned, keys=keys)).collect()

    assert [row["base_offset"] for row in scanned.collect()] == [0, 20]
    assert sorted((row["offset"], row["position"], row["is_gone"]) for row in rows) == [
        (5, 71, False),
        (9, 140, True),
        (25, 70, True),
    ]


def test_a_segment_can_matter_to_others_by_transactions_markers_or_epochs(
    spark: SparkSession,
) -> None:
    check, begin = 0, 1
    segments = frame(
        spark,
        "transaction_steps array<struct<kind: int>>, damage struct<kind: string>,"
        " leader_epochs array<struct<start_offset: long>>",
        {},
        {"transaction_steps": [], "leader_epochs": []},
        {"transaction_steps": [(check,)], "damage": ("bad_checksum",), "leader_epochs": [(0,)]},
        {"transaction_steps": [(check,), (begin,)]},
        {"damage": ("bad_marker",)},
        {"leader_epochs": [(0,), (-1,)]},
    )

    rows = segments.select(has_transactions().alias("can")).collect()

    assert [row["can"] for row in rows] == [False, False, False, True, True, True]


def test_a_log_without_a_checkpointed_start_begins_at_0(spark: SparkSession) -> None:
    starts = spark.createDataFrame(
        [("/d", "t", 0, 7)], "log_dir string, topic string, partition int, log_start_offset long"
    )
    segments = frame(spark, "base_offset long", {}, {"partition": 1})

    rows = segments.transform(with_log_start(starts)).collect()

    assert {row["partition"]: row["log_start_offset"] for row in rows} == {0: 7, 1: 0}


def test_work_is_counted_by_what_is_done_with_a_segment(spark: SparkSession) -> None:
    planned = frame(
        spark,
        "plan string, size_bytes long",
        {"plan": SCAN, "size_bytes": 3},
        {"plan": SCAN, "size_bytes": 4},
        {"plan": SAME, "size_bytes": 5},
    )
    known = frame(spark, "base_offset long", {"base_offset": 3}, {"base_offset": 5})

    rows = count_work(planned, known.limit(1), known).collect()
    of_none = count_work(planned.limit(0), known.limit(0), known.limit(0)).collect()

    assert {row["plan"]: tuple(row)[1:] for row in rows} == {
        SCAN: (2, 7), SAME: (1, 5), GONE: (1, 0), KNOWN_ROWS: (1, 0),
    }  # fmt: skip
    assert of_none == []


def test_what_is_gone_is_what_was_looked_for_and_not_found(spark: SparkSession) -> None:
    segments = (
        "base_offset long, path string, is_active boolean, vanished_at timestamp, note string"
    )
    before, now = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 2, tzinfo=UTC)
    known = frame(
        spark,
        segments,
        {"base_offset": 1, "path": "/d/t-0/1", "is_active": False, "note": "found"},
        {"base_offset": 2, "path": "/d/t-0/2", "is_active": True, "note": "gone"},
        {"base_offset": 3, "path": "/d/t-0/3", "vanished_at": before, "note": "gone before"},
        {"partition": 1, "base_offset": 1, "path": "/d/t-1/1", "note": "its folder is not listed"},
        {"partition": 11, "base_offset": 1, "path": "/d/t-11/1", "note": "of another folder"},
    )
    found = frame(spark, "base_offset long", {"base_offset": 1})
    unseen = rows_of(spark, [("/d", "t-1", "")], "source string, relative_path string, name string")

    keys = known.transform(gone(found, unseen))
    rows = known.transform(vanished(keys, now=F.lit(now))).orderBy("partition").collect()

    assert keys.columns == list(SEGMENT_KEYS)
    assert [row["note"] for row in rows] == ["gone", "of another folder"]
    assert {(row["is_active"], row["vanished_at"].replace(tzinfo=UTC)) for row in rows} == {
        (False, now)
    }
    assert rows[0].asDict().keys() == set(known.columns)


def test_rows_of_other_files_go_with_their_files_and_stay_where_nobody_looked(
    spark: SparkSession,
) -> None:
    def files(*paths: str, reason: str = "odd") -> DataFrame:
        rows = [("c", 1, path, 5, reason, "run") for path in paths]
        schema = "cluster string, broker_id int, path string, size_bytes long, reason string"
        return rows_of(spark, rows, f"{schema}, run_id string")

    before = files("/d/t-0/stays", "/d/t-0/gone", "/d/t-0/other", "/d/t-1/unseen")
    found = files("/d/t-0/stays", "/d/t-0/new").withColumn("run_id", F.lit("later"))
    found = found.unionByName(files("/d/t-0/other", reason="other"))
    unseen = rows_of(spark, [("/d", "t-1", "")], "source string, relative_path string, name string")

    rows = found.transform(changes_since(UNRECOGNIZED_FILES, before, unseen)).collect()

    assert {(row["path"], row["is_gone"]) for row in rows} == {
        ("/d/t-0/new", False),
        ("/d/t-0/other", False),
        ("/d/t-0/gone", True),
    }


def test_a_load_begins_with_the_segments_of_a_log_that_it_splits(spark: SparkSession) -> None:
    kinds = {0: None, 10: ("corrupt_batch",), 20: ("offset_overflow",), 30: None}
    rows = [
        {"topic": topic, "base_offset": base, "damage": kind}
        for topic in ("b", "a")
        for base, kind in sorted(kinds.items(), reverse=True)
    ]
    segments = frame(spark, f"base_offset long, {DAMAGE}", *rows)

    def bases(*, is_load: bool) -> list[tuple[str, int]]:
        found = segments.coalesce(1).sortWithinPartitions(*fold_order(is_load=is_load)).collect()
        return [(row["topic"], row["base_offset"]) for row in found]

    assert bases(is_load=True) == [(t, base) for t in "ab" for base in (20, 0, 10, 30)]
    assert bases(is_load=False) == [(t, base) for t in "ab" for base in (0, 10, 20, 30)]
