"""In which unit a timestamp falls into the years 2000 to 2100, at both ends."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.derived.timestamps import guess_unit

EDGES = {
    946_684_799: None,
    946_684_800: "s",
    4_102_444_800: "s",
    4_102_444_801: None,
    946_684_800_000: None,  # sound, in ms
    946_684_799_999_999: None,
    946_684_800_000_000: "us",
    4_102_444_800_000_000: "us",
    4_102_444_800_000_001: None,
    946_684_799_999_999_999: None,
    946_684_800_000_000_000: "ns",
    4_102_444_800_000_000_000: "ns",
    4_102_444_800_000_000_001: None,
}


def test_a_unit_is_guessed_up_to_both_ends_of_the_century(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(value,) for value in EDGES], "timestamp_ms long")

    guessed = rows.select("timestamp_ms", guess_unit(F.col("timestamp_ms")).alias("unit"))

    assert {row["timestamp_ms"]: row["unit"] for row in guessed.collect()} == EDGES
