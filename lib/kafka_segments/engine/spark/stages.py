"""The stages of Spark that run now."""

from collections.abc import Callable

from pyspark import SparkStageInfo
from pyspark.sql import SparkSession

from kafka_segments.engine.spark.connect import is_connect


def stages_of(spark: SparkSession) -> Callable[[], list[SparkStageInfo]]:
    """Return what gives the stages of a session that run; a server of Spark Connect tells none."""
    if is_connect(spark):
        return list
    tracker = spark.sparkContext.statusTracker()

    def stages() -> list[SparkStageInfo]:
        found = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
        return [stage for stage in found if stage is not None]

    return stages
