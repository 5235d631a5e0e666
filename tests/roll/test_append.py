"""Active segments made ready for a decision: what is there, and the append it is made for."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.judge.roll.decide.append import (
    only_present,
    with_append,
    with_built_interval,
)
from support.spark.rows_of import frame

NOW_MS, MTIME_MS = 1_000, 400


@pytest.mark.parametrize(
    ("given", "stamp", "expected"),
    [
        ({}, "CreateTime", (NOW_MS, MTIME_MS)),
        ({"timestamp_ms": 7}, "CreateTime", (7, MTIME_MS)),
        ({"timestamp_ms": -1, "opened_ms": 5}, "CreateTime", (-1, 5)),
        ({"timestamp_ms": 7, "opened_ms": 0}, "LogAppendTime", (NOW_MS, 0)),
        ({"timestamp_ms": 7}, None, (7, MTIME_MS)),
    ],
)
def test_an_append_comes_now_unless_it_is_said_otherwise(
    spark: SparkSession, given: dict[str, Any], stamp: str | None, expected: tuple[int, int]
) -> None:
    columns = "next_offset long, last_modified_ms long, message_timestamp_type string"
    known = {"next_offset": 90, "last_modified_ms": MTIME_MS, "message_timestamp_type": stamp}
    append = with_append(
        **{"timestamp_ms": None, "opened_ms": None, "now_ms": NOW_MS, **given},
        size_bytes=70,
        records=3,
    )

    (row,) = frame(spark, columns, known).transform(append).collect()

    assert (row["append_timestamp_ms"], row["created_ms"]) == expected
    assert (row["append_bytes"], row["append_last_offset"]) == (70, 92)


def test_what_is_there_counts_with_its_valid_bytes(spark: SparkSession) -> None:
    segments = frame(
        spark,
        "base_offset long, size_bytes long, valid_bytes long, vanished_at timestamp,"
        " fingerprint string",
        {"base_offset": 0, "size_bytes": 9, "valid_bytes": 7, "fingerprint": None},
        {"base_offset": 1, "size_bytes": 9},
    ).unionByName(
        spark.sql(
            "SELECT 'c' cluster, 1 broker_id, '/d' log_dir, 't' topic, 0 partition, 2L base_offset,"
            " 9L size_bytes, 9L valid_bytes, now() vanished_at, '' fingerprint"
        )
    )

    rows = segments.transform(only_present).transform(with_built_interval).collect()

    names = ("base_offset", "size_bytes", "built_interval_bytes")
    assert sorted(tuple(row[name] for name in names) for row in rows) == [
        (0, 7, None),
        (1, 9, None),
    ]
