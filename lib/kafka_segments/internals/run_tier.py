"""Tiered storage: compare what the cluster announced with the objects and the local logs."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError
from kafka_segments.generated.records import REMOTE_LOG_TOPIC
from kafka_segments.internals.decide.lineage import local_logs, with_lineage
from kafka_segments.internals.decide.object_facts import NAMES
from kafka_segments.internals.decide.tier import (
    decide_findings,
    fold_states,
    hold_against_objects,
    not_copied,
    records_that_count,
    tiered_topics,
)
from kafka_segments.internals.decide.tier_objects import with_topic_ids
from kafka_segments.internals.rebuilt_tier import rebuilt_lines
from kafka_segments.internals.tasks_tier import list_objects
from kafka_segments.sources import kinds
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.few_rows import expect_many_rows
from kafka_segments.spark.held import held
from kafka_segments.spark.local_rows import local_rows
from kafka_segments.spark.packing import Load
from kafka_segments.spark.row_stream import stream_rows
from kafka_segments.storage.durable_files import durable_file
from kafka_segments.tables import catalog
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.statements import sql_text

_OF_PARTITION = ["cluster", "topic", "partition"]


@dataclass(frozen=True)
class TierOptions:
    """What is compared, and how.

    Attributes:
        warehouse: the tables, an absolute URI.
        sources: folders of the tier, absolute URIs; empty: its objects are not looked at.
        check: how far objects are read: NAMES, MANIFESTS or HEADERS.
        now_ms: the run's clock, in ms since 1970.
        grace_ms: a copy or deletion that began less than so long ago may still be under way.
        topics: only these; empty: all.
        cluster: only this cluster's; None: the only one.
        follow_links: symbolic links below the sources are followed.
        is_dry: the table is not written.
    """

    warehouse: str
    sources: tuple[str, ...]
    check: str
    now_ms: int
    grace_ms: int
    topics: tuple[str, ...] = ()
    cluster: str | None = None
    follow_links: bool = False
    is_dry: bool = False


class Tier(NamedTuple):
    """What was found.

    Attributes:
        segments: the columns of ``remote_segments``.
        not_copied: the columns of ``not_copied``; None: the tables have no local logs.
        objects: the columns of ``list_objects``, of segments that no record claims.
        unseen: how many folders or links were not looked into.
    """

    segments: DataFrame
    not_copied: DataFrame | None
    objects: DataFrame
    unseen: int


def run_tier(
    spark: SparkSession, options: TierOptions, caches: ExitStack, *, needs_records: bool = True
) -> Tier:
    """Decide for each remote segment what is wrong with it; write ``remote_segments``.

    Raises:
        UsageError: there are no records of remote segments though ``needs_records``, or there are
            records of several clusters and none is chosen.
    """
    tables = Warehouse(spark, options.warehouse)
    records = _records(tables, options, needs_records=needs_records)
    cluster = _cluster(records, options)
    claimed = held(_claimed(records, options), caches)
    objects, unseen = _objects(spark, options, caches)
    local = _local_logs(tables)
    decide = decide_findings(
        now_ms=options.now_ms, grace_ms=options.grace_ms, is_listed=bool(options.sources)
    )
    checked = (
        claimed.transform(hold_against_objects(objects, cluster=cluster))
        .transform(with_lineage(local))
        .transform(decide)
        .withColumn("checked_ms", F.lit(options.now_ms).cast("long"))
    )
    rows = held(checked.select(*catalog.REMOTE_SEGMENTS.schema.fieldNames()), caches)
    if not options.is_dry:
        tables.create(catalog.REMOTE_SEGMENTS)
        of_run = f"cluster = {sql_text(cluster)}"
        if options.topics:
            of_run += f" AND topic IN ({', '.join(map(sql_text, options.topics))})"
        tables.fill(catalog.REMOTE_SEGMENTS, rows, where=of_run)
    unclaimed = objects.join(claimed.select("segment_id"), ["segment_id"], how="left_anti")
    gaps = None
    if local is not None:
        ours = local.where(F.col("cluster") == cluster)
        if options.topics:
            ours = ours.where(F.col("topic").isin(*options.topics))
        gaps = rows.transform(not_copied(ours, tiered=_tiered(tables)))
    return Tier(rows, gaps, unclaimed, unseen)


def known_gaps(tier: Tier) -> DataFrame:
    """Return the ranges of offsets of local logs that no copy has.

    Raises:
        UsageError: the tables have no local logs.
    """
    if tier.not_copied is None:
        raise UsageError(
            "the tables have no local logs: run `kafka-segments build` on the log directories of"
            " the brokers"
        )
    return tier.not_copied


def write_rebuilt(segments: DataFrame, target: Path, *, partitions: int) -> None:
    """Write the records that announce segments, a line each; the file appears whole."""
    rows = (row.asDict(recursive=True) for row in stream_rows(segments))
    with durable_file(target, size_bytes=None) as file:
        for line in rebuilt_lines(rows, partitions=partitions):
            file.write(f"{line}\n".encode())


def partitions_of_topic(spark: SparkSession, warehouse: str) -> int:
    """Return how many partitions ``__remote_log_metadata`` has, by the metadata.

    Raises:
        UsageError: the tables do not say it.
    """
    tables = Warehouse(spark, warehouse)
    if tables.version(catalog.METADATA_PARTITIONS) is not None:
        held = tables.read(catalog.METADATA_PARTITIONS).where("until_offset IS NULL")
        partitions = held.where(F.col("topic") == REMOTE_LOG_TOPIC).count()
        if partitions:
            return partitions
    raise UsageError(
        f"{warehouse} does not say how many partitions {REMOTE_LOG_TOPIC} has: give"
        " --metadata-partitions (remote.log.metadata.topic.num.partitions, 50 by default)"
    )


def _records(tables: Warehouse, options: TierOptions, *, needs_records: bool) -> DataFrame:
    if not needs_records and tables.version(catalog.INTERNAL_RECORDS) is None:
        records = local_rows(tables.spark, [], catalog.INTERNAL_RECORDS.schema)
    else:
        records = tables.read(catalog.INTERNAL_RECORDS)
    records = records.where(F.col("topic") == REMOTE_LOG_TOPIC)
    if options.cluster is not None:
        records = records.where(F.col("cluster") == options.cluster)
    if needs_records and records.isEmpty():
        raise UsageError(
            f"{options.warehouse} has no records of {REMOTE_LOG_TOPIC}: run `kafka-segments"
            " internals --source` on the log directories of the brokers that have it; if they are"
            " lost, --rebuild makes them of the objects"
        )
    return records


def _claimed(records: DataFrame, options: TierOptions) -> DataFrame:
    claimed = records.transform(records_that_count).transform(fold_states)
    return claimed.where(F.col("topic").isin(*options.topics)) if options.topics else claimed


def _cluster(records: DataFrame, options: TierOptions) -> str:
    """Return the cluster whose segments are meant; empty: no records name one."""
    if options.cluster is not None:
        return options.cluster
    clusters = [row["cluster"] for row in records.select("cluster").distinct().take(2)]
    if len(clusters) > 1:
        raise UsageError("the tables have records of several clusters: choose one with --cluster")
    return clusters[0] if clusters else ""


def _objects(spark: SparkSession, options: TierOptions, caches: ExitStack) -> tuple[DataFrame, int]:
    listed, loads = list_sources(spark, options.sources, caches, follow_links=options.follow_links)
    if not Load(segments=sum(load.segments for load in loads.values())).is_little:
        expect_many_rows(spark)
    folders = listed.where(F.col("kind") == kinds.LOG)
    if options.topics:
        folders = folders.where(F.col("topic").isin(*options.topics))
    check = options.check if options.sources else NAMES
    objects = list_objects(folders, check=check, follow_links=options.follow_links)
    tables = Warehouse(spark, options.warehouse)
    if tables.version(catalog.METADATA_TOPICS) is not None:
        topics = tables.read(catalog.METADATA_TOPICS).where("until_offset IS NULL")
        objects = objects.transform(with_topic_ids(topics))
    return held(objects, caches), sum(loads.get(kind, Load()).segments for kind in kinds.UNSEEN)


def _local_logs(tables: Warehouse) -> DataFrame | None:
    """Return the columns of ``local_logs``; None: no build has written its tables."""
    if tables.version(catalog.SEGMENTS) is None or tables.version(catalog.LOGS) is None:
        return None
    segments = tables.read(catalog.SEGMENTS).where(F.col("vanished_at").isNull())
    return segments.transform(local_logs(tables.read(catalog.LOGS), _leaders(tables)))


def _leaders(tables: Warehouse) -> DataFrame:
    """Return the leader of each partition, as the metadata has it last."""
    if tables.version(catalog.METADATA_PARTITIONS) is None:
        columns = "cluster string, topic string, partition int, leader int"
        return tables.spark.createDataFrame([], columns)
    held = tables.read(catalog.METADATA_PARTITIONS).where("until_offset IS NULL")
    return held.select(*_OF_PARTITION, "leader")


def _tiered(tables: Warehouse) -> DataFrame | None:
    """Return the topics that are configured to be copied; None: no metadata says it."""
    if tables.version(catalog.METADATA_CONFIGS) is None:
        return None
    configs = tables.read(catalog.METADATA_CONFIGS).where("until_offset IS NULL")
    return configs.transform(tiered_topics)
