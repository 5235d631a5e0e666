"""Gaps and overlaps of tiered segments, from their first and last offsets."""

from pyspark.sql import SparkSession

from kafka_segments.verbs.judge.audit.decide.tiered_breaks import decide_breaks
from support.spark.rows_of import rows_of

COLUMNS = (
    "source string, relative_path string, base_offset long, end_offset long, path string,"
    " verdict string, kind string, message string, effect string, consequence string,"
    " action string, suffix string, is_finding boolean, size_bytes long"
)


def test_offsets_that_no_segment_or_that_two_hold_are_told(spark: SparkSession) -> None:
    ranges = [(0, 9), (10, 19), (25, 29), (28, 40), (30, 35), (41, 50), (50, None), (51, 51)]
    rows = [
        ("/s", "t", base, end, f"/s/t/{base:020d}-x.rsm-manifest", *[None] * 9)
        for base, end in ranges
    ]
    other = ("/s", "u", 7, 8, "/s/u/x.rsm-manifest", *[None] * 9)
    judged = rows_of(spark, [*rows, other], COLUMNS)

    found = judged.transform(decide_breaks).orderBy("base_offset").collect()

    twice = "it holds offsets {} to {}, which a segment before it holds too"
    names = ("base_offset", "kind", "verdict", "path", "message")
    assert [tuple(row[name] for name in names) for row in found] == [
        (20, "gap", "missing", f"/s/t/{20:020d}.log", "no whole segment holds offsets 20 to 24"),
        (28, "overlap", "valid", f"/s/t/{28:020d}-x.log", twice.format(28, 29)),
        (30, "overlap", "valid", f"/s/t/{30:020d}-x.log", twice.format(30, 35)),
    ]
    assert all(row["is_finding"] is (row["kind"] == "gap") for row in found)
    assert all(row["size_bytes"] is None for row in found)
