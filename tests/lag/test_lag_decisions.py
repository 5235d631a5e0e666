"""Which commits count at a moment, and what is the first unread record of each."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.verbs.find.lag.decide.commits import (
    ask_for_end,
    decide_commits,
    decide_lag,
    ends_found,
    first_unread,
    made_later,
    of_groups,
    unread_may_be_lost,
    with_keys_of,
)
from support.spark.rows_of import frame, rows_of

AT_MS = 1_000
_FOUND = (
    "committed_offset long, base_offset long, found_offset long, found_timestamp_ms long,"
    " problem string"
)
COMMIT = (
    "cluster string, offsets_partition int, position long, producer_id long, control_type int,"
    " group_id string, topic string, topic_partition int, committed_offset long,"
    " commit_timestamp_ms long, record_timestamp_ms long, problem string,"
    " commits_doubt string, lost struct<until:bigint,why:string>, unread_until long"
)


def _commits(spark: SparkSession, *rows: dict[str, Any]) -> dict[str, Any]:
    names = [column.split()[0] for column in COMMIT.split(", ")]
    known = {"cluster": "c", "offsets_partition": 0, "topic": "t", "topic_partition": 0}
    known |= {"commit_timestamp_ms": 10, "record_timestamp_ms": 10}
    values = [
        tuple({**known, "position": place, **row}.get(n) for n in names)
        for place, row in enumerate(rows)
    ]
    found = spark.createDataFrame(values, COMMIT).transform(decide_commits(at_ms=AT_MS)).collect()
    rows_by_group = {
        row["group_id"]: (row["committed_offset"], row["commit_timestamp_ms"], row["problem"])
        if row["commits_doubt"] is None
        else row["commits_doubt"]
        for row in found
    }
    assert len(rows_by_group) == len(found)
    return rows_by_group


def test_a_commit_in_a_transaction_counts_by_its_producers_next_marker(spark: SparkSession) -> None:
    abort, commit = 0, 1
    sent = [
        ("committed", 1, 5), ("aborted", 2, 5), ("open", 3, 5), ("other", 4, 5),
        (None, 1, commit), (None, 2, abort), (None, 4, abort), (None, 4, commit),
    ]  # fmt: skip
    rows = [
        {"group_id": group, "producer_id": producer, "committed_offset": value}
        if group
        else {"producer_id": producer, "control_type": value}
        for group, producer, value in sent
    ]

    assert _commits(spark, *rows, {"group_id": "plain", "committed_offset": 7}) == {
        "committed": (5, 10, None),
        "plain": (7, 10, None),
    }


def test_a_commit_in_a_transaction_counts_from_its_marker_on(spark: SparkSession) -> None:
    later = {"record_timestamp_ms": AT_MS + 1}
    commit = {"producer_id": 1, "control_type": 1}
    rows = [
        {"group_id": "before", "committed_offset": 3},
        {"group_id": "before", "committed_offset": 4, "producer_id": 1},
        {"group_id": "alone", "committed_offset": 4, "producer_id": 1},
        {"group_id": "plain behind", "committed_offset": 4, "producer_id": 2},
        {"group_id": "plain behind", "committed_offset": 5},
        {"group_id": "two", "committed_offset": 6, "producer_id": 3},
        {**commit, "producer_id": 3, "record_timestamp_ms": AT_MS},
        {"group_id": "two", "committed_offset": 7, "producer_id": 3},
        {**commit, **later},
        {**commit, "producer_id": 2},
        {**commit, "producer_id": 3, **later},
    ]

    assert {group: row[0] for group, row in _commits(spark, *rows).items()} == {
        "before": 3,
        "alone": None,
        "plain behind": 5,
        "two": 6,
    }


def test_a_topic_that_was_made_after_a_moment_does_not_tell_of_it(spark: SparkSession) -> None:
    columns = "cluster string, topic string, topic_id string, from_ms long, until_offset long,"
    topics = [
        ("c", "again", "A", 10, 5, False),
        ("c", "again", "B", AT_MS + 1, None, False),
        ("c", "same", "C", AT_MS, None, False),
        ("c", "of a snapshot", "D", AT_MS + 1, None, True),
        ("d", "elsewhere", "E", AT_MS + 1, None, False),
    ]
    held = rows_of(spark, topics, f"{columns} is_from_snapshot boolean")
    names = ("again", "same", "of a snapshot", "elsewhere", "unknown")
    logs = [*(("c", name, None) for name in names), ("c", "again", "why")]

    rows = rows_of(spark, logs, "cluster string, topic string, doubt string").transform(
        made_later(held, at_ms=AT_MS)
    )

    doubts = sorted((row["topic"], row["doubt"]) for row in rows.collect() if row["doubt"])
    assert [topic for topic, _ in doubts] == ["again", "again"]
    assert doubts[0][1].startswith("not known: the topic was made with id B after that moment")
    assert doubts[1][1] == "why"


def test_a_commit_in_front_of_lost_records_does_not_count_for_sure(spark: SparkSession) -> None:
    of_log = {"committed_offset": 5, "lost": (7, "a segment is missing")}
    plain = [{"group_id": name, "position": at, **of_log} for name, at in (("a", 6), ("b", 7))]
    unread = {"group_id": "", "problem": "checksum is 1", "position": None}
    other = {"offsets_partition": 1, "group_id": "other", "committed_offset": 5}
    why = "not known: a later commit may be in what is missing of __consumer_offsets-0: "
    known = (5, 10, None)

    assert _commits(spark, *plain, other) == {
        "a": f"{why}a segment is missing",
        "b": known,
        "other": known,
    }
    found = _commits(spark, *plain, other, {**unread, "unread_until": 8})
    assert (found["a"], found["b"]) == (f"{why}checksum is 1", f"{why}checksum is 1")
    assert (found["other"], found[""]) == (known, (None, 10, "checksum is 1"))
    begun = _commits(spark, plain[1], {**unread, "unread_until": None})
    assert begun == {"b": known}  # a broker was writing the rest


def test_no_key_is_without_a_commit_for_sure_in_front_of_lost_records(spark: SparkSession) -> None:
    """Its tombstone may be followed by a commit, and a marker may be among what is lost."""
    of_log = {"lost": (7, "a gap")}
    deleted = {"committed_offset": None, "commit_timestamp_ms": None, **of_log}
    open_ = {"committed_offset": 5, "producer_id": 1, **of_log}
    rows = [
        {"group_id": "deleted in front", "position": 1, **deleted},
        {"group_id": "open in front", "position": 2, **open_},
        {"group_id": "older", "position": 0, "committed_offset": 4, **of_log},
        {"group_id": "older", "position": 3, **open_},
        {"group_id": "open behind", "position": 9, **open_, "producer_id": 2},
        {"group_id": "deleted behind", "position": 7, **deleted},
        {"producer_id": 1, "control_type": 0, "position": 8, **of_log},
    ]

    found = _commits(spark, *rows)

    assert set(found) == {"deleted in front", "open in front", "older"}
    assert all("may be in what is missing" in told for told in found.values())


def test_a_commit_that_cannot_be_decoded_leaves_its_own_key_in_doubt(spark: SparkSession) -> None:
    garbled = {"problem": "cut off", "commit_timestamp_ms": None}
    rows = [
        {"group_id": "other", "committed_offset": 5},
        {"group_id": "garbled", "committed_offset": 5},
        {"group_id": "mended", **garbled},
        {"group_id": "aborted", **garbled, "producer_id": 1},
        {"group_id": "garbled", **garbled},
        {"group_id": "mended", "committed_offset": 6},
        {"producer_id": 1, "control_type": 0},
    ]

    assert _commits(spark, *rows) == {
        "other": (5, 10, None),
        "garbled": (None, None, "cut off"),
        "mended": (6, 10, None),
    }


def test_keys_that_only_another_copy_names_are_not_known(spark: SparkSession) -> None:
    """A key that the copy that answers has is known by its own records."""
    names = [column.split()[0] for column in COMMIT.split(", ")]
    usual = {"cluster": "c", "offsets_partition": 0, "topic": "t", "topic_partition": 0}
    usual |= {"record_timestamp_ms": 10, "commit_timestamp_ms": 10}

    def commits(*rows: dict[str, Any]) -> DataFrame:
        values = [tuple({**usual, **row}.get(name) for name in names) for row in rows]
        return spark.createDataFrame(values, COMMIT)

    lost = {"lost": (7, "a gap")}
    answering = commits(
        {"group_id": "behind", "position": 8, "committed_offset": 5, **lost},
        {"group_id": "deleted behind", "position": 9, **lost},
    )
    others = commits(
        {"group_id": "behind", "position": 3, "committed_offset": 4},
        {"group_id": "deleted behind", "position": 3, "committed_offset": 4},
        {"group_id": "named", "position": 4, "committed_offset": 4},
        {"group_id": "garbled", "position": 4, "problem": "cut off"},
        {"group_id": "deleted", "position": 4, "committed_offset": 4},
        {"group_id": "deleted", "position": 5},
        {"group_id": "", "position": 6, "problem": "checksum is 1"},
        {"producer_id": 1, "control_type": 1, "position": 6},
    ).drop("commits_doubt", "lost", "unread_until")
    columns = "cluster string, partition int, commits_doubt string"
    unread = rows_of(
        spark, [("c", 0, None, (7, "a gap"))], f"{columns}, lost struct<until:bigint,why:string>"
    )

    found = answering.transform(with_keys_of(others, unread)).transform(decide_commits(at_ms=AT_MS))

    told = {
        row["group_id"]: (row["committed_offset"], row["commits_doubt"]) for row in found.collect()
    }
    why = "not known: a later commit may be in what is missing of __consumer_offsets-0: a gap"
    assert told == {"behind": (5, None), "named": (None, why), "garbled": (None, why)}


def test_no_lag_is_told_where_the_commits_or_the_end_are_in_doubt(spark: SparkSession) -> None:
    columns = (
        "cluster string, group_id string, topic string, partition int, committed_offset long,"
        " commit_timestamp_ms long, log_start_offset long, end_offset long,"
        " first_unread_offset long, first_unread_timestamp_ms long, problem string,"
        " commits_doubt string, doubt string"
    )
    known = (10, 0, 9, 5, 700)
    commits = [
        ("c", "told", "t", 0, 5, *known, None, None, None),
        ("c", "doubtful commits", "t", 0, 5, *known, None, "why", None),
        ("c", "doubtful end", "t", 0, 5, *known, None, None, "why"),
        ("c", "not searched", "t", 0, 5, 10, 0, 9, None, None, "damaged", None, None),
        ("c", "no commit", "t", 0, None, *known, None, None, None),
        ("c", "no commit, doubtful end", "t", 0, None, *known, None, None, "why"),
        ("c", "no commit, no log", "t", 0, None, *[None] * 5, None, None, None),
    ]

    rows = rows_of(spark, commits, columns).transform(decide_lag(at_ms=AT_MS)).collect()

    no_commit = ("no commit left from that time", None, None, None, None)
    names = ("status", "end_offset", "offset_lag", "time_lag_ms", "gone_offsets", "problem")
    assert {row["group_id"]: tuple(row[name] for name in names) for row in rows} == {
        "told": ("behind", 9, 4, 300, 0, None),
        "doubtful commits": ("not known", None, None, None, None, "why"),
        "doubtful end": ("not known", None, None, None, None, "why"),
        "not searched": ("not readable", 9, 4, None, None, "damaged"),
        "no commit": ("no commit left from that time", 9, None, 300, None, None),
        "no commit, doubtful end": (*no_commit, "why"),
        "no commit, no log": (*no_commit, "log not in the tables"),
    }


def test_the_last_record_of_a_key_counts_that_is_not_later(spark: SparkSession) -> None:
    at, later = {"commit_timestamp_ms": AT_MS}, {"commit_timestamp_ms": AT_MS + 1}
    rows = [
        {"group_id": "", "topic": "", "problem": "bytes that nobody reads"},
        {"group_id": "a", "committed_offset": 1},
        {"group_id": "a", "committed_offset": 2, **at},
        {"group_id": "a", "committed_offset": 3, **later},
        {"group_id": "later", "committed_offset": 4, **later},
        {"group_id": "gone", "committed_offset": 5},
        {"group_id": "gone", "commit_timestamp_ms": None, "record_timestamp_ms": 20},
        {"group_id": "back", "committed_offset": 6},
        {"group_id": "back", "commit_timestamp_ms": None, "record_timestamp_ms": AT_MS + 1},
    ]

    assert _commits(spark, *rows) == {
        "a": (2, AT_MS, None),
        "later": (None, None, None),
        "back": (6, 10, None),
        "": (None, 10, "bytes that nobody reads"),
    }


def test_groups_are_chosen_with_what_could_not_be_read(spark: SparkSession) -> None:
    rows = [("a", None), ("b", "its value is cut off"), ("", "bytes that nobody reads")]
    commits = spark.createDataFrame(rows, "group_id string, problem string")

    chosen = [commits.transform(of_groups(groups, F.lit(True))).collect() for groups in (["a"], [])]

    assert [{row["group_id"] for row in rows} for rows in chosen] == [{"a", ""}, {"a", "b", ""}]


def test_the_first_unread_record_is_the_least_that_was_found(spark: SparkSession) -> None:
    first, second = {"base_offset": 0}, {"base_offset": 7}
    found = frame(
        spark,
        _FOUND,
        {"committed_offset": 5, **second, "found_offset": 9, "found_timestamp_ms": 1},
        {"committed_offset": 5, **first, "found_offset": 6, "found_timestamp_ms": 3},
        {"committed_offset": 6, **first},
        {"committed_offset": 6, **second, "found_offset": 7, "found_timestamp_ms": 3},
        {"committed_offset": 7, **first},
        {"committed_offset": 7, **second},
    )

    rows = first_unread(found).orderBy("committed_offset").collect()

    expected = [(5, 6, 3, None), (6, 7, 3, None), (7, None, None, None)]
    assert [tuple(row)[5:] for row in rows] == expected


def test_a_segment_that_cannot_be_searched_hides_what_lies_in_it_and_behind(
    spark: SparkSession,
) -> None:
    first, second = {"base_offset": 0}, {"base_offset": 7}
    found = frame(
        spark,
        _FOUND,
        {"committed_offset": 4, **first, "problem": "gone"},
        {"committed_offset": 4, **second, "found_offset": 7, "found_timestamp_ms": 3},
        {"committed_offset": 5, **first, "found_offset": 5, "found_timestamp_ms": 2},
        {"committed_offset": 5, **second, "problem": "gone"},
        {"committed_offset": 6, **first},
        {"committed_offset": 6, **second, "problem": "gone"},
    )

    rows = first_unread(found).orderBy("committed_offset").collect()

    expected = [(4, None, None, "gone"), (5, 5, 2, None), (6, None, None, "gone")]
    assert [tuple(row)[5:] for row in rows] == expected


def test_unread_records_may_be_among_lost_ones(spark: SparkSession) -> None:
    columns = "committed_offset long, first_unread_offset long, log_start_offset long,"
    columns += " lost STRUCT<until: BIGINT, why: STRING>"
    lost = {"until": 9, "why": "a gap"}
    cases = {
        (5, 9, 0): True,
        (5, None, 0): True,
        (5, 5, 0): False,  # it is there
        (9, 11, 0): False,  # behind what is lost
        (3, 9, 4): False,  # deleted
    }
    rows = [(*case, lost) for case in cases] + [(5, 9, 0, None)]

    found = rows_of(spark, rows, columns).select(unread_may_be_lost()).collect()

    why = "unread records may be in what is missing: a gap"
    assert [row[0] for row in found] == [why if is_it else None for is_it in [*cases.values(), 0]]


def test_a_log_ended_at_its_first_later_record_or_ends_where_it_does(spark: SparkSession) -> None:
    logs = frame(spark, "log_end_offset long", {"log_end_offset": 9})
    answers = frame(
        spark,
        "true_offset long, log_end_offset long, problem string",
        {"topic": "later", "true_offset": 5, "log_end_offset": 9},
        {"topic": "none later", "log_end_offset": 9},
        {"topic": "not known", "log_end_offset": 9, "problem": "damaged"},
    )

    (asked,) = logs.transform(ask_for_end(at_ms=AT_MS)).collect()
    ends = answers.transform(ends_found).collect()

    assert (asked.question, asked.target_ms, asked.log_end_offset) == ("end", AT_MS + 1, 9)
    assert {row.topic: (row.end_offset, row.end_problem) for row in ends} == {
        "later": (5, None),
        "none later": (9, None),
        "not known": (None, "damaged"),
    }
