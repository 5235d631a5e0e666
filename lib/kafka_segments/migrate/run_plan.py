"""Plan a migration: look at every segment, say what will be done and why, write the plan."""

import json
import logging
import re
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import SourceError, UsageError
from kafka_segments.migrate.decide.plan import decide_migration, with_whole_logs
from kafka_segments.migrate.planned_segment import MigrationRules
from kafka_segments.migrate.tasks import survey_segments
from kafka_segments.sources import kinds
from kafka_segments.sources.broker_identity import file_path, has_segment_id, with_broker
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.packing import Load, count_tasks, pack_segments
from kafka_segments.storage.uris import join_uri
from kafka_segments.tables.catalog import MIGRATION_PLANS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.wire.names import FolderState

_LOG = logging.getLogger(__name__)
_PLAN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_LOG_KEY = ["log_dir", "topic", "partition"]


@dataclass(frozen=True)
class MigrationOptions:
    """Options of a plan; sources are absolute paths, ``now_ms`` is the run's clock.

    ``topic_ids``: the ids of topics, for logs that have none. ``stage_dir`` None: each log
    directory's own name with ``.migration`` behind it.

    Raises:
        UsageError: a source on no local file system, an id that cannot name a folder.
    """

    sources: tuple[str, ...]
    warehouse: str
    rules: MigrationRules
    now_ms: int
    plan_id: str | None = None
    stage_dir: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None
    broker_id: int | None = None

    def __post_init__(self) -> None:
        if self.plan_id is not None and not _PLAN_ID.fullmatch(self.plan_id):
            raise UsageError(f"--plan {self.plan_id}: letters, digits, . _ - expected")
        for source in self.sources:
            if "://" in source:
                raise UsageError(f"{source}: a migration moves folders of a local file system")


def plan_migration(
    spark: SparkSession, options: MigrationOptions, caches: ExitStack, *, dry_run: bool
) -> tuple[str, DataFrame]:
    """Write a plan into table ``migration_plans``; gives its id and rows.

    A plan whose id is there already is given as it is.

    Raises:
        SourceError: a source that cannot be listed.
        UsageError: staged folders would lie in a log directory.
    """
    tables = Warehouse(spark, options.warehouse)
    if options.plan_id is not None and tables.version(MIGRATION_PLANS) is not None:
        tables.create(MIGRATION_PLANS)
        known = tables.read(MIGRATION_PLANS).where(F.col("plan_id") == options.plan_id)
        if not known.isEmpty():
            return options.plan_id, known
    plan_id = options.plan_id or uuid.uuid4().hex[:12]
    planned = _planned(spark, options, plan_id, caches).persist()
    caches.callback(planned.unpersist)
    if not dry_run:
        tables.create(MIGRATION_PLANS)
        tables.append(MIGRATION_PLANS, planned)
    return plan_id, planned


def _planned(
    spark: SparkSession, options: MigrationOptions, plan_id: str, caches: ExitStack
) -> DataFrame:
    listed, loads = list_sources(spark, options.sources, caches)
    if not loads.keys().isdisjoint(kinds.UNSEEN):
        _name_unseen(listed)
    load = loads.get(kinds.SEGMENT, Load())
    tasks = count_tasks(load, cores=spark.sparkContext.defaultParallelism)
    identify = with_broker(listed, cluster=options.cluster, broker_id=options.broker_id)
    segments = _with_topic_ids(_with_log_dirs(listed), listed, options).transform(identify)
    _check_stage_dir(segments, options)
    surveyed = (
        segments.withColumn("path", file_path())
        .transform(pack_segments(load, tasks=tasks))
        .transform(survey_segments(options.rules))
    )
    is_moved = F.col("folder_state") != FolderState.LIVE.value
    moved = F.concat(
        F.lit("its folder is marked -"), "folder_state", F.lit(": finish that move first")
    )
    other_id = F.concat(
        F.lit("its partition.metadata has topic id "),
        "own_topic_id",
        F.lit(", the topic's is "),
        "given_topic_id",
    )
    is_other_id = F.col("own_topic_id") != F.col("given_topic_id")
    tiered = F.lit("an object of tiered storage: migrate the brokers' log directories")
    problem = F.coalesce(
        F.when(has_segment_id(), tiered),
        F.when(is_moved, moved),
        F.when(is_other_id, other_id),
        "problem",
    )
    return (
        surveyed.withColumn("problem", problem)
        .transform(decide_migration)
        .transform(with_whole_logs)
        .withColumn("plan_id", F.lit(plan_id))
        .withColumn("root", _root(options, plan_id))
        .withColumn("rules", F.lit(json.dumps(options.rules.described())))
        .withColumn("planned_at", F.timestamp_millis(F.lit(options.now_ms)))
        .select(*MIGRATION_PLANS.schema.fieldNames())
    )


def _name_unseen(listed: DataFrame) -> None:
    """Name the folders that could not be listed, and links; refuse a source that could not."""
    for row in listed.where(F.col("kind").isin(*kinds.UNSEEN)).toLocalIterator():
        path = join_uri(row["source"], row["relative_path"], row["name"])
        if row["kind"] == kinds.NOT_FOLLOWED:
            _LOG.warning("%s is not in the plan, it is %s", path, row["reason"].partition(";")[0])
            continue
        if row["relative_path"] == "":
            raise SourceError(row["source"], row["reason"])
        _LOG.warning("%s is not in the plan, it cannot be listed: %s", path, row["reason"])


def _with_log_dirs(listed: DataFrame) -> DataFrame:
    """Give the segments with their log's start and whether its broker was stopped cleanly."""
    log_dirs = listed.where(F.col("kind") == kinds.LOG_DIR)
    is_clean = F.col("meta.was_clean_shutdown")
    starts = log_dirs.select("log_dir", F.inline("offsets"))
    return (
        listed.where(F.col("kind") == kinds.SEGMENT)
        .join(
            F.broadcast(log_dirs.select("log_dir", is_clean.alias("was_clean_shutdown"))),
            "log_dir",
            how="left",
        )
        .join(F.broadcast(starts.select(*_LOG_KEY, "log_start_offset")), _LOG_KEY, how="left")
        .withColumn("was_clean_shutdown", F.coalesce("was_clean_shutdown", F.lit(False)))
        .withColumn("log_start_offset", F.coalesce("log_start_offset", F.lit(0)))
        .drop("reason")
    )


def _with_topic_ids(segments: DataFrame, listed: DataFrame, options: MigrationOptions) -> DataFrame:
    """Add the topic ids that a log has, that its topic is said to have, and that it gets."""
    own = listed.where(F.col("kind") == kinds.LOG).select(
        "source", "relative_path", F.col("topic_id").alias("own_topic_id")
    )
    given = segments.sparkSession.createDataFrame(
        list(options.topic_ids.items()), "topic string, given_topic_id string"
    )
    return (
        segments.drop("topic_id")
        .join(own, ["source", "relative_path"], how="left")
        .join(F.broadcast(given), "topic", how="left")
        .withColumn("topic_id", F.when(F.col("own_topic_id").isNull(), F.col("given_topic_id")))
    )


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


def _root(options: MigrationOptions, plan_id: str) -> Column:
    if options.stage_dir is None:
        return F.concat("log_dir", F.lit(f".migration/{plan_id}"))
    return F.concat(F.lit(f"{options.stage_dir}/{plan_id}"), "log_dir")
