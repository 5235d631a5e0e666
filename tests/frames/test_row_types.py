"""Columns said as in SQL are those that Spark's types say."""

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField

from kafka_segments.engine.frames.row_types import row_fields


def test_columns_are_said_as_in_sql() -> None:
    found = row_fields(
        "path string, offset long not null, brokers array<int>, partition int",
        names=ArrayType(StringType(), containsNull=False),
    )

    assert found == [
        StructField("path", StringType()),
        StructField("offset", LongType(), nullable=False),
        StructField("brokers", ArrayType(IntegerType())),
        StructField("partition", IntegerType()),
        StructField("names", ArrayType(StringType(), containsNull=False)),
    ]
