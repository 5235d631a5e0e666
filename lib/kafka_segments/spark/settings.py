"""Settings of a session that hold for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def settings_meanwhile(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session these settings meanwhile; after it they are as they were."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        restore(spark, before)


def restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    """Give settings the values that they had; None: they had none."""
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
