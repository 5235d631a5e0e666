"""What a search decides from the tables, on a few rows at the edge of each rule."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.kafka.text.moments import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from kafka_segments.verbs.find.search.decide.answers import answer_named, compare_answers
from kafka_segments.verbs.find.search.decide.locate import (
    BOTH,
    KAFKA,
    TRUE,
    choose_by_max_timestamp,
    choose_by_offset,
    choose_by_timestamp,
    locate,
)
from kafka_segments.verbs.find.search.decide.unread import say_cut_short, say_unread
from support.spark.rows_of import frame

SEGMENT = (
    "base_offset long, next_offset long, log_start_offset long, path string, valid_bytes long,"
    " max_timestamp_ms long, offset_of_max_timestamp long, largest_timestamp_ms long,"
    " magics array<int>, batch_count long, first_batch_timestamp_ms long"
)
LEAST = -(2**63)


def _segments(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    whole = [
        {
            "path": f"/d/t-0/{row['base_offset']}.log",
            "log_start_offset": 0,
            "largest_timestamp_ms": row["max_timestamp_ms"],
            **row,
        }
        for row in rows
    ]
    return frame(spark, SEGMENT, *whole)


def _chosen(rows: DataFrame, asked: str) -> dict[Any, list[tuple[str, int | None]]]:
    found: dict[Any, list[tuple[str, int | None]]] = {}
    for row in rows.orderBy("base_offset").collect():
        roles = (KAFKA, TRUE) if row["role"] == BOTH else (row["role"],)
        found.setdefault(row[asked], []).extend((role, row["base_offset"]) for role in roles)
    return {target: sorted(chosen, key=str) for target, chosen in found.items()}


def test_the_first_segment_that_reaches_a_time_is_read(spark: SparkSession) -> None:
    segments = _segments(
        spark,
        {"base_offset": 0, "next_offset": 10, "max_timestamp_ms": 0},
        {"base_offset": 10, "next_offset": 20, "max_timestamp_ms": 500},
        {"base_offset": 20, "next_offset": 30, "max_timestamp_ms": 500},
        {"base_offset": 30, "next_offset": 40, "max_timestamp_ms": -1, "largest_timestamp_ms": 700},
        {"base_offset": 40, "next_offset": 50, "max_timestamp_ms": 600},
    )
    asked = frame(spark, "least_timestamp_ms long", *({"least_timestamp_ms": t} for t in
                  (0, 1, 500, 501, 600, 601, 700, 701)))  # fmt: skip

    found = _chosen(asked.transform(choose_by_timestamp(segments)), "least_timestamp_ms")

    both = lambda base: [(KAFKA, base), (TRUE, base)]  # noqa: E731
    assert found == {
        0: both(0), 1: both(10), 500: both(10),
        501: [(KAFKA, 30), (TRUE, 40)], 600: [(KAFKA, 30), (TRUE, 40)],
        601: [(KAFKA, 30)], 700: [(KAFKA, 30)], 701: [(KAFKA, None)],
    }  # fmt: skip


def test_the_segment_of_the_log_start_offset_is_read_beside_those_above_it(
    spark: SparkSession,
) -> None:
    segments = _segments(
        spark,
        {"base_offset": 0, "next_offset": 15, "max_timestamp_ms": 500, "log_start_offset": 15},
        {"base_offset": 15, "next_offset": 30, "max_timestamp_ms": 400, "log_start_offset": 15},
        {"base_offset": 30, "next_offset": 50, "max_timestamp_ms": 600, "log_start_offset": 15},
    )
    cut = segments.withColumn("log_start_offset", F.lit(16).cast("long"))
    asked = frame(spark, "least_timestamp_ms long", {"least_timestamp_ms": 300})

    whole, inside = (
        _chosen(asked.transform(choose_by_timestamp(rows)), "least_timestamp_ms")[300]
        for rows in (segments, cut)
    )

    undated = cut.withColumn("max_timestamp_ms", F.lit(0).cast("long"))
    asked = frame(spark, "least_timestamp_ms long", {"least_timestamp_ms": 0})
    at_zero = _chosen(asked.transform(choose_by_timestamp(undated)), "least_timestamp_ms")[0]

    assert at_zero == [(KAFKA, 0), (TRUE, 15), (TRUE, 30)]
    assert whole == [(KAFKA, 0), (TRUE, 15)]
    assert inside == [(KAFKA, 0), (TRUE, 15), (TRUE, 30)]


def test_the_greatest_timestamp_is_that_of_its_first_segment(spark: SparkSession) -> None:
    v0 = {"max_timestamp_ms": -1, "magics": [0]}
    logs = {
        "dated": ({"max_timestamp_ms": 7}, {"max_timestamp_ms": 9}, {"max_timestamp_ms": 9}),
        "zero": ({"max_timestamp_ms": 0, "magics": [0, 1]}, {"max_timestamp_ms": -1}),
        "none": ({"max_timestamp_ms": -1, "magics": [2]}, {"max_timestamp_ms": -1}),
        "unread": ({"max_timestamp_ms": None}, {"max_timestamp_ms": -1, "magics": None}),
        "v0": (v0, v0),
    }
    segments = _segments(
        spark,
        *(
            {"topic": topic, "base_offset": 10 * place, **segment}
            for topic, log in logs.items()
            for place, segment in enumerate(log, start=1)
        ),
    )
    asked = frame(spark, "question string", *({"topic": topic} for topic in logs))

    rows = asked.transform(choose_by_max_timestamp(segments))

    assert _chosen(rows, "topic") == {
        "dated": [(KAFKA, 20), (TRUE, 20)],
        "zero": [(KAFKA, 10), (TRUE, 10)],
        "none": [(KAFKA, 10)],
        "unread": [(KAFKA, 20)],
        "v0": [(KAFKA, None)],
    }
    least = {row["topic"]: row["least_timestamp_ms"] for row in rows.collect()}
    assert least == {"dated": 9, "zero": 0, "none": -1, "unread": -1, "v0": None}


def test_an_offset_is_read_in_the_segment_that_ends_above_it_and_in_the_next(
    spark: SparkSession,
) -> None:
    segments = _segments(
        spark,
        {"base_offset": 0, "next_offset": 10, "max_timestamp_ms": 1},
        {"base_offset": 10, "next_offset": 10, "max_timestamp_ms": -1},
        {"base_offset": 11, "next_offset": 20, "max_timestamp_ms": 1},
        {"base_offset": 20, "next_offset": 30, "max_timestamp_ms": 1},
    )
    asked = frame(spark, "question string, least_offset long", *(
        {"question": str(offset), "least_offset": offset} for offset in (0, 9, 10, 19, 20, 29, 30)
    ))  # fmt: skip

    rows = asked.transform(choose_by_offset(segments))

    assert _chosen(rows, "least_offset") == {
        0: [(TRUE, 0), (TRUE, 11)], 9: [(TRUE, 0), (TRUE, 11)],
        10: [(TRUE, 11), (TRUE, 20)], 19: [(TRUE, 11), (TRUE, 20)],
        20: [(TRUE, 20)], 29: [(TRUE, 20)],
    }  # fmt: skip
    assert {row["least_timestamp_ms"] for row in rows.collect()} == {LEAST}


def test_the_read_begins_at_the_entry_before_which_nothing_can_fit(spark: SparkSession) -> None:
    entry = "base_offset long, timestamp_ms long, offset long"
    times = frame(spark, entry, *(
        {"base_offset": 0, "timestamp_ms": timestamp, "offset": offset}
        for timestamp, offset in ((100, 4), (200, 12), (300, 25))
    ))  # fmt: skip
    offsets = frame(spark, "base_offset long, offset long, position long", *(
        {"base_offset": 0, "offset": offset, "position": 10 * offset} for offset in (5, 12, 20)
    ))  # fmt: skip
    cases = [
        # asked for, log start, start of the read
        (LEAST, 0, 0), (LEAST, 13, 120), (99, 0, 0), (100, 0, 0), (101, 0, 50), (150, 12, 120),
        (200, 0, 120), (201, 0, 200), (299, 0, 200), (300, 0, 200), (999, 0, 200), (100, 20, 200),
    ]  # fmt: skip
    chosen = frame(
        spark,
        "base_offset long, batch_count long, least_timestamp_ms long, least_offset long",
        *(
            {"batch_count": 9, "least_timestamp_ms": t, "least_offset": o, "base_offset": 0}
            for t, o, _ in cases
        ),
        {"base_offset": 0, "least_timestamp_ms": 98, "least_offset": 0},
    )

    found = chosen.transform(locate(times, offsets)).collect()

    starts = {(r["least_timestamp_ms"], r["least_offset"]): r["start_position"] for r in found}
    assert starts.pop((98, 0)) is None  # of a first look, which counts no batches
    assert starts == {(timestamp, offset): start for timestamp, offset, start in cases}


@pytest.mark.parametrize(
    ("name", "target", "last", "first"),
    [
        ("MAX_TIMESTAMP", MAX_TIMESTAMP, (2, 9), (3, 0)),
        ("EARLIEST_LOCAL", EARLIEST_LOCAL, (3, 5), (3, 6)),
        ("LATEST_TIERED", LATEST_TIERED, (3, 8), (3, 9)),
        ("EARLIEST_PENDING_UPLOAD", EARLIEST_PENDING_UPLOAD, (4, 1), (4, 2)),
    ],
)
def test_a_name_is_answered_from_its_release_on(
    spark: SparkSession, name: str, target: int, last: tuple[int, ...], first: tuple[int, ...]
) -> None:
    asked = _log(spark, target)

    before, after = (
        asked.transform(answer_named(kafka_version=version)).first() for version in (last, first)
    )

    assert before is not None and after is not None
    release = ".".join(map(str, first))
    assert before["difference"] == f"ListOffsets knows {name} from {release} on: no answer"
    assert (before["kafka_offset"], before["kafka_leader_epoch"]) == (None, None)
    assert after["difference"] is None
    assert after["kafka_offset"] == (3 if target == EARLIEST_LOCAL else -1)


def _log(spark: SparkSession, *targets: int, **of_log: Any) -> DataFrame:
    columns = (
        "question string, target_ms long, log_start_offset long, local_start_offset long,"
        " log_end_offset long, last_visible_offset long,"
        " leader_epochs array<struct<epoch: int, start_offset: long>>"
    )
    known = {"log_start_offset": 3, "local_start_offset": 3, "log_end_offset": 90}
    known |= {"last_visible_offset": 80}
    asked = ({**known, **of_log, "question": str(t), "target_ms": t} for t in targets)
    return frame(spark, columns, *asked)


def test_the_ends_of_a_log_are_known_without_a_read(spark: SparkSession) -> None:
    answers = answer_named(kafka_version=(0, 8))
    epochs = {"leader_epochs": [(5, 3), (6, 40)]}
    later = {"leader_epochs": [(5, 4), (6, 40)]}

    rows = [
        [row[name] for name in ("kafka_offset", "true_offset", "kafka_leader_epoch", "bytes_read")]
        for of_log in (epochs, later, {})
        for row in _log(spark, EARLIEST, LATEST, **of_log).transform(answers).collect()
    ]

    assert rows == [
        [3, 3, 5, 0], [80, 80, 6, 0],
        [3, 3, -1, 0], [80, 80, 6, 0],
        [3, 3, -1, 0], [80, 80, -1, 0],
    ]  # fmt: skip


def test_of_a_tiered_log_the_disk_begins_later_than_the_log(spark: SparkSession) -> None:
    log = {"local_start_offset": 40, "leader_epochs": [(5, 3), (6, 40)]}

    rows = _log(spark, EARLIEST, EARLIEST_LOCAL, **log).transform(answer_named(kafka_version=(4,)))

    told = [(row["kafka_offset"], row["kafka_leader_epoch"]) for row in rows.collect()]
    assert told == [(3, 5), (40, 6)]


def _compared(
    spark: SparkSession, *found: dict[str, Any], target: int = 500, version: tuple[int, ...]
) -> tuple[Any, ...]:
    columns = (
        "question string, target_ms long, log_start_offset long, log_end_offset long,"
        " last_visible_offset long, role string, base_offset long, path string,"
        " max_timestamp_ms long, offset_of_max_timestamp long, found_offset long,"
        " found_timestamp_ms long, found_leader_epoch int, found_position long, bytes_read long,"
        " problem string"
    )
    whole = {
        "question": "q", "target_ms": target, "log_start_offset": 3, "log_end_offset": 90,
        "last_visible_offset": 80, "base_offset": 0, "path": "/d/t-0/0.log", "bytes_read": 10,
        "max_timestamp_ms": 600, "offset_of_max_timestamp": 79, "found_leader_epoch": 1,
    }  # fmt: skip
    rows = frame(spark, columns, *({**whole, **one} for one in found))
    row = rows.transform(compare_answers(kafka_version=version)).collect()
    assert len(row) == 1
    names = ("kafka_offset", "kafka_timestamp_ms", "true_offset", "bytes_read", "difference")
    return tuple(row[0][name] for name in names)


def test_kafkas_answer_and_the_true_one_stand_side_by_side(spark: SparkSession) -> None:
    kafka = {"role": KAFKA, "found_offset": 7, "found_timestamp_ms": 510}
    true = {"role": TRUE, "found_offset": 7, "found_timestamp_ms": 510}
    nothing = {"found_offset": None, "found_timestamp_ms": None}
    segment = "Kafka searches segment 0 alone"

    def compared(*found: dict[str, Any]) -> tuple[Any, ...]:
        return _compared(spark, *found, version=(4, 3))

    assert compared(kafka, true) == (7, 510, 7, 20, None)
    assert compared(kafka, {**true, "found_offset": 30}, {**true, "found_offset": 8})[2] == 8
    hidden = "at or above 80, where consumers cannot read: unknown to them"
    for offset, answer, why in ((79, 79, None), (80, -1, hidden)):
        assert compared(kafka | {"found_offset": offset}, true | {"found_offset": offset}) == (
            *(answer, 510 if why is None else -1, offset, 20),
            why,
        )
    for known, why in (
        ({"max_timestamp_ms": 499}, "which it chose by its mtime: no timestamp in it reaches T"),
        ({"max_timestamp_ms": 500}, "where all at or after T lies below the log start offset"),
    ):
        assert compared(kafka | nothing | known, true)[4] == f"{segment}, {why}"
    whole = kafka | nothing | {"base_offset": 3}
    assert compared(whole, true)[4] == (
        "Kafka searches segment 3 alone; no record in it fits its batch's timestamp"
    )
    assert compared(kafka | {"problem": "gone"}, true) == (None, None, 7, 20, None)


def test_the_greatest_timestamp_was_the_batchs_before_3_8(spark: SparkSession) -> None:
    kafka = {"role": KAFKA, "found_offset": 70, "found_timestamp_ms": 600}
    true = {"role": TRUE, "found_offset": 70, "found_timestamp_ms": 600}

    def compared(version: tuple[int, ...], *found: dict[str, Any]) -> tuple[Any, ...]:
        return _compared(spark, *found, target=MAX_TIMESTAMP, version=version)

    assert compared((3, 8), kafka, true) == (70, 600, 70, 20, None)
    assert compared((3, 7), kafka, true) == (
        *(79, 600, 70, 20),
        "before 3.8 Kafka answers the last offset of the batch, not the record's",
    )
    assert compared((3, 8), kafka)[4] == "no record has a timestamp: Kafka answers the first record"


def test_an_answer_is_taken_back_where_an_unread_record_could_change_it(
    spark: SparkSession,
) -> None:
    damaged = (
        "base_offset long, next_offset long, path string, valid_bytes long,"
        " truncated_bytes long, is_active boolean, damage struct<kind: string, message: string>"
    )
    full, changed = ("index_full", "it is full"), ("changed_while_read", "it grew")
    segments = frame(
        spark,
        damaged,
        {"base_offset": 0, "next_offset": 50, "path": "/p", "valid_bytes": 9, "damage": full},
        {"base_offset": 60, "next_offset": 70, "path": "/q", "damage": ("bad_checksum", "cut")},
        {"topic": "u", "base_offset": 20, "path": "/r", "damage": changed},
    )
    answer = (
        "target_ms long, kafka_timestamp_ms long, kafka_offset long, kafka_leader_epoch int,"
        " true_timestamp_ms long, true_offset long, difference string, path string,"
        " position long, problem string"
    )
    cases = [
        # topic, target, true offset, problem before -> is it taken back
        ("t", 5, 49, None, False), ("t", 5, 50, None, True), ("t", 5, None, None, True),
        ("t", 0, 50, None, True), ("t", EARLIEST, None, None, False),
        ("t", EARLIEST_LOCAL, 99, None, False), ("t", LATEST, 49, None, True),
        ("t", MAX_TIMESTAMP, 1, None, True), ("t", 5, 99, "gone", False),
        ("u", 5, 19, None, False), ("u", 5, 20, None, True), ("v", 5, 999, None, False),
    ]  # fmt: skip
    answers = frame(spark, answer, *(
        {"topic": topic, "target_ms": target, "true_offset": offset, "problem": problem,
         "kafka_offset": place}
        for place, (topic, target, offset, problem, _) in enumerate(cases)
    ))  # fmt: skip

    rows = answers.transform(say_unread(segments)).collect()

    assert {row["kafka_offset"] for row in rows if row["kafka_offset"] is not None} == {
        place for place, case in enumerate(cases) if not case[4]
    }
    assert sum(row["kafka_offset"] is None for row in rows) == sum(case[4] for case in cases)
    assert {row["problem"] for row in rows} == {
        None,
        "gone",
        "/p: the tables have its first 9 bytes alone: it is full",
        "/r: the tables have nothing of it: it grew",
    }


def test_behind_the_end_of_a_log_that_is_cut_short_the_true_answer_is_not_known(
    spark: SparkSession,
) -> None:
    logs = frame(
        spark,
        "log_start_offset long, log_end_offset long, high_watermark long",
        {"log_end_offset": 50, "high_watermark": 60},
        {"topic": "whole", "log_end_offset": 50, "high_watermark": 50},
        {"topic": "untold", "log_end_offset": 50},
    )
    answer = (
        "target_ms long, kafka_timestamp_ms long, kafka_offset long, kafka_leader_epoch int,"
        " true_timestamp_ms long, true_offset long, difference string, path string,"
        " position long, problem string"
    )
    asked = [("t", 5, 49), ("t", 5, None), ("t", LATEST, 50), ("t", EARLIEST, 0)]
    asked += [(topic, LATEST, 50) for topic in ("whole", "untold")]
    answers = frame(spark, answer, *(
        {"topic": topic, "target_ms": target, "true_offset": offset, "kafka_offset": place}
        for place, (topic, target, offset) in enumerate(asked)
    ))  # fmt: skip

    rows = answers.transform(say_cut_short(logs)).orderBy("kafka_offset").collect()

    assert [row["true_offset"] for row in rows] == [49, None, None, 0, 50, 50]
    told = [row["kafka_offset"] for row in rows if row["problem"] is not None]
    assert told == [1, 2]
    assert rows[1]["problem"].startswith("not known: the log ends at offset 50, below")


def test_the_true_answer_is_not_known_behind_a_damage_that_recovery_cuts(
    spark: SparkSession,
) -> None:
    damaged = (
        "base_offset long, next_offset long, path string, valid_bytes long, is_active boolean,"
        " truncated_bytes long, damage struct<kind: string, message: string>"
    )
    cut = {"base_offset": 0, "next_offset": 50, "path": "/p", "valid_bytes": 9, "is_active": True}
    segments = frame(
        spark,
        damaged,
        {**cut, "truncated_bytes": 7, "damage": ("corrupt_batch", "a bit")},
        {**cut, "topic": "torn", "truncated_bytes": 7, "damage": ("partial_batch", "torn")},
        {**cut, "topic": "zeros", "truncated_bytes": 7, "damage": ("preallocated_tail", "zeros")},
        {**cut, "topic": "whole", "truncated_bytes": 0, "damage": ("not_indexable", "odd")},
    )
    answer = (
        "target_ms long, kafka_timestamp_ms long, kafka_offset long, kafka_leader_epoch int,"
        " true_timestamp_ms long, true_offset long, difference string, path string,"
        " position long, problem string"
    )
    asked = [("t", 5, 49), ("t", 5, 50), ("t", 5, None), ("t", LATEST, 1), ("t", EARLIEST, 0)]
    asked += [(topic, 5, offset) for topic in ("torn", "zeros", "whole") for offset in (50, None)]
    answers = frame(spark, answer, *(
        {"topic": topic, "target_ms": target, "true_offset": offset, "kafka_offset": place}
        for place, (topic, target, offset) in enumerate(asked)
    ))  # fmt: skip

    rows = answers.transform(say_unread(segments)).orderBy("kafka_offset").collect()

    why = "not known: /p is damaged at byte 9, and records may follow: a bit"
    found = [(row["true_offset"], row["problem"]) for row in rows]
    assert found == [
        *((49, None), (None, why), (None, why), (None, why), (0, None)),
        *((offset, None) for _, _, offset in asked[5:]),
    ]
