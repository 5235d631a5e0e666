"""Forensics: read the headers of all batches, and judge their timestamps."""

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from kafka_segments.forensics.decide import (
    Admission,
    find_unread,
    judge_timestamps,
    only_of_producers,
)
from kafka_segments.rows.datasource import register

_COLUMNS = (
    "path,topic,partition,segment_base_offset,position,last_offset,timestamp_type,is_control,"
    "has_delete_horizon,base_timestamp_ms,max_timestamp_ms,producer_id,record_count,error"
)


@dataclass(frozen=True)
class ForensicsOptions:
    """What is judged. URIs are absolute; ``now_ms`` is the run's clock.

    Attributes:
        sources: log directories, folders of several, or folders of partitions.
        admission: the limits of timestamps that a broker would apply.
        follow_links: symbolic links below the sources are followed.
    """

    sources: tuple[str, ...]
    now_ms: int
    admission: Admission
    follow_links: bool = False


class Forensics(NamedTuple):
    """Judged batches, see ``judge_timestamps``, and what was not read, see ``find_unread``."""

    judged: DataFrame
    unread: DataFrame


def run_forensics(spark: SparkSession, options: ForensicsOptions) -> Forensics:
    """Judge the batches of all producers under the sources."""
    register(spark)
    batches = (
        spark.read.format("kafka_segments")
        .option("columns", _COLUMNS)
        .option("check", "headers")
        .option("follow_links", str(options.follow_links).lower())
        .load(list(options.sources))
    )
    judge = judge_timestamps(now_ms=options.now_ms, admission=options.admission)
    return Forensics(
        judged=batches.transform(only_of_producers).transform(judge),
        unread=batches.transform(find_unread),
    )
