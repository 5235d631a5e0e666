"""Audit: hold the index files found beside segments against the rebuilt ones."""

import uuid
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.topic_sizes import TopicSizes
from kafka_segments.engine.frames.driver_rows import is_surely_null
from kafka_segments.engine.frames.engines import computed_once, expect, in_one_task
from kafka_segments.engine.frames.packing import TellLoad, tasks_for, tell_nobody
from kafka_segments.engine.limits import Load, Work
from kafka_segments.engine.sources.broker_identity import with_broker
from kafka_segments.engine.sources.list import list_sources
from kafka_segments.engine.tables.catalog import INDEX_AUDITS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.run_columns import stamp_of
from kafka_segments.engine.tables.schemas import schema
from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.files.storage.links import links_into
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.judge.audit.decide.chosen_files import choose_folders, choose_segments
from kafka_segments.verbs.judge.audit.decide.tiered_breaks import decide_breaks
from kafka_segments.verbs.judge.audit.tasks import AuditScope, audit_segments
from kafka_segments.verbs.judge.audit.tasks_folders import audit_folders
from kafka_segments.verbs.judge.audit.tasks_transactions import fold_transactions

_SCHEMA = "index_audits.v1"


@dataclass(frozen=True)
class AuditOptions:
    """What is audited. URIs are absolute; ``now_ms`` is the run's clock.

    Attributes:
        sources: log directories, folders of several, or folders of partitions.
        recovery: the settings that the bytes of index files depend on.
        sizes: those of each topic; None: those of ``recovery`` hold for all.
        version: the release whose broker would start on these files.
        cluster: name of the cluster; None: as meta.properties says.
        broker_id: id of the broker; None: as meta.properties says.
        follow_links: symbolic links are followed to what lies below the sources.

    Raises:
        UsageError: no source.
    """

    sources: tuple[str, ...]
    recovery: RecoveryOptions
    version: Version
    now_ms: int
    cluster: str | None = None
    broker_id: int | None = None
    follow_links: bool = False
    sizes: TopicSizes | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise UsageError("no --source given")


def run_audit(
    spark: SparkSession,
    options: AuditOptions,
    caches: ExitStack,
    *,
    keep_in: Warehouse | None = None,
    tell: TellLoad = tell_nobody,
) -> DataFrame:
    """Judge every index file under the sources; return rows of ``index_audits``.

    1. The sources are listed. Segments are packed into tasks by bytes, and recovered there.
    2. The same task judges the files beside a segment. Other files are judged folder by folder,
       transaction indexes log by log. The offset ranges of tiered segments are compared.
    3. The rows go to table ``index_audits`` of ``keep_in``, if any; they are cached until
       ``caches`` closes.

    Raises:
        SourceError: a source that cannot be listed.
    """
    listed, loads = list_sources(
        spark, options.sources, caches, follow_links=options.follow_links, tell=tell_not_known
    )
    expect(spark, Work.ROWS, Load(sum(of_kind.segments for of_kind in loads.values())))
    if kinds.UNLISTED in loads:
        _refuse_missing_sources(listed)
    listed = in_one_task(listed)
    identify = with_broker(listed, cluster=options.cluster, broker_id=options.broker_id)
    follow_into = links_into(options.sources, follow=options.follow_links)
    scope = AuditScope(options.recovery, options.version, follow_into, options.sizes)
    load = loads.get(kinds.SEGMENT, Load())
    tell(load, tasks_for(spark, load))
    segments = listed.transform(identify).transform(choose_segments)
    judged = computed_once(segments.transform(audit_segments(scope, load)), caches)
    folders = listed.transform(choose_folders).transform(identify)
    audited = (
        judged.where("unfolded IS NULL")
        .unionByName(judged.transform(fold_transactions(options.version)))
        .unionByName(folders.transform(audit_folders(scope)))
    )
    if not is_surely_null(judged, "end_offset"):  # else nothing is tiered
        audited = audited.unionByName(judged.transform(decide_breaks))
    rows = computed_once(
        audited.withColumns(
            {
                "kafka_version": F.lit(".".join(map(str, options.version))),
                **stamp_of(uuid.uuid4().hex, options.now_ms),
            }
        ).select(*schema(_SCHEMA).fieldNames()),
        caches,
    )
    if keep_in is not None:
        keep_in.create(INDEX_AUDITS)
        keep_in.append(INDEX_AUDITS, rows)
    return rows


def _refuse_missing_sources(listed: DataFrame) -> None:
    missing = listed.where(
        (F.col("kind") == kinds.UNLISTED) & (F.col("relative_path") == "")
    ).first()
    if missing is not None:
        raise SourceError(missing["source"], missing["reason"])
