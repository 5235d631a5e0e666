"""Choose one replica of each partition."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kafka_segments.tables.keys import LOG_KEYS, Transform

IN_CLUSTER = ("cluster", "topic", "partition")


def choose_replica(*, of: tuple[str, ...] = IN_CLUSTER) -> Transform:
    """Keep the replica of each partition whose log has the greatest end.

    ``of`` are the columns that name a partition. Among equal ends the first by the rest of the
    key of a log is kept.

    Needs: the key of a log, log_end_offset.
    Gives: the same rows, one for each value of ``of``.
    """
    rest = [key for key in LOG_KEYS if key not in of]
    order = Window.partitionBy(*of).orderBy(F.desc("log_end_offset"), *rest)

    def transform(logs: DataFrame) -> DataFrame:
        return (
            logs.withColumn("_replica", F.row_number().over(order))
            .where(F.col("_replica") == 1)
            .drop("_replica")
        )

    return transform
