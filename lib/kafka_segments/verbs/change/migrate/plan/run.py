"""Plan a migration: look at every segment, say what will be done and why, write the plan."""

import logging
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructType

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.cluster_names import cluster_in_words
from kafka_segments.engine.derived.metadata_topics import MetadataTopics
from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import local_rows, stream_rows
from kafka_segments.engine.frames.packing import TellLoad, packed, tell_nobody
from kafka_segments.engine.limits import Load
from kafka_segments.engine.sources.broker_identity import file_path, with_broker
from kafka_segments.engine.sources.list import list_sources
from kafka_segments.engine.tables.catalog import MIGRATION_PLANS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.table_columns import columns_of
from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.change.migrate.decide.assignment import with_assignment
from kafka_segments.verbs.change.migrate.decide.listing import (
    segments_of_listing,
    staged_root,
    with_listing_problems,
    with_rules,
    with_topic_ids,
)
from kafka_segments.verbs.change.migrate.decide.plan import decide_migration, with_whole_logs
from kafka_segments.verbs.change.migrate.plan.tasks import survey_segments
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules

_LOG = logging.getLogger(__name__)
_OF_TOPIC = ("index_interval_bytes", "segment_index_bytes", "max_message_bytes")
_RULES = (
    StructType()
    .add("cluster", StringType())
    .add("topic", StringType())
    .add("broker_id", IntegerType())
    .add("rules", StringType())
)
_PLAN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True)
class MigrationOptions:
    """Options of a plan; sources are absolute paths, ``now_ms`` is the run's clock.

    Attributes:
        rules: hold for all topics. A topic's own settings in ``configs`` come first, unless the
            user gave a setting for all.
        topic_ids: ids of topics, for logs without one, whatever their cluster; None: those of
            ``metadata``.
        metadata: topic ids, and which brokers have replicas, of one cluster each.
        stage_dir: where staged folders go; None: the name of each log directory with
            ``.migration`` behind it.

    Raises:
        UsageError: a source lies on no local disk, or the plan's id cannot name a folder.
    """

    sources: tuple[str, ...]
    rules: MigrationRules
    now_ms: int
    plan_id: str | None = None
    stage_dir: str | None = None
    topic_ids: Mapping[str, str] | None = None
    metadata: Sequence[MetadataTopics] = ()
    configs: TopicConfigs | None = None
    cluster: str | None = None
    broker_id: int | None = None

    def __post_init__(self) -> None:
        if self.plan_id is not None and not _PLAN_ID.fullmatch(self.plan_id):
            raise UsageError(f"--plan {self.plan_id}: letters, digits, . _ - expected")
        for source in self.sources:
            if not store_of(source).is_local:
                raise UsageError(f"{source}: a migration moves folders of a local file system")


def run_plan(
    warehouse: Warehouse,
    options: MigrationOptions,
    caches: ExitStack,
    tell: TellLoad = tell_nobody,
    *,
    dry_run: bool,
) -> tuple[str, DataFrame]:
    """Write a plan into table ``migration_plans``; return its id and rows.

    If the plan exists already it is returned as it is.

    Raises:
        SourceError: a source cannot be listed.
        UsageError: staged folders would lie in a log directory.
    """
    if options.plan_id is not None and warehouse.version(MIGRATION_PLANS) is not None:
        warehouse.create(MIGRATION_PLANS)
        known = warehouse.read(MIGRATION_PLANS).where(F.col("plan_id") == options.plan_id)
        if not known.isEmpty():
            return options.plan_id, known
    plan_id = options.plan_id or uuid.uuid4().hex[:12]
    planned = computed_once(_planned(warehouse, options, plan_id, caches, tell), caches)
    if not dry_run:
        warehouse.create(MIGRATION_PLANS)
        warehouse.append(MIGRATION_PLANS, planned)
    return plan_id, planned


