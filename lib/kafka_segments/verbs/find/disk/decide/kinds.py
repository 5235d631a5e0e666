"""What a file of a log directory is, by its name and its folder's, and when it goes.

Source: UnifiedLog, LogSegment, LocalLog.deleteSegmentFiles, LogManager.deleteLogs, LogLoader,
RemoteIndexCache (4.3.1).
"""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.start.log_start import OFFSET_INDEX_BYTES, TIME_INDEX_BYTES
from kafka_segments.kafka.text.checkpoints import (
    LOCK,
    OF_LOG_DIR,
)
from kafka_segments.kafka.text.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_CACHE,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OF_LOG,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    FolderState,
    PartitionFolder,
    is_beside_segments,
    is_of_partition,
    is_unfinished_text,
    parse_partition_folder,
    parse_segment_name,
)

_FULL_INDEX_BYTES = (OFFSET_INDEX_BYTES, TIME_INDEX_BYTES)
_DIGITS = 20


class Where(StrEnum):
    """What a folder is: none of a broker's, a log directory, a log, or one that only lies there."""

    ABOVE = "above log directories"
    LOG_DIR = "a log directory"
    LOG = "a log"
    INDEX_CACHE = "the index cache of tiered storage"
    STRANGE = "not Kafka's"


class What(StrEnum):
    """What bytes are."""

    SEGMENTS = "segments"
    INDEXES = "index files"
    FULL_INDEXES = "index files at their full size"
    SNAPSHOTS = "producers' snapshots"
    METADATA_SNAPSHOTS = "snapshots of the metadata log"
    CHECKPOINTS = "checkpoints"
    UNFINISHED = "checkpoints marked .tmp"
    DELETED = "files marked .deleted"
    CLEANED = "files marked .cleaned"
    SWAPS = "files marked .swap"
    DELETE_FOLDERS = "folders marked -delete"
    STRAY_FOLDERS = "folders marked -stray"
    FUTURE_FOLDERS = "folders marked -future"
    INDEX_CACHE = "remote-log-index-cache"
    OWN = "unfinished files of kafka-segments"
    FOREIGN = "not Kafka's"
    FOLDERS = "folders themselves"


GOES = {
    What.SEGMENTS: "as retention and compaction say",
    What.INDEXES: "with their segments",
    What.FULL_INDEXES: "cut to their entries at the next clean stop",
    What.SNAPSHOTS: "with their segments",
    What.METADATA_SNAPSHOTS: "as metadata.max.retention.bytes and .ms say",
    What.CHECKPOINTS: "never: the broker needs them",
    What.UNFINISHED: "with the next write of the checkpoint",
    What.DELETED: "file.delete.delay.ms after they were renamed, else at the next start",
    What.CLEANED: "at the end of the compaction that writes them, else at the next start",
    What.SWAPS: "a start puts them in the place of segments",
    What.DELETE_FOLDERS: "file.delete.delay.ms after they were renamed, else after the next start",
    What.STRAY_FOLDERS: "never by itself: a person decides",
    What.FUTURE_FOLDERS: "they take the other folder's place once they have caught up",
    What.INDEX_CACHE: "as remote.log.index.file.cache.total.size.bytes says",
    What.OWN: "with the next run that writes there",
    What.FOREIGN: "never by itself: a person decides",
    What.FOLDERS: "with what lies in them",
}
"""When bytes go, by what they are."""

_MARKED_FOLDERS = {
    FolderState.DELETE: What.DELETE_FOLDERS,
    FolderState.STRAY: What.STRAY_FOLDERS,
    FolderState.FUTURE: What.FUTURE_FOLDERS,
}
_MARKED_FILES = {
    DELETED_SUFFIX: What.DELETED,
    CLEANED_SUFFIX: What.CLEANED,
    SWAP_SUFFIX: What.SWAPS,
}


