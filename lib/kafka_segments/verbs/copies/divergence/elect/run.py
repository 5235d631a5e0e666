"""Advise on elections: read the copies and the metadata log, weigh each partition's replicas."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.replicas_at_hand import with_logs_at_hand
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.packing import TellLoad, tell_nobody
from kafka_segments.engine.tables.catalog import METADATA_CONFIGS, METADATA_PARTITIONS
from kafka_segments.errors import UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.copies.divergence.decide.frames import segments_of_copies
from kafka_segments.verbs.copies.divergence.elect.decide.partition_states import partition_states
from kafka_segments.verbs.copies.divergence.elect.decide.usable_copies import (
    LOG,
    STATE,
    broker_ids,
    with_use,
)
from kafka_segments.verbs.copies.divergence.elect.tasks import weigh_replicas
from kafka_segments.verbs.copies.divergence.options import CopyOptions
from kafka_segments.verbs.copies.divergence.policies.read import (
    MetadataHistory,
    read_history,
    with_history,
)
from kafka_segments.verbs.copies.divergence.policies.tasks import with_policy
from kafka_segments.verbs.copies.divergence.read_copies import (
    ListedCopies,
    list_copies,
    read_copies,
    refuse_doubles,
)
from kafka_segments.verbs.find.internals.files import Origin, find_files
from kafka_segments.verbs.find.internals.metadata.write import rows_of


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
    rows, named, history = _history(spark, tuple(metadata or copied), caches)
    states = rows_of(rows, METADATA_PARTITIONS).transform(
        partition_states(rows_of(rows, METADATA_CONFIGS))
    )
    policies = with_history(options.policies, history)
    there = list_copies(spark, options, caches, with_policy(policies, *history.clusters))
    judged = computed_once(
        there.logs.transform(with_use(states, _brokers(spark, there), history.clusters[0])), caches
    )
    used = judged.where("reason IS NULL")
    refuse_doubles(used)
    found = read_copies(spark, options, there, used, caches, tell)
    logs = used.select("cluster", "broker_id", *LOG, "topic_id")
    at_hand = named.transform(with_logs_at_hand(logs)).select(*LOG, "absent", "is_there")
    known = used.join(at_hand, list(LOG)).select("copy", *LOG, "broker_id", *STATE[1:], "absent")
    own = ["copy", *LOG]
    copies = found.copies.join(known, own, how="inner")
    copies = copies.join(segments_of_copies(found.segments), own, how="left")
    rows = computed_once(copies.transform(weigh_replicas(found.parts)), caches)
    return Elections(
        rows,
        rows.select(*LOG).distinct().count(),
        computed_once(at_hand.where(~F.col("is_there")).select(*LOG), caches),
        judged.where("reason IS NOT NULL").select("copy", *LOG, "reason"),
    )


def _history(
    spark: SparkSession, sources: tuple[str, ...], caches: ExitStack
) -> tuple[DataFrame, DataFrame, MetadataHistory]:
    """Return the rows of the metadata log of one cluster, what it names last, and all of it."""
    files = find_files(spark, Origin(sources, topics=(METADATA_TOPIC,)), caches).files
    history = read_history(files, caches)
    if len(history.clusters) > 1:
        raise UsageError(
            f"the metadata logs are of clusters {', '.join(history.clusters)}: give the copies of"
            " one"
        )
    problems = [one.problem for one in history.problems]
    named = history.named
    if history.rows is None or named is None:
        reason = "; ".join(problems) or f"no {METADATA_TOPIC}-0 lies there"
        raise UsageError(
            f"the ISR of partitions is not known, {reason}: give the log directory of a controller"
            " or broker as --metadata"
        )
    tell_not_known(f"the metadata log: {problem}" for problem in problems)
    return history.rows, named, history


def _brokers(spark: SparkSession, there: ListedCopies) -> DataFrame:
    """Return copy and broker_id, see ``broker_ids``."""
    listed = there.listed.where(F.col("kind") == kinds.LOG_DIR)
    ids: dict[str, set[int]] = {}
    for row in there.logs.select("copy").distinct().collect():
        ids[row["copy"]] = set()
    for row in listed.select("copy", "meta.node_id").distinct().collect():
        if row["node_id"] is not None:
            ids.setdefault(row["copy"], set()).add(row["node_id"])
    return spark.createDataFrame(sorted(broker_ids(ids).items()), "copy string, broker_id int")
