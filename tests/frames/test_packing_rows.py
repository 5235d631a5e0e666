"""Packing segments into tasks by bytes."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.engine.frames.packing import pack_segments
from kafka_segments.engine.limits import OPEN_COST_BYTES, Load


def test_tasks_get_about_equal_bytes_and_every_segment_lands_once(spark: SparkSession) -> None:
    mib = 1024 * 1024
    sizes = [1000 * mib if number % 50 == 0 else (number % 7) * mib for number in range(400)]
    segments = spark.createDataFrame(
        [(size, f"t-{number % 9}", number) for number, size in enumerate(sizes)],
        "size_bytes long, relative_path string, base_offset long",
    )
    load = Load(len(sizes), sum(sizes))

    packed = segments.transform(pack_segments(load, tasks=4))

    tasks = (
        packed.groupBy(F.spark_partition_id())
        .agg(F.count("*").alias("segments"), F.sum("size_bytes").alias("bytes"))
        .collect()
    )
    fair = load.weight / 4
    heaviest = max(row["bytes"] + row["segments"] * OPEN_COST_BYTES for row in tasks)
    assert sum(row["segments"] for row in tasks) == len(sizes)
    assert heaviest <= fair + 1001 * mib
    assert packed.rdd.getNumPartitions() == 4
