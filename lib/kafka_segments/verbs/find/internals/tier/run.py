"""Tiered storage: compare what the cluster announced with the objects and the local logs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_metadata_problems, tell_not_known
from kafka_segments.engine.derived.known_replicas import known_replicas, telling_left_over
from kafka_segments.engine.derived.tier_fronts import tiered_topics
from kafka_segments.engine.frames.engines import computed_once, expect
from kafka_segments.engine.frames.local_rows import local_rows, stream_rows
from kafka_segments.engine.limits import Load, Work
from kafka_segments.engine.sources.broker_identity import lies_below
from kafka_segments.engine.sources.list import list_sources
from kafka_segments.engine.tables import catalog
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.missing import require_values
from kafka_segments.engine.tables.statements import sql_text
from kafka_segments.engine.tables.table_columns import columns_of
from kafka_segments.errors import UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.durable_files import durable_file, remove_older_temporaries
from kafka_segments.files.storage.links import links_into
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC
from kafka_segments.verbs.find.internals.tier.decide.lineage import (
    local_logs,
    with_lineage,
    without_lineage_in_doubt,
)
from kafka_segments.verbs.find.internals.tier.decide.not_copied import not_copied
from kafka_segments.verbs.find.internals.tier.decide.object_facts import NAMES
from kafka_segments.verbs.find.internals.tier.decide.objects import with_topic_ids
from kafka_segments.verbs.find.internals.tier.decide.tier import (
    decide_findings,
    fold_states,
    hold_against_objects,
    records_that_count,
)
from kafka_segments.verbs.find.internals.tier.rebuilt_tier import rebuilt_lines
from kafka_segments.verbs.find.internals.tier.run_unread import (
    lines_of_doubts,
    local_doubts,
    unread_records,
)
from kafka_segments.verbs.find.internals.tier.tasks import list_objects
from kafka_segments.verbs.find.search.log_tables import LogChoice

_OF_PARTITION = ["cluster", "topic", "partition"]


@dataclass(frozen=True)
class TierOptions:
    """What is compared, and how.

    Attributes:
        sources: folders of the tier, absolute URIs; empty: its objects are not looked at.
        check: how far objects are read: NAMES, MANIFESTS or HEADERS.
        now_ms: the run's clock, in ms since 1970.
        grace_ms: a copy or deletion that began less than so long ago may still be under way.
        topics: only these; empty: all.
        cluster: only this cluster's; None: the only one.
        follow_links: symbolic links are followed to what lies below the sources.
        is_dry: the table is not written.
    """

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
    """

    segments: DataFrame
    not_copied: DataFrame | None
    objects: DataFrame


def run_tier(
    warehouse: Warehouse, options: TierOptions, caches: ExitStack, *, needs_records: bool = True
) -> Tier:
    """Decide for each remote segment what is wrong with it; write ``remote_segments``.

    Raises:
        UsageError: there are no records of remote segments though ``needs_records``, there are
            records of several clusters and none is chosen, or nothing is known of a chosen topic.
    """
    records = _records(warehouse, options, needs_records=needs_records)
    cluster = _cluster(records, options)
    tell_metadata_problems(warehouse.root, cluster=cluster or None)
    counted = records.transform(records_that_count(known_replicas(warehouse)))
    claimed = computed_once(_only(options, counted.transform(fold_states)), caches)
    unread = unread_records(warehouse, records, cluster, caches)
    folders, unseen = _folders(warehouse.spark, options, caches)
    tiered, local = _tiered(warehouse), _local_logs(warehouse)
    doubtful: list[str] = []
    if local is not None and cluster:
        choice = LogChoice(topics=options.topics, cluster=cluster)
        doubts = computed_once(local_doubts(warehouse, claimed, tiered, choice, caches), caches)
        local = local.transform(without_lineage_in_doubt(doubts))
        doubtful = lines_of_doubts(doubts)
    named = counted, folders, *_topics_of(warehouse, cluster)
    _refuse_absent(warehouse.root, options.topics, named)
    objects = computed_once(_objects(warehouse, _only(options, folders), options), caches)
    bare = _bare(options, folders, objects)
    tell_not_known((*unread, *doubtful, *bare, *unseen))
    decide = decide_findings(
        now_ms=options.now_ms,
        grace_ms=options.grace_ms,
        is_listed=bool(options.sources),
        has_seen_all=not bare and not unseen,
        has_all_records=not unread,
    )
    checked = (
        claimed.transform(hold_against_objects(objects, cluster=cluster))
        .transform(with_lineage(local))
        .transform(decide)
        .withColumn("checked_ms", F.lit(options.now_ms).cast("long"))
    )
    rows = computed_once(checked.transform(columns_of(catalog.REMOTE_SEGMENTS)), caches)
    if not options.is_dry:
        warehouse.create(catalog.REMOTE_SEGMENTS)
        of_run = f"cluster = {sql_text(cluster)}"
        if options.topics:
            of_run += f" AND topic IN ({', '.join(map(sql_text, options.topics))})"
        warehouse.fill_changed(catalog.REMOTE_SEGMENTS, rows, where=of_run)
    unclaimed = objects.join(claimed.select("segment_id"), ["segment_id"], how="left_anti")
    gaps = None
    if local is not None:
        ours = _only(options, local.where(F.col("cluster") == cluster))
        gaps = rows.transform(not_copied(ours, tiered=tiered))
    return Tier(rows, gaps, unclaimed)


