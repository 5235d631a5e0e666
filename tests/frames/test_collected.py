"""Several frames collected by one query."""

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.frames.collected import collect_together


def test_frames_of_any_columns_come_each_in_its_order(spark: SparkSession) -> None:
    numbers = spark.range(5).orderBy(F.desc("id")).limit(3)
    nested = spark.createDataFrame(
        [("a", None, ["x"]), ("b", (1,), None)],
        "name string, of struct<id: int>, all array<string>",
    )

    found = collect_together(
        {
            "numbers": numbers,
            "nested": nested.orderBy("name").limit(2),
            "nothing": numbers.where("id < 0"),
            "count": numbers.agg(F.count("*").alias("count")),
        }
    )

    assert list(found) == ["numbers", "nested", "nothing", "count"]
    assert [row["id"] for row in found["numbers"]] == [4, 3, 2]
    assert found["nested"] == [
        Row(name="a", of=None, all=["x"]),
        Row(name="b", of=Row(id=1), all=None),
    ]
    assert found["nothing"] == []
    assert found["count"] == [Row(count=3)]
    assert collect_together({}) == {}
