"""Rows of a DataFrame in the driver, a partition at a time."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, Row


def stream_rows(rows: DataFrame) -> Iterator[Row]:
    """Give all rows, without holding them at once.

    Not by ``DataFrame.toLocalIterator``: its jobs start when their query counts as over, and
    Spark 4.2 keeps such jobs, with plans and broadcasts, until the session ends
    (DAGScheduler.activeQueryToJobs).
    """
    return rows.rdd.toLocalIterator()
