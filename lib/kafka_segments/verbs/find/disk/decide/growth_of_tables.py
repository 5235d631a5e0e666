"""What segments got day by day, by the tables of a build, and which log directories they know."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.written_times import is_by_mtime
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.long_arithmetic import total
from kafka_segments.verbs.find.disk.decide.accounts import DAYS
from kafka_segments.verbs.find.disk.decide.growth import DAY_MS


class KnownDir(NamedTuple):
    """A log directory as the tables know it; cluster_id and the next two: its meta.properties."""

    cluster: str
    broker_id: int
    log_dir: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def first_day_ms(moments_ms: Iterable[int]) -> int:
    """Return when the first of the whole days before the earliest of some moments begins."""
    return (min(moments_ms) // DAY_MS - DAYS) * DAY_MS


def of_dirs(dirs: Iterable[KnownDir]) -> Transform:
    """Keep the rows of some log directories.

    Needs: cluster, broker_id, log_dir.
    Gives: the same columns.
    """
    is_one = F.lit(False)
    for one in dirs:
        is_one |= (
            (F.col("cluster") == one.cluster)
            & (F.col("broker_id") == one.broker_id)
            & (F.col("log_dir") == one.log_dir)
        )
    return lambda rows: rows.where(is_one)


def grown_by_day(*, from_ms: int) -> Transform:
    """Sum up what each topic got on each of ``DAYS`` days, by its segments' last records.

    Needs: rows of ``segments`` that are there, with written_ms.
    Gives: cluster, broker_id, log_dir, topic, day_ms, written_bytes, by_file_bytes (of those whose
        moment no record's timestamp tells).
    """
    is_by_record = ~is_by_mtime() & F.col("written_ms").eqNullSafe(F.col("largest_timestamp_ms"))
    day_ms = F.floor(F.col("written_ms") / DAY_MS) * DAY_MS

    def transform(segments: DataFrame) -> DataFrame:
        is_within = F.col("written_ms").between(from_ms, from_ms + DAYS * DAY_MS - 1)
        by_file = F.when(is_by_record, 0).otherwise(F.col("size_bytes"))
        return (
            segments.where(is_within)
            .groupBy("cluster", "broker_id", "log_dir", "topic", day_ms.alias("day_ms"))
            .agg(total("size_bytes").alias("written_bytes"), total(by_file).alias("by_file_bytes"))
        )

    return transform


def find_dir(log_dir: str, own: Any, known: Iterable[KnownDir]) -> KnownDir | str:
    """Return a log directory's row in the tables, or why it has none.

    It is known by the ids in its meta.properties, wherever it lay when it was built; of one that
    has no id of its own, or that was built from several paths, by the path, too.

    Args:
        log_dir: Its path.
        own: Its cluster, node_id and directory_id, None where these are not known.
        known: The log directories of the tables.
    """
    if own.cluster is None or own.node_id is None:
        return "its meta.properties does not tell cluster and node"
    node = f"node {own.node_id} of cluster {own.cluster}"
    of_node = [one for one in known if one[3:5] == (own.cluster, own.node_id)]
    if not of_node:
        return f"the tables have nothing of {node}"
    same = [one for one in of_node if one.directory_id == own.directory_id]
    there = [one for one in same if one.log_dir == log_dir]
    if there or (len(same) == 1 and own.directory_id is not None):
        return (there or same)[0]
    if not same or own.directory_id is None:
        return f"the tables have {node}, and not this directory of it"
    return f"the tables have it as {' and '.join(sorted(one.log_dir for one in same))}"
