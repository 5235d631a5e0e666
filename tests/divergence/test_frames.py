"""What is known of each copy of a log, by rows that are written down."""

from pyspark.sql import SparkSession

from kafka_segments.verbs.copies.divergence.decide.frames import with_segments
from support.spark.rows_of import rows_of

COPY = "copy string, topic string, partition int"


def test_a_copy_has_the_segments_and_the_topic_id_of_its_own(spark: SparkSession) -> None:
    copies = rows_of(
        spark,
        [("a", "t", 0, 9), ("b", "t", 0, 8), ("a", "t", 1, 7), ("a", "left out", 0, 6)],
        f"{COPY}, end long",
    )
    segments = rows_of(
        spark,
        [
            ("a", "t", 0, "/a/0.log", 0, 5, 100, 1),
            ("a", "t", 0, "/a/5.log", 5, None, 70, 1),
            ("b", "t", 0, "/b/0.log", 0, None, 90, 1),
            ("a", "left out", 0, "/a/l.log", 0, None, 90, 1),
        ],
        f"{COPY}, path string, base_offset long, next_base long, size_bytes long, mtime_ns long",
    )
    logs = rows_of(
        spark,
        [("a", "t", 0, "A", "/a"), ("b", "t", 0, None, "/b"), ("a", "t", 1, "A", "/a")],
        f"{COPY}, topic_id string, log_dir string",
    )

    found = copies.transform(with_segments(segments, logs))

    assert found.columns == ["copy", "topic", "partition", "end", "topic_id", "segments"]
    assert {
        (row.copy, row.partition): (row.end, row.topic_id, sorted(map(tuple, row.segments)))
        for row in found.collect()
    } == {
        ("a", 0): (9, "A", [("/a/0.log", 0, 5, 100), ("/a/5.log", 5, None, 70)]),
        ("b", 0): (8, None, [("/b/0.log", 0, None, 90)]),
        ("a", 1): (7, "A", []),
    }