def _planned(
    warehouse: Warehouse,
    options: MigrationOptions,
    plan_id: str,
    caches: ExitStack,
    tell: TellLoad,
) -> DataFrame:
    spark = warehouse.spark
    listed, loads = list_sources(spark, options.sources, caches, tell=tell_not_known)
    if not loads.keys().isdisjoint(kinds.UNSEEN):
        _name_unseen(listed)
    load = loads.get(kinds.SEGMENT, Load())
    identify = with_broker(listed, cluster=options.cluster, broker_id=options.broker_id)
    segments = listed.transform(segments_of_listing).transform(identify)
    segments = segments.transform(with_topic_ids(*_given_ids(spark, options)))
    _check_stage_dir(segments, options)
    topics = segments.select("cluster", "topic", "broker_id").distinct().collect()
    _name_other_clusters(warehouse.root, {row["cluster"] for row in topics}, options)
    surveyed = (
        segments.withColumn("path", file_path())
        .transform(with_rules(_rules(spark, topics, options), of_others=options.rules.text))
        .transform(packed(load, tell))
        .transform(survey_segments)
    )
    return (
        surveyed.transform(with_listing_problems)
        .transform(decide_migration)
        .transform(with_assignment(_assigned(spark, options)))
        .transform(with_whole_logs)
        .withColumn("plan_id", F.lit(plan_id))
        .withColumn("root", staged_root(options.stage_dir, plan_id))
        .withColumn("planned_at", F.timestamp_millis(F.lit(options.now_ms)))
        .transform(columns_of(MIGRATION_PLANS))
    )


def _given_ids(spark: SparkSession, options: MigrationOptions) -> tuple[DataFrame, list[str]]:
    """Return topic ids as rows, and the columns that say whose they are."""
    if options.topic_ids is not None:
        columns = "topic string, given_topic_id string"
        return spark.createDataFrame(list(options.topic_ids.items()), columns), ["topic"]
    rows = [(held.cluster, *item) for held in options.metadata for item in held.ids.items()]
    columns = "cluster string, topic string, given_topic_id string"
    return spark.createDataFrame(rows, columns), ["cluster", "topic"]


def _assigned(spark: SparkSession, options: MigrationOptions) -> DataFrame:
    rows = [
        (held.cluster, *partition, list(brokers))
        for held in options.metadata
        for partition, brokers in held.replicas.items()
    ]
    return spark.createDataFrame(
        rows, "cluster string, topic string, partition int, assigned_replicas array<int>"
    )


def _rules(spark: SparkSession, topics: Sequence[Row], options: MigrationOptions) -> DataFrame:
    """Return the rules of topics on brokers with settings of their own, as rows of ``_RULES``."""

    def of_topic(cluster: str, topic: str, broker_id: int) -> MigrationRules:
        if options.configs is None:
            return options.rules
        configs = options.configs.of(cluster)
        settings = configs.resolve(topic, broker_id)
        own = {name: settings[name].value for name in _OF_TOPIC if name not in configs.given}
        return replace(options.rules, **own)

    found = [(whose, of_topic(*whose)) for whose in topics]
    others = [(*whose, rules.text) for whose, rules in found if rules != options.rules]
    return local_rows(spark, others, _RULES)


def _name_other_clusters(warehouse: str, found: Collection[str], options: MigrationOptions) -> None:
    """Warn of log directories of clusters of which there is no metadata, if there is any at all."""
    known = sorted(held.cluster for held in options.metadata)
    for cluster in sorted({*found} - {*known} if known else ()):
        _LOG.warning(
            "cluster %s: %s has no metadata of it, but of %s: settings, topic ids and replicas are"
            " not taken from there; --cluster names the cluster that the log directories go to",
            cluster_in_words(cluster),
            warehouse,
            ", ".join(map(cluster_in_words, known)),
        )


def _name_unseen(listed: DataFrame) -> None:
    """Warn of links and of folders that cannot be listed; refuse a source that cannot be listed."""
    for row in stream_rows(listed.where(F.col("kind").isin(*kinds.UNSEEN))):
        path = join_uri(row["source"], row["relative_path"], row["name"])
        if row["kind"] == kinds.NOT_FOLLOWED:
            _LOG.warning("%s is not in the plan, it is %s", path, row["reason"].partition(";")[0])
            continue
        if row["relative_path"] == "":
            raise SourceError(row["source"], row["reason"])
        _LOG.warning("%s is not in the plan, it cannot be listed: %s", path, row["reason"])


def _check_stage_dir(segments: DataFrame, options: MigrationOptions) -> None:
    if options.stage_dir is None:
        return
    is_inside = F.lit(f"{options.stage_dir}/").startswith(F.concat("log_dir", F.lit("/")))
    inside = segments.where(is_inside).first()
    if inside is not None:
        raise UsageError(
            f"--stage-dir {options.stage_dir} lies in the log directory {inside['log_dir']}: a"
            " broker does not start with other folders there"
        )
