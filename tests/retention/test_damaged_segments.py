"""What a segment of which a damage hides the rest tells of itself."""

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.judge.retention.decide.decisions import with_log_state
from support.spark.rows_of import frame

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

SEGMENT = (
    "base_offset long, next_offset long, size_bytes long, valid_bytes long, truncated_bytes long,"
    " is_active boolean, vanished_at timestamp,"
    " damage struct<kind: string, position: long, message: string>"
)


def test_where_a_segment_ends_behind_its_damage_is_not_known(spark: SparkSession) -> None:
    told = {
        "sound": (None, 0, False),
        "hidden": ("bad_checksum", 50, False),
        "torn": ("partial_batch", 50, False),
        "active": ("bad_checksum", 50, True),
        "preallocated": ("preallocated_tail", 50, False),
        "without-a-rest": ("invalid_transaction", 0, False),
    }
    segments = [
        {
            **{"topic": topic, "base_offset": 0, "next_offset": 9, "size_bytes": 100},
            **{"valid_bytes": 100 - cut, "truncated_bytes": cut, "is_active": is_active},
            "damage": None if kind is None else (kind, 100 - cut, "so it is"),
        }
        for topic, (kind, cut, is_active) in told.items()
    ]
    logs = frame(spark, "high_watermark long, log_start_offset long")

    known = frame(spark, SEGMENT, *segments).transform(with_log_state(logs, None)).collect()

    ends = {row["topic"]: (row["next_offset"], row["size_bytes"]) for row in known}
    assert ends == {
        **dict.fromkeys(("sound", "preallocated", "without-a-rest"), (9, 100)),
        **dict.fromkeys(("hidden", "torn"), (None, 100)),
        "active": (9, 50),
    }
