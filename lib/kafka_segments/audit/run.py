"""Audit: hold the index files found beside segments against the rebuilt ones."""

import uuid
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kafka_segments.audit.decide.breaks import decide_breaks
from kafka_segments.audit.tasks import AuditScope, audit_segments
from kafka_segments.audit.tasks_folders import audit_folders
from kafka_segments.audit.tasks_transactions import fold_transactions
from kafka_segments.broker_rules.versions import Version
from kafka_segments.errors import SourceError, UsageError
from kafka_segments.index.recovery import RecoveryOptions
from kafka_segments.sources import kinds
from kafka_segments.sources.broker_identity import with_broker
from kafka_segments.sources.list import list_sources
from kafka_segments.spark.packing import Load, count_tasks, pack_segments
from kafka_segments.tables.catalog import INDEX_AUDITS
from kafka_segments.tables.delta import Warehouse
from kafka_segments.tables.schemas import schema

_SCHEMA = "index_audits.v1"
_LOG = ("log_dir", "topic", "partition")
_IN_A_LOG = "^[0-9]{20}[.](log|index|timeindex|txnindex|snapshot)$|^leader-epoch-checkpoint$"


@dataclass(frozen=True)
class AuditOptions:
    """Options of an audit. URIs are absolute; ``now_ms`` is the run's clock.

    Raises:
        UsageError: no source.
    """

    sources: tuple[str, ...]
    recovery: RecoveryOptions
    version: Version
    now_ms: int
    warehouse: str | None = None
    cluster: str | None = None
    broker_id: int | None = None
    follow_links: bool = False

    def __post_init__(self) -> None:
        if not self.sources:
            raise UsageError("no --source given")


def run_audit(
    spark: SparkSession, options: AuditOptions, caches: ExitStack, *, dry_run: bool = False
) -> DataFrame:
    """Judge every index file under the sources; gives rows of ``index_audits``.

    1. The sources are listed; segments are packed into tasks by bytes and recovered there.
    2. What lies beside them is judged in the same task, other files folder by folder, and
       transaction indexes log by log; offset ranges of tiered segments are held side by side.
    3. The rows, cached until ``caches`` closes, go to table ``index_audits`` of the warehouse.

    Raises:
        SourceError: a source that cannot be listed.
    """
    listed, loads = list_sources(spark, options.sources, caches, follow_links=options.follow_links)
    if kinds.UNLISTED in loads:
        _refuse_missing_sources(listed)
    identify = with_broker(listed, cluster=options.cluster, broker_id=options.broker_id)
    scope = AuditScope(options.recovery, options.version, options.follow_links)
    load = loads.get(kinds.SEGMENT, Load())
    tasks = count_tasks(load, cores=spark.sparkContext.defaultParallelism)
    segments = _with_recovery(listed.transform(identify)).transform(
        pack_segments(load, tasks=tasks)
    )
    folders = _folders(listed).transform(identify)
    judged = segments.transform(audit_segments(scope)).persist()
    caches.callback(judged.unpersist)
    rows = (
        judged.where("unfolded IS NULL")
        .unionByName(judged.transform(fold_transactions(options.version)))
        .unionByName(folders.transform(audit_folders(scope)))
        .unionByName(judged.transform(decide_breaks))
        .withColumn("kafka_version", F.lit(".".join(map(str, options.version))))
        .withColumn("run_id", F.lit(uuid.uuid4().hex))
        .withColumn("decided_at", F.timestamp_millis(F.lit(options.now_ms)))
        .select(*schema(_SCHEMA).fieldNames())
        .persist()
    )
    caches.callback(rows.unpersist)
    if options.warehouse is not None and not dry_run:
        warehouse = Warehouse(spark, options.warehouse)
        warehouse.create(INDEX_AUDITS)
        warehouse.append(INDEX_AUDITS, rows)
    return rows


def _folders(listed: DataFrame) -> DataFrame:
    """Give the logs' folders; ``reason``: why one is not looked into, as links that are left."""
    is_link = F.col("kind") == kinds.NOT_FOLLOWED
    path = F.concat_ws("/", F.nullif("relative_path", F.lit("")), "name")
    return (
        listed.where(
            F.col("kind").isin(kinds.LOG, kinds.UNLISTED)
            | (is_link & ~F.col("name").rlike(_IN_A_LOG))
        )
        .withColumn("relative_path", F.when(is_link, path).otherwise(F.col("relative_path")))
        .withColumn("reason", F.when(F.col("kind") != kinds.LOG, F.col("reason")))
    )


def _refuse_missing_sources(listed: DataFrame) -> None:
    missing = listed.where(
        (F.col("kind") == kinds.UNLISTED) & (F.col("relative_path") == "")
    ).first()
    if missing is not None:
        raise SourceError(missing["source"], missing["reason"])


def _with_recovery(listed: DataFrame) -> DataFrame:
    """Give the segments with ``is_clean`` and ``is_recovered``.

    1. Clean: the log directory has the marker, or no file of a broker's at all, as in a backup.
    2. Else a start recovers the segment that holds the recovery point, and all behind it.
    """
    log_dirs = listed.where(F.col("kind") == kinds.LOG_DIR)
    states = log_dirs.select("log_dir", _is_clean().alias("is_clean"))
    points = log_dirs.select("log_dir", F.inline("offsets")).select(*_LOG, "recovery_point")
    following = Window.partitionBy("source", "relative_path").orderBy("base_offset")
    next_base = F.min("base_offset").over(following.rowsBetween(1, 1))
    recovery_point = F.coalesce(F.col("recovery_point"), F.lit(0))
    is_behind = F.col("_next_base").isNull() | (F.col("_next_base") > recovery_point)
    return (
        listed.where(F.col("kind") == kinds.SEGMENT)
        .join(F.broadcast(states), "log_dir", how="left")
        .join(F.broadcast(points), list(_LOG), how="left")
        .withColumn("is_clean", F.coalesce("is_clean", F.lit(True)))
        .withColumn("_next_base", next_base)
        .withColumn("is_recovered", ~F.col("is_clean") & is_behind)
    )


def _is_clean() -> Column:
    is_no_brokers = (
        F.col("meta.version").isNull()
        & F.col("meta.cluster_id").isNull()
        & F.col("meta.node_id").isNull()
        & (F.size("offsets") == 0)
        & ~F.col("meta.has_lock_file")
    )
    return F.col("meta.was_clean_shutdown") | is_no_brokers
