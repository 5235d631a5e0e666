"""Rows of a DataFrame in the driver or the client, a part at a time."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, Row

from kafka_segments.engine.spark.connect import is_connect


def stream_rows(rows: DataFrame) -> Iterator[Row]:
    """Yield all rows, without holding them at once.

    Over Connect the server sends them as batches of Arrow. In the driver's own session it is not
    ``DataFrame.toLocalIterator``: its jobs start when their query counts as over, and Spark 4.2
    keeps such jobs, with plans and broadcasts, until the session ends
    (DAGScheduler.activeQueryToJobs).
    """
    if is_connect(rows.sparkSession):
        return rows.toLocalIterator()
    return rows.rdd.toLocalIterator()
