"""What a failover goes by, on a few rows."""

from pyspark.sql import SparkSession

from kafka_segments.failover.decide import sum_up_records

LOG = ("c", 1, "/d", "t", 0)
COLUMNS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int,"
    " committed_offset long, is_active boolean, damage struct<kind: string>, path string,"
    " offset long, timestamp_ms long, is_control boolean, error string"
)


def test_what_cannot_be_read_around_a_committed_offset_is_a_problem(spark: SparkSession) -> None:
    torn, cut = ("partial_batch",), ("bad_checksum",)
    read = [
        (*LOG, 2, True, torn, "/d/t-0/2.log", 1, 100, False, None),
        (*LOG, 2, True, torn, "/d/t-0/2.log", 2, 90, False, None),
        (*LOG, 2, True, torn, "/d/t-0/2.log", 3, 50, True, None),
        (*LOG, 2, True, torn, "/d/t-0/2.log", None, None, None, "the batch says 70 bytes"),
    ]
    unread = [
        (*LOG[:4], 1, 0, False, cut, "/d/t-1/0.log", None, None, None, "checksum is 1"),
        (*LOG[:4], 2, 0, False, None, "/d/t-2/0.log", None, None, None, "no such file"),
    ]

    rows = spark.createDataFrame([*read, *unread], COLUMNS).transform(sum_up_records)

    assert {tuple(row)[4:] for row in rows.collect()} == {
        (0, 100, 90, None),
        (1, None, None, "/d/t-1/0.log: checksum is 1"),
        (2, None, None, "/d/t-2/0.log: no such file"),
    }
