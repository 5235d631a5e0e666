"""How much a verb has found to work on: from more than few rows on Spark compiles its plans."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.choose import expect_many_rows, has_few_rows
from kafka_segments.engine.limits import MOST, Load, Work


def expect(spark: SparkSession, work: Work, load: Load) -> None:
    """Note how much a verb has found to work on; if it is more than few rows, Spark compiles.

    ``load``: rows or segments, and the bytes that the work depends on.
    """
    is_few = load.is_little if work is Work.LIST else load.is_within(MOST[work])
    if not is_few:
        expect_many_rows(spark)


def expect_files(files: DataFrame, work: Work, *, by: str) -> None:
    """Tell the bytes of files (``expect``); a query asks for them while few rows are expected."""
    spark = files.sparkSession
    if has_few_rows(spark):
        size_bytes = files.select(F.coalesce(F.sum(by), F.lit(0))).collect()[0][0]
        expect(spark, work, Load(0, size_bytes))