class FolderPlace(NamedTuple):
    """Where a folder lies.

    Attributes:
        where: What it is.
        log_dir: The path of its log directory; where there is none, of the folder that was named.
        name: Its name below the log directory; empty: the log directory itself.
        partition: The partition that it, or the folder that it lies in, is of; None: of none.
    """

    where: Where
    log_dir: str
    name: str = ""
    partition: PartitionFolder | None = None


def place_below(
    parent: FolderPlace, path: str, folders: Collection[str], files: Collection[str]
) -> FolderPlace:
    """Say what a folder is.

    Args:
        parent: of the folder above it; of a folder that was named, one above log directories.
        path: its absolute path.
        folders: names of the folders in it.
        files: names of its files.
    """
    name = path.rpartition("/")[2]
    if parent.where in (Where.LOG, Where.INDEX_CACHE, Where.STRANGE):
        is_cache = parent.where == Where.INDEX_CACHE
        return parent if is_cache else parent._replace(where=Where.STRANGE)
    partition = parse_partition_folder(name)
    is_log = partition is not None and is_of_partition(has_folders=bool(folders), files=files)
    is_named = parent.name == path  # nothing above it was looked at
    if is_log and (parent.where == Where.LOG_DIR or (is_named and _has_log(files))):
        log_dir = parent.log_dir if parent.where == Where.LOG_DIR else path.rpartition("/")[0]
        return FolderPlace(Where.LOG, log_dir, name, partition)
    if _is_log_dir(folders, files):
        return FolderPlace(Where.LOG_DIR, path)
    if parent.where == Where.ABOVE:
        return FolderPlace(Where.ABOVE, parent.log_dir)
    where = Where.INDEX_CACHE if name == INDEX_CACHE else Where.STRANGE
    return FolderPlace(where, parent.log_dir, name)


def named_folder(path: str) -> FolderPlace:
    """Return the place above a folder that a person named."""
    return FolderPlace(Where.ABOVE, path, path)


def _has_log(files: Collection[str]) -> bool:
    return any(name.endswith(LOG_SUFFIX) for name in files)


def _is_log_dir(folders: Collection[str], files: Collection[str]) -> bool:
    has_logs = any(parse_partition_folder(name) is not None for name in folders)
    return has_logs or any(name in OF_LOG_DIR and name != LOCK for name in files)


def what_is(place: FolderPlace, name: str, size_bytes: int, *, active_base: int) -> What:
    """Say what a file is; unfinished files of ours are told by their names before.

    Args:
        place: its folder.
        name: its name.
        size_bytes: its size.
        active_base: base offset of the last segment of its folder; -1: there is none.
    """
    if place.where == Where.INDEX_CACHE:
        return What.INDEX_CACHE
    if place.where == Where.LOG_DIR:
        return _text(name, OF_LOG_DIR)
    if place.partition is not None and place.partition.state in _MARKED_FOLDERS:
        return _MARKED_FOLDERS[place.partition.state]
    if place.where != Where.LOG:
        return What.FOREIGN
    return _of_log(name, size_bytes, active_base)


def _of_log(name: str, size_bytes: int, active_base: int) -> What:
    base, suffix = name[:_DIGITS], name[_DIGITS:]
    if not (base.isascii() and base.isdecimal()):
        return _text(name, OF_LOG)
    for mark, what in _MARKED_FILES.items():
        if suffix.endswith(mark):
            return what
    if parse_segment_name(name) is not None:
        return What.SEGMENTS
    if suffix in INDEX_SUFFIXES:
        is_full = size_bytes in _FULL_INDEX_BYTES and int(base) != active_base
        return What.FULL_INDEXES if is_full else What.INDEXES
    if suffix == SNAPSHOT_SUFFIX:
        return What.SNAPSHOTS
    return What.METADATA_SNAPSHOTS if is_beside_segments(name) else What.FOREIGN


def _text(name: str, own: Collection[str]) -> What:
    """Return what a file without an offset in its name is; ``own``: a broker's names there."""
    if name in own:
        return What.CHECKPOINTS
    return What.UNFINISHED if is_unfinished_text(name) else What.FOREIGN
