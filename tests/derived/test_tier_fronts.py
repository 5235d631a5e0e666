"""Which logs have their first offsets in tiered storage alone, and what is known of these."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.derived.tier_fronts import (
    COPY_FINISHED,
    may_reach,
    tier_fronts,
    with_is_tiered,
)
from support.spark.rows_of import frame, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

LOGS = "local_start_offset long, noted_start long, is_tiered boolean"
COPIES = (
    "cluster string, topic string, partition int, state string, partition_state string,"
    " findings array<string>, start_offset long, end_offset long, max_timestamp_ms long"
)


def test_a_tiered_log_begins_where_it_is_noted(spark: SparkSession) -> None:
    told = {
        "plain": (30, None, False),
        "records-deleted": (30, 10, False),
        "whole": (0, 0, True),
        "all-on-disk": (30, 30, True),
        "in-front": (30, 0, True),
        "not-noted": (30, None, True),
        "no-metadata": (30, None, None),
        "behind-its-note": (30, 10, None),
    }
    names = ("local_start_offset", "noted_start", "is_tiered")
    logs = frame(
        spark,
        LOGS,
        *({"topic": t, **dict(zip(names, row, strict=True))} for t, row in told.items()),
    )

    rows = logs.transform(tier_fronts(None)).collect()

    assert {row["topic"]: row["front"] and tuple(row["front"]) for row in rows} == {
        "whole": None,
        "all-on-disk": None,
        "in-front": (0, 30, None, "offsets 0 to 29 lie in tiered storage, which is not read"),
        "not-noted": (None, 30, None, "offsets up to 29 lie in tiered storage, which is not read"),
        "behind-its-note": (
            *(10, 30, None),
            "its checkpoint notes that it begins at 10, and its first segment does at 30: what lies"
            " between is in tiered storage, or missing",
        ),
    }


def test_copies_of_all_in_front_tell_up_to_when_it_reaches(spark: SparkSession) -> None:
    def copy(topic: str, start: int, end: int, ms: int, **other: object) -> tuple[object, ...]:
        row = {"state": COPY_FINISHED, "partition_state": None, "findings": [], **other}
        served = (row["state"], row["partition_state"], row["findings"])
        return ("c", topic, 0, *served, start, end, ms)

    copies = [
        *(copy("whole", 0, 14, 5), copy("whole", 10, 29, 9), copy("whole", 30, 44, 99)),
        *(copy("gap", 0, 14, 5), copy("gap", 16, 29, 9)),
        *(copy("late", 1, 29, 5), copy("short", 0, 28, 5)),
        *(copy("being-deleted", 0, 29, 5, partition_state="DELETE_PARTITION_MARKED"),),
        *(copy("copying", 0, 29, 5, state="COPY_SEGMENT_STARTED"),),
        *(copy("missing", 0, 29, 5, findings=["missing"]),),
    ]
    topics = sorted({str(row[1]) for row in copies})
    log = {"local_start_offset": 30, "noted_start": 0, "is_tiered": True}
    logs = frame(spark, LOGS, *({"topic": topic, **log} for topic in topics))

    fronts = logs.transform(tier_fronts(rows_of(spark, copies, COPIES)))

    known = fronts.select("topic", "front.max_timestamp_ms", may_reach(F.lit(9)).alias("at"))
    later = fronts.where(~may_reach(F.lit(10)))
    rows = {topic: tuple(rest) for topic, *rest in known.collect()}
    assert rows == {**dict.fromkeys(topics, (None, True)), "whole": (9, True)}
    assert [row["topic"] for row in later.collect()] == ["whole"]


def test_a_topic_is_tiered_by_what_holds_still_of_its_own_cluster(spark: SparkSession) -> None:
    settings = [
        *(("c", "topic", "tiered", "remote.storage.enable", "true", None),),
        *(("c", "topic", "past", "remote.storage.enable", "true", 5),),
        *(("d", "topic", "plain", "remote.storage.enable", "true", None),),
    ]
    columns = (
        "cluster string, resource_type string, resource_name string, name string, value string,"
        " until_offset long"
    )
    named = [("c", topic) for topic in ("tiered", "past", "plain")]
    topics = rows_of(spark, named, "cluster string, topic string")
    logs = frame(spark, "n int", *({"topic": topic} for _, topic in [*named, ("c", "unnamed")]))

    def told(*given: object) -> dict[str, bool | None]:
        rows = logs.transform(with_is_tiered(*given)).collect()  # type: ignore[arg-type]
        return {row["topic"]: row["is_tiered"] for row in rows}

    assert told(rows_of(spark, settings, columns), topics) == {
        "tiered": True, "past": False, "plain": False, "unnamed": None,
    }  # fmt: skip
    assert set(told(None, None).values()) == {None}
