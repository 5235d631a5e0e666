"""Which logs of internal topics are gone: below a source, and of a log directory that is none."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.verbs.find.internals.decide.rows import count_lost_logs
from support.spark.rows_of import rows_of

_LOGS = "log_dir string, topic string, partition int"
TOPIC = "__consumer_offsets"


@pytest.mark.usefixtures("few")
def test_a_log_directory_that_is_none_any_more_is_counted_by_itself(spark: SparkSession) -> None:
    """One that is drained has no log left, and its checkpoints."""
    known = [("/mnt/a", 0), ("/mnt/a", 1), ("/mnt/a", 2), ("/mnt/drained", 3), ("/mnt/off", 4)]
    rows = rows_of(spark, [(at, TOPIC, number) for at, number in known], _LOGS)
    files = rows.where("log_dir = '/mnt/a'")
    dirs = [("log_dir", "/mnt/a"), ("log_dir", "/mnt/drained"), ("unrecognized", "/mnt/off")]
    listed = rows_of(spark, dirs, "kind string, log_dir string")

    count = count_lost_logs(files, listed, F.col("log_dir"), ["/mnt"])

    found = {row["source"]: (row["known"], row["lost"]) for row in rows.transform(count).collect()}
    assert found == {"/mnt": (5, 2), "/mnt/off": (1, 1)}