def offsets_not_copied(tier: Tier) -> DataFrame:
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
    remove_older_temporaries(target)


def partitions_of_topic(warehouse: Warehouse) -> int:
    """Return how many partitions ``__remote_log_metadata`` has, by the metadata.

    Raises:
        UsageError: the tables do not say it.
    """
    if warehouse.version(catalog.METADATA_PARTITIONS) is not None:
        held = warehouse.read(catalog.METADATA_PARTITIONS).where("until_offset IS NULL")
        partitions = held.where(F.col("topic") == REMOTE_LOG_TOPIC).count()
        if partitions:
            return partitions
    raise UsageError(
        f"{warehouse.root} does not say how many partitions {REMOTE_LOG_TOPIC} has: give"
        " --metadata-partitions (remote.log.metadata.topic.num.partitions, 50 by default)"
    )


def _records(tables: Warehouse, options: TierOptions, *, needs_records: bool) -> DataFrame:
    if not needs_records and tables.version(catalog.INTERNAL_RECORDS) is None:
        records = local_rows(tables.spark, [], catalog.INTERNAL_RECORDS.schema)
    else:
        records = tables.read(catalog.INTERNAL_RECORDS)
    records = records.where(F.col("topic") == REMOTE_LOG_TOPIC)
    if needs_records and records.isEmpty():
        raise UsageError(
            f"{tables.root} has no records of {REMOTE_LOG_TOPIC}: run `kafka-segments"
            " internals --source` on the log directories of the brokers that have it; if they are"
            " lost, --rebuild makes them of the objects"
        )
    if options.cluster is None:
        return records
    if needs_records:
        what = f"records of {REMOTE_LOG_TOPIC} of cluster"
        require_values(tables.root, what, (options.cluster,), records.select("cluster"))
    return records.where(F.col("cluster") == options.cluster)


def _only(options: TierOptions, rows: DataFrame) -> DataFrame:
    """Keep the rows of the topics that are asked for."""
    return rows.where(F.col("topic").isin(*options.topics)) if options.topics else rows


def _topics_of(tables: Warehouse, cluster: str) -> Iterator[DataFrame]:
    """Yield rows that name the topics of a cluster: its local logs, and its metadata."""
    for table in (catalog.SEGMENTS, catalog.METADATA_TOPICS):
        if tables.version(table) is not None:
            yield tables.read(table, ("cluster", "topic")).where(F.col("cluster") == cluster)


def _refuse_absent(warehouse: str, asked: Sequence[str], named: Sequence[DataFrame]) -> None:
    """Refuse topics that no row of ``named`` names."""
    if asked:
        topics = reduce(DataFrame.unionByName, (rows.select("topic") for rows in named))
        what = "remote segments or logs of topic"
        require_values(warehouse, what, asked, topics)


def _cluster(records: DataFrame, options: TierOptions) -> str:
    """Return the cluster whose segments are meant; empty: no records name one."""
    if options.cluster is not None:
        return options.cluster
    clusters = [row["cluster"] for row in records.select("cluster").distinct().take(2)]
    if len(clusters) > 1:
        raise UsageError("the tables have records of several clusters: choose one with --cluster")
    return clusters[0] if clusters else ""


def _bare(options: TierOptions, folders: DataFrame, objects: DataFrame) -> list[str]:
    """Return a line for each source that holds no object.

    ``folders``: of partitions, of all topics; ``objects``: of the topics that are asked for.
    """
    seen = folders.select(F.concat_ws("/", "source", "relative_path").alias("path"))
    found = seen if options.topics else objects.select("path")
    return [
        f"not known: {source} holds no object of a remote segment: is it the tier, and mounted?"
        for source in options.sources
        if found.where(lies_below(F.col("path"), (source,))).isEmpty()
    ]


def _folders(
    spark: SparkSession, options: TierOptions, caches: ExitStack
) -> tuple[DataFrame, list[str]]:
    """Return the folders of partitions in the tier, and a line if others were not looked into."""
    listed, loads = list_sources(spark, options.sources, caches, follow_links=options.follow_links)
    expect(spark, Work.LIST, Load(segments=sum(load.segments for load in loads.values())))
    unseen = sum(loads.get(kind, Load()).segments for kind in kinds.UNSEEN)
    line = f"{unseen} folders or links not looked into: what is there is not known"
    return listed.where(F.col("kind") == kinds.LOG), [line] if unseen else []


def _objects(tables: Warehouse, folders: DataFrame, options: TierOptions) -> DataFrame:
    check = options.check if options.sources else NAMES
    follow_into = links_into(options.sources, follow=options.follow_links)
    objects = list_objects(folders, check=check, follow_into=follow_into)
    if tables.version(catalog.METADATA_TOPICS) is None:
        return objects
    topics = tables.read(catalog.METADATA_TOPICS).where("until_offset IS NULL")
    return objects.transform(with_topic_ids(topics))


def _local_logs(tables: Warehouse) -> DataFrame | None:
    """Return the columns of ``local_logs``; None: no build has written its tables."""
    if tables.version(catalog.SEGMENTS) is None or tables.version(catalog.LOGS) is None:
        return None
    segments = tables.read(catalog.SEGMENTS).where(F.col("vanished_at").isNull())
    segments = segments.transform(telling_left_over(tables)).where("NOT is_left_over")
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
