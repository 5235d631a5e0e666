"""Up to where coordinators' logs have lost records, by hand."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.lost_records import (
    all_lost,
    lost_by_files,
    lost_records,
    with_unread,
)
from kafka_segments.engine.tables.catalog import INTERNAL_FILES, INTERNAL_RECORDS, LOGS, SEGMENTS
from support.spark.rows_of import rows_of

MOST = 2**63 - 1
KEYS = "cluster string, broker_id int, log_dir string, topic string, partition int"
SEGMENT = (
    f"{KEYS}, base_offset long, next_offset long, record_count long, path string,"
    " valid_bytes long, damage struct<kind:string,position:bigint,message:string>,"
    " is_active boolean"
)
EPOCHS = "leader_epochs array<struct<epoch:int,start_offset:bigint>>"
LOG = f"{KEYS}, log_start_offset long, cleaner_offset long, {EPOCHS}"
OFFSETS, SHARES = "__consumer_offsets", "__share_group_state"
Segment = tuple[Any, ...]
GAP = [(0, 10, 10), (20, 30, 10)]
CLEANED = [(0, 10, 4), (20, 30, 10)]


def lost(
    spark: SparkSession,
    segments: list[Segment],
    topic: str = OFFSETS,
    start: int | None = None,
    cleaner: int | None = None,
    epochs: list[tuple[int, int]] | None = None,
) -> tuple[int, str] | None:
    """Give what a log has lost: segments of base offset, next offset, records and damage."""
    key = ("c", 1, "/d", topic, 0)
    rows = [
        (*key, *one[:3], f"/{one[0]}", 7, one[3] if len(one) > 3 else None, one == segments[-1])
        for one in segments
    ]
    logs = rows_of(spark, [(*key, start, cleaner, epochs)], LOG)
    found = rows_of(spark, rows, SEGMENT).transform(lost_records(logs)).collect()
    assert len(found) <= 1
    return (found[0]["lost"]["until"], found[0]["lost"]["why"]) if found else None


@pytest.mark.parametrize(
    ("segments", "topic", "start", "cleaner", "until"),
    [
        ([(0, 10, 10), (10, 20, 10)], OFFSETS, None, None, None),
        (GAP, OFFSETS, None, None, 20),
        (GAP, OFFSETS, None, 20, None),  # the cleaner has been there
        (GAP, OFFSETS, None, 10, 20),
        (CLEANED, OFFSETS, None, 10, 20),  # it has not been behind the first segment
        (CLEANED, OFFSETS, None, 0, None),  # nor there: another broker's has
        (GAP, OFFSETS, 20, None, None),  # which the log does not have any more
        (CLEANED, OFFSETS, None, None, None),  # it was cleaned, whatever the checkpoint
        (CLEANED, SHARES, None, None, 20),  # which is never compacted
        ([(0, 0, 0), (20, 30, 10)], OFFSETS, None, None, 20),  # a file of 0 bytes
        (GAP, "orders", None, None, 20),
        (CLEANED, "orders", None, None, None),  # it may be compacted
    ],
)
def test_a_gap_is_lost_records_where_the_cleaner_has_not_been(
    spark: SparkSession,
    segments: list[Segment],
    topic: str,
    start: int | None,
    cleaner: int | None,
    until: int | None,
) -> None:
    found = lost(spark, segments, topic, start, cleaner)

    assert (found and found[0]) == until
    assert found is None or "are in no segment: a segment is missing" in found[1]


def test_what_follows_damage_is_lost(spark: SparkSession) -> None:
    bad = ("corrupt_batch", 7, "checksum is 1")
    torn = ("partial_batch", 7, "40 bytes left")

    assert lost(spark, [(0, 4, 4, bad), (20, 30, 10)], cleaner=20) == (
        20,
        "/0 cannot be read from byte 7 on: checksum is 1",
    )
    assert lost(spark, [(0, 10, 10), (10, 20, 10, bad)]) == (
        MOST,
        "/10 cannot be read from byte 7 on: checksum is 1",
    )
    assert lost(spark, [(0, 10, 10), (10, 20, 10, torn)]) is None
    assert lost(spark, [(0, 4, 4, torn), (10, 20, 10)]) is not None


def test_a_log_that_begins_later_than_its_epochs_lost_its_beginning(spark: SparkSession) -> None:
    log = [(20, 30, 10)]

    assert lost(spark, log, SHARES, epochs=[(1, 5), (2, 25)]) == (
        20,
        "it begins at offset 20, its first segments are missing: its leader epochs begin at 5",
    )
    assert lost(spark, log, SHARES, epochs=[(1, 20)]) is None
    assert lost(spark, log, SHARES, start=20, epochs=[(1, 5)]) is None
    assert lost(spark, log, SHARES) is None  # nothing tells where it began


def test_columns_are_those_of_the_tables() -> None:
    for table, names in ((SEGMENTS, SEGMENT), (LOGS, LOG)):
        there = set(table.schema.fieldNames())
        assert {name.split()[0] for name in names.split(", ")} <= there
    assert "row" in INTERNAL_RECORDS.schema.fieldNames()
    assert "is_active" in INTERNAL_FILES.schema.fieldNames()


def test_a_segment_that_was_not_read_as_it_was_built_is_lost(spark: SparkSession) -> None:
    read = {  # by topic: bytes of each file as it was read
        "as it was": {0: 7, 10: 7},
        "grown": {0: 7, 10: 9},
        "shorter": {0: 7, 10: 5},
        "in the middle": {10: 7},
        "not told": {0: None, 10: None},
    }
    segments = [
        ("c", 1, "/d", topic, 0, base, f"/{base}", 7 if base < 20 else 0)
        for topic in read
        for base in (0, 10, 20)
    ]
    files = [
        ("c", 1, "/d", topic, 0, base, size, False)
        for topic, sizes in read.items()
        for base, size in sizes.items()
    ]

    found = (
        rows_of(spark, segments, f"{KEYS}, base_offset long, path string, size_bytes long")
        .transform(
            lost_by_files(
                rows_of(
                    spark, files, f"{KEYS}, base_offset long, size_bytes long, is_snapshot boolean"
                )
            )
        )
        .collect()
    )

    assert {row["topic"]: row["lost"]["until"] for row in found} == {
        "shorter": 20,
        "in the middle": 10,
    }
    assert all("was not read by `internals` as it was built" in row["lost"]["why"] for row in found)


def test_a_log_in_doubt_has_lost_all(spark: SparkSession) -> None:
    place = "STRUCT<until: BIGINT, why: STRING>"
    logs = [
        ("c", 1, "/d", OFFSETS, 0, "not known: it is cut", {"until": 5, "why": "a gap"}),
        ("c", 1, "/d", OFFSETS, 1, None, {"until": 5, "why": "a gap"}),
        ("c", 1, "/d", OFFSETS, 2, None, None),
    ]

    found = rows_of(spark, logs, f"{KEYS}, doubt string, lost {place}").transform(all_lost)

    assert [row["lost"] and tuple(row["lost"]) for row in found.orderBy("partition").collect()] == [
        (MOST, "it is cut"),
        (5, "a gap"),
        None,
    ]


def test_records_that_cannot_be_read_are_lost(spark: SparkSession) -> None:
    columns = f"{KEYS}, file string, base_offset long, row long, offset long, problem string"
    columns += ", is_active boolean, key_json string"
    torn = "40 bytes left, too few for a batch"
    rows = [
        (name, *row)
        for name, file in {
            "at a record": [(0, 0, 0, "version 9"), (0, 1, 1, None)],
            "of a known key": [(0, 0, 0, "version 9", "{}"), (0, 1, 1, None)],
            "in a file": [(0, 0, 0, None), (0, 1, None, "checksum is 1"), (5, 0, 5, None)],
            "in the last": [(0, 0, 0, None), (0, 1, None, "checksum is 1")],
            "being written": [(0, 0, 0, None), (0, 1, None, torn)],
        }.items()
        for row in file
    ]
    records = [
        ("c", 1, "/d", name, 0, f"{base}.log", base, row, offset, problem, True, *(key or [None]))
        for name, base, row, offset, problem, *key in rows
    ]

    found = rows_of(spark, records, columns).transform(with_unread).collect()

    assert {row["topic"]: row["unread"] and tuple(row["unread"]) for row in found} == {
        "at a record": (0, "0.log: version 9"),
        "in a file": (5, "0.log: checksum is 1"),
        "in the last": (MOST, "0.log: checksum is 1"),
        "being written": None,
        "of a known key": None,
    }
