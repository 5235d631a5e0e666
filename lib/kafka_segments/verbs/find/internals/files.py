"""Find the files of the internal topics: their segments, and the metadata log's snapshots."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.sources.broker_identity import file_path, with_broker
from kafka_segments.engine.sources.list import (
    ListedInDriver,
    list_in_driver,
    list_rest,
    sources_without_segments,
)
from kafka_segments.engine.sources.missing import MOST_VANISHED
from kafka_segments.engine.tables.keys import LOG_KEYS, Transform
from kafka_segments.errors import SourceError, is_answerless
from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.storage.links import links_into
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.messages import records
from kafka_segments.kafka.text.names import METADATA_TOPIC, FolderState

INTERNAL_TOPICS = tuple(sorted(records.INTERNAL_TOPICS))
# The first offset behind the snapshot, and the epoch of its last record.
# Source: Snapshots.filenameFromSnapshotId.
_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)
_OF_FILES = ("file", "path", "is_snapshot", "is_active", "base_offset", "size_bytes", "mtime_ns")
FILE_COLUMNS = (*LOG_KEYS, *_OF_FILES)


@dataclass(frozen=True)
class Origin:
    """Where the internal topics lie, and whose they are.

    Attributes:
        sources: log directories, folders of several, or folders of partitions; absolute URIs.
        topics: only these internal topics.
        cluster: name of the cluster; None: as meta.properties says.
        broker_id: id of the broker; None: as meta.properties says.
        follow_links: symbolic links are followed to what lies below the sources.
        most_vanished: percent of the logs known below a source that may be gone.
    """

    sources: tuple[str, ...]
    topics: tuple[str, ...] = INTERNAL_TOPICS
    cluster: str | None = None
    broker_id: int | None = None
    follow_links: bool = False
    most_vanished: int = MOST_VANISHED


class InternalFiles(NamedTuple):
    """What was found below the sources.

    Attributes:
        files: rows of ``FILE_COLUMNS``.
        listed: the rows of the listing.
        unseen: the folders and links that were not looked into, and what else lies in the place of
            a segment or a snapshot, as a pipe.
        empty_sources: those below which there is no segment, of whichever topic.
        bare_clusters: those of whose metadata log there are folders, and no file in any.
    """

    files: DataFrame
    listed: DataFrame
    unseen: tuple[str, ...]
    empty_sources: tuple[str, ...]
    bare_clusters: tuple[str, ...] = ()


def find_files(spark: SparkSession, origin: Origin, caches: ExitStack) -> InternalFiles:
    """List the sources for the files of internal topics, see ``internal_files``."""
    here = list_in_driver(origin.sources, follow_links=origin.follow_links)
    listed, loads = list_rest(spark, here, caches)
    files = internal_files(listed, origin, caches)
    unseen: tuple[str, ...] = ()
    if loads.keys() & {*kinds.UNSEEN, kinds.UNRECOGNIZED}:
        is_odd = (F.col("kind") == kinds.UNRECOGNIZED) & file_path().rlike(_file_of(origin.topics))
        rows = listed.where(F.col("kind").isin(*kinds.UNSEEN) | is_odd).select(file_path())
        unseen = tuple(row[0] for row in rows.collect())
    empty = sources_without_segments(origin.sources, here, listed)
    is_asked = METADATA_TOPIC in origin.topics and _may_lack_segments(here, METADATA_TOPIC)
    bare = _bare_clusters(listed, files, origin) if is_asked else ()
    return InternalFiles(files, listed, unseen, empty, bare)


def _file_of(topics: Iterable[str]) -> str:
    """Return the pattern of paths of segments, and of the metadata log's snapshots."""
    names = "|".join(map(re.escape, topics))
    return rf"(^|/)({names})-[0-9]+/[0-9]{{20}}(\.log|-[0-9]{{10}}\.checkpoint)$"


