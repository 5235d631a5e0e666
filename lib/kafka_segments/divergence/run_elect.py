"""Advise on elections: read the copies and the metadata log, weigh each partition's replicas."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.divergence.decide.usable_copies import LOG, STATE, with_use
from kafka_segments.divergence.options import CopyOptions
from kafka_segments.divergence.read_copies import (
    ListedCopies,
    list_copies,
    read_copies,
    refuse_doubles,
)
from kafka_segments.divergence.tasks_elect import weigh_replicas
from kafka_segments.errors import UsageError
from kafka_segments.internals.files import Origin, find_files
from kafka_segments.internals.tasks import read_records
from kafka_segments.internals.write_history import fold_best_replicas, rows_of
from kafka_segments.sources import kinds
from kafka_segments.spark.held import held
from kafka_segments.spark.packing import TellLoad, tell_nobody
from kafka_segments.tables.catalog import METADATA_CONFIGS, METADATA_PARTITIONS
from kafka_segments.wire.names import METADATA_TOPIC

_TYPE, _UNCLEAN = "resource_type", "unclean.leader.election.enable"


class Elections(NamedTuple):
    """The replicas that were weighed, and those that could not be.

    Attributes:
        rows: a row for each replica with a copy that is used: the columns of ``CANDIDATES``.
        partitions: how many partitions they are of.
        absent: topic and partition of those without such a copy.
        left_out: copy, topic, partition and reason of the copies that are not used.
    """

    rows: DataFrame
    partitions: int
    absent: DataFrame
    left_out: DataFrame


def run_elect(
    spark: SparkSession,
    options: CopyOptions,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
    *,
    metadata: Sequence[str] = (),
) -> Elections:
    """Weigh the replicas of each partition of which there is a copy.

    ``metadata``: URIs of where the metadata log lies; empty: among the copies. Rows are cached
    until ``caches`` closes.

    Raises:
        SourceError: a folder cannot be listed.
        UsageError: the broker of a copy is not known, a copy holds a log twice, there is no
            metadata log, or those of two clusters.
    """
    copied = [uri for _, uri in options.copies]
    states = _partitions(spark, tuple(metadata or copied), caches)
    there = list_copies(spark, options, caches)
    judged = held(there.logs.transform(with_use(states, _brokers(spark, there))), caches)
    used = judged.where("reason IS NULL")
    refuse_doubles(used)
    found = read_copies(spark, options, there, used, caches, tell)
    known = used.select("copy", *LOG, "broker_id", *STATE[1:])
    copies = found.copies.join(known, ["copy", *LOG], how="inner")
    rows = held(copies.transform(weigh_replicas(found.parts)), caches)
    told = rows.select(*LOG).distinct()
    return Elections(
        rows,
        told.count(),
        held(states.select(*LOG).join(told, list(LOG), how="left_anti"), caches),
        judged.where("reason IS NOT NULL").select("copy", *LOG, "reason"),
    )


def _partitions(spark: SparkSession, sources: tuple[str, ...], caches: ExitStack) -> DataFrame:
    """Return topic, partition and ``STATE`` as of the end of the metadata log."""
    files = find_files(spark, Origin(sources, topics=(METADATA_TOPIC,)), caches).files
    clusters = [row["cluster"] for row in files.select("cluster").distinct().collect()]
    if len(clusters) > 1:
        raise UsageError(
            f"the metadata logs are of clusters {', '.join(sorted(clusters))}: give the copies of"
            " one"
        )
    records = held(read_records(files), caches)
    history, problems = fold_best_replicas(records, clusters, caches) if clusters else (None, [])
    if history is None:
        reason = "; ".join(problems) or f"no {METADATA_TOPIC}-0 lies there"
        raise UsageError(
            f"the ISR of partitions is not known, {reason}: give the log directory of a controller"
            " or broker as --metadata"
        )
    rows = rows_of(history, METADATA_PARTITIONS)
    own = (*LOG, "topic_id")
    ends = rows.groupBy(*own, "leader_epoch").agg(
        F.max_by("leader", "from_offset").alias("leader"),
        F.max_by(F.array_union("isr", "elr"), "from_offset").alias("members"),
    )
    term = F.struct(F.col("leader_epoch").alias("epoch"), "leader", "members")
    terms = ends.groupBy(*own).agg(F.sort_array(F.collect_list(term)).alias("terms"))
    last = rows.where("until_offset IS NULL").withColumnRenamed("replicas", "registered")
    elects_any = _elects_any(rows_of(history, METADATA_CONFIGS))
    states = last.join(terms, list(own), how="inner").withColumn("elects_any", elects_any)
    return states.select(*LOG, *STATE)


def _elects_any(configs: DataFrame) -> Column:
    """Return whether the metadata log has unclean elections enabled for column ``topic``."""
    is_set = (F.col("name") == _UNCLEAN) & F.col("until_offset").isNull()
    rows = configs.where(is_set & F.col("resource_type").isin("topic", "broker")).collect()
    own = {row["resource_name"]: row["value"] == "true" for row in rows if row[_TYPE] == "topic"}
    everywhere = any(row["value"] == "true" for row in rows if row[_TYPE] == "broker")
    named = [name for name, enabled in own.items() if enabled != everywhere]
    return F.col("topic").isin(named) != F.lit(everywhere)


def _brokers(spark: SparkSession, there: ListedCopies) -> DataFrame:
    """Return copy and broker_id, as meta.properties or else the copy's name says."""
    listed = there.listed.where(F.col("kind") == kinds.LOG_DIR)
    ids: dict[str, set[int]] = {}
    for row in there.logs.select("copy").distinct().collect():
        ids[row["copy"]] = set()
    for row in listed.select("copy", "meta.node_id").distinct().collect():
        if row["node_id"] is not None:
            ids.setdefault(row["copy"], set()).add(row["node_id"])
    for name, numbers in ids.items():
        if not numbers and name.isascii() and name.isdigit():
            numbers.add(int(name))
        if len(numbers) != 1:
            said = " and ".join(map(str, sorted(numbers))) or "nothing"
            raise UsageError(
                f"copy {name}: meta.properties say {said} of its node id: each copy is of one"
                " broker; where that file is missing, name the copy by the id, as in --copy"
                " 1=/data/logs"
            )
    rows = sorted((name, next(iter(numbers))) for name, numbers in ids.items())
    numbers_of = [broker for _, broker in rows]
    for name, broker in rows:
        if numbers_of.count(broker) > 1:
            raise UsageError(f"copy {name} is of broker {broker}, as another one is: leave one")
    return spark.createDataFrame(rows, "copy string, broker_id int")
