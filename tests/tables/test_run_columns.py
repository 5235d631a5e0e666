"""The columns that say which run made a row, and when."""

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from kafka_segments.engine.tables.run_columns import stamp_of
from support.spark.rows_of import rows_of


def test_rows_say_which_run_made_them_and_when(spark: SparkSession) -> None:
    rows = rows_of(spark, [(1,)], "number int")

    stamped = rows.withColumns(stamp_of("run", 1_500) | stamp_of("run", 2_000, clock="read_at"))

    assert stamped.columns == ["number", "run_id", "decided_at", "read_at"]
    (row,) = stamped.collect()
    assert row["run_id"] == "run"
    moments = [row[name].astimezone(UTC) for name in ("decided_at", "read_at")]
    assert moments == [datetime.fromtimestamp(at, UTC) for at in (1.5, 2.0)]
