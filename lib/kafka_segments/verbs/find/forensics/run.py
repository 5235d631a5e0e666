"""Forensics: read the headers of all batches, and judge their timestamps."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.frames.packing import TellLoad
from kafka_segments.engine.rows.datasource import load_of, register
from kafka_segments.engine.sources.list import bare_sources
from kafka_segments.engine.sources.missing import no_segments
from kafka_segments.verbs.find.forensics.decide import (
    Admission,
    find_unread,
    judge_timestamps,
    only_of_producers,
)

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
        follow_links: symbolic links are followed to what lies below the sources.
    """

    sources: tuple[str, ...]
    now_ms: int
    admission: Admission
    follow_links: bool = False


class Forensics(NamedTuple):
    """Judged batches, see ``judge_timestamps``, and what was not read, see ``find_unread``."""

    judged: DataFrame
    unread: DataFrame


def run_forensics(
    spark: SparkSession, options: ForensicsOptions, tell: TellLoad | None = None
) -> Forensics:
    """Judge the batches of all producers under the sources; those without a segment are told.

    ``tell``: is told how much is read, for which the sources are listed once more.
    """
    register(spark)
    tell_not_known(
        map(no_segments, bare_sources(options.sources, follow_links=options.follow_links))
    )
    reading = {
        "columns": _COLUMNS,
        "check": "headers",
        "follow_links": str(options.follow_links).lower(),
    }
    if tell is not None:
        tell(*load_of({**reading, "paths": json.dumps(options.sources)}))
    batches = spark.read.format("kafka_segments").options(**reading).load(list(options.sources))
    judge = judge_timestamps(now_ms=options.now_ms, admission=options.admission)
    return Forensics(
        judged=batches.transform(only_of_producers).transform(judge),
        unread=batches.transform(find_unread),
    )
