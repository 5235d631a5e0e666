"""Read the metadata logs that lie among copies: what they tell of topics' cleanup policies."""

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.file_sums import with_file_facts
from kafka_segments.engine.derived.metadata_in_tables import MetadataProblem
from kafka_segments.engine.derived.replicas_at_hand import named_last
from kafka_segments.engine.frames.engines import computed_once, expect_files
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.limits import Work
from kafka_segments.engine.tables.catalog import (
    METADATA_CONFIGS,
    METADATA_PARTITIONS,
    METADATA_TOPICS,
)
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.names import METADATA_TOPIC, FolderState
from kafka_segments.verbs.copies.divergence.policies.cleanup import POLICIES, CleanupPolicies
from kafka_segments.verbs.find.internals.files import Origin, internal_files
from kafka_segments.verbs.find.internals.metadata.write import fold_best_replicas, rows_of
from kafka_segments.verbs.find.internals.tasks import read_records

OF_METADATA = Origin((), topics=(METADATA_TOPIC,))


class MetadataHistory(NamedTuple):
    """What the metadata logs at hand tell.

    Attributes:
        rows: see ``fold_best_replicas``; None: they tell nothing.
        clusters: those of which there is a log.
        problems: what the history lacks.
    """

    rows: DataFrame | None
    clusters: Sequence[str]
    problems: Sequence[MetadataProblem]

    @property
    def named(self) -> DataFrame | None:
        """Return rows of ``named_last``, a cluster without a name as null; None: there are none."""
        if self.rows is None:
            return None
        named = rows_of(self.rows, METADATA_PARTITIONS).transform(named_last)
        return named.withColumn("cluster", F.nullif("cluster", F.lit("")))

    def partitions(self, spark: SparkSession) -> DataFrame:
        """Return rows of ``metadata_partitions``; none where there are several clusters."""
        if self.rows is None or len(self.clusters) > 1:
            return local_rows(spark, [], METADATA_PARTITIONS.schema)
        return rows_of(self.rows, METADATA_PARTITIONS)

    @property
    def told_clusters(self) -> list[str]:
        """Return the clusters of which something is told."""
        untold = {one.cluster for one in self.problems if one.at_offset is None}
        return [cluster for cluster in self.clusters if cluster not in untold]


NO_HISTORY = MetadataHistory(None, (), ())


def read_history(files: DataFrame, caches: ExitStack) -> MetadataHistory:
    """Fold the best replica of each cluster's metadata log.

    The rows are cached until ``caches`` closes.

    Needs: rows of ``internal_files``, of metadata logs alone.
    """
    clusters = sorted(row["cluster"] for row in files.select("cluster").distinct().collect())
    if not clusters:
        return NO_HISTORY
    expect_files(files, Work.DECODE, by="size_bytes")
    records = computed_once(read_records(files), caches).transform(with_file_facts(files))
    rows, problems = fold_best_replicas(records, clusters, caches)
    return MetadataHistory(rows, clusters, problems)


def with_history(policies: CleanupPolicies, history: MetadataHistory) -> CleanupPolicies:
    """Return policies with what metadata logs at hand tell.

    Raises:
        UsageError: a policy that Kafka refuses.
    """
    if history.rows is None:
        return policies
    is_policy = F.col("name").isin(*POLICIES)
    topics = rows_of(history.rows, METADATA_TOPICS).where("until_offset IS NULL")
    configs = rows_of(history.rows, METADATA_CONFIGS).where(is_policy)
    found = (frame.collect() for frame in (topics, configs))
    rows = ([row.asDict() for row in frame] for frame in found)
    return policies.with_logs(history.told_clusters, *rows)


def history_at_hand(
    listed: DataFrame, caches: ExitStack, *, last: Collection[str] = ()
) -> MetadataHistory:
    """Return what the metadata logs among copies tell.

    What their history lacks is told on stderr, and the verb ends with findings.

    Needs: rows of ``decide.frames.with_copy``; ``last``: copies that count where no other has a
        metadata log, as they are older.
    """
    is_log = (F.col("kind") == kinds.LOG) & (F.col("folder_state") == FolderState.LIVE.value)
    logs = listed.where(is_log & (F.col("topic") == METADATA_TOPIC)).select("copy").distinct()
    copies = {row["copy"] for row in logs.collect()}
    if not copies:
        return NO_HISTORY
    first = sorted(copies - set(last)) or sorted(copies)
    of_copies = listed.where(F.col("copy").isin(*first))
    history = read_history(internal_files(of_copies, OF_METADATA, caches), caches)
    tell_not_known(f"{one}; cleanup policies are taken without it" for one in history.problems)
    return history
