"""The session that commands take: the one that this process has."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from kafka_segments.console import early
from kafka_segments.engine.spark.session import spark_session


def test_a_thread_that_is_new_to_spark_takes_the_running_session_and_leaves_it_running(
    spark: SparkSession, tmp_path: Path
) -> None:
    def ask() -> SparkSession:
        assert SparkSession.getActiveSession() is None
        assert early._has_session()  # so no Java is looked for
        with spark_session("another", root=tmp_path) as found:
            return found

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(ask).result()

    assert found is spark
    assert spark.range(3).count() == 3