def _may_lack_segments(here: ListedInDriver, topic: str) -> bool:
    """Tell whether a folder of a topic may have no segment; what executors list may."""
    of_topic = here.rows.filter(pc.equal(here.rows["topic"], topic))
    folders, with_segments = (
        of_topic.filter(pc.equal(of_topic["kind"], kind)).group_by(["log_dir"]).aggregate([])
        for kind in (kinds.LOG, kinds.SEGMENT)
    )
    return bool(here.left) or len(folders) > len(with_segments)


def _bare_clusters(listed: DataFrame, files: DataFrame, origin: Origin) -> tuple[str, ...]:
    """Return the clusters of whose metadata log there are folders, and no file in any.

    Needs: rows of a listing; ``files``: ``FILE_COLUMNS``.
    """
    is_folder = (F.col("kind") == kinds.LOG) & (F.col("topic") == METADATA_TOPIC)
    folders = listed.where(is_folder & (F.col("folder_state") == FolderState.LIVE.value))
    whose = with_broker(listed, cluster=origin.cluster, broker_id=origin.broker_id)
    with_files = files.where(F.col("topic") == METADATA_TOPIC).select("cluster").distinct()
    bare = folders.transform(whose).select("cluster").distinct()
    rows = bare.join(with_files, "cluster", how="left_anti").collect()
    return tuple(sorted(row["cluster"] for row in rows))


def internal_files(listed: DataFrame, origin: Origin, caches: ExitStack) -> DataFrame:
    """Keep the files of internal topics, cached until ``caches`` closes.

    Folders marked -delete, -stray and -future are left out: a broker does not serve them.

    Needs: rows of a listing; ``origin``: which topics, and whose they are.
    Gives: ``FILE_COLUMNS``.
    """
    logs = (
        listed.where(F.col("topic").isin(*origin.topics))
        .where(F.col("folder_state") == FolderState.LIVE.value)
        .transform(with_broker(listed, cluster=origin.cluster, broker_id=origin.broker_id))
    )
    segments = logs.where(F.col("kind") == kinds.SEGMENT).select(
        *LOG_KEYS,
        F.col("name").alias("file"),
        file_path().alias("path"),
        F.lit(False).alias("is_snapshot"),
        "is_active",
        "base_offset",
        "size_bytes",
        "mtime_ns",
    )
    of_metadata = (F.col("kind") == kinds.LOG) & (F.col("topic") == METADATA_TOPIC)
    follow_into = links_into(origin.sources, follow=origin.follow_links)
    snapshots = (
        logs.where(of_metadata)
        .select(*LOG_KEYS, "source", "relative_path")
        .transform(_list_snapshots(segments.schema, follow_into))
    )
    return computed_once(segments.unionByName(snapshots).dropDuplicates(["path"]), caches)


def parse_snapshot_name(name: str) -> int | None:
    """Return the first offset behind a snapshot, by its file name; None: it is no snapshot."""
    match = _SNAPSHOT.fullmatch(name)
    return int(match[1]) if match else None


def _list_snapshots(columns: StructType, follow_into: tuple[str, ...]) -> Transform:
    """List the snapshots in folders of the metadata log; a folder that is gone has none.

    ``follow_into``: see ``links_into``; the listing tells of links that are not followed.
    """
    schema = to_arrow_schema(columns)

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row for log in batch.to_pylist() for row in _snapshots(log, follow_into)]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)

    return lambda folders: map_rows(folders, on_task, columns)


def _snapshots(log: dict[str, Any], follow_into: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    source, relative_path = log["source"], log["relative_path"]
    try:
        entries = entries_of(source, relative_path, follow_into=follow_into)
    except SourceError as error:
        if is_answerless(error):
            raise
        return
    for entry in entries:
        is_file = not entry.is_folder and entry.oddity is None
        end_offset = parse_snapshot_name(entry.name) if is_file else None
        if end_offset is not None:
            yield {
                **{key: log[key] for key in LOG_KEYS},
                "file": entry.name,
                "path": join_uri(source, relative_path, entry.name),
                "is_snapshot": True,
                "is_active": False,
                "base_offset": end_offset,
                "size_bytes": entry.size_bytes,
                "mtime_ns": entry.mtime_ns,
            }
