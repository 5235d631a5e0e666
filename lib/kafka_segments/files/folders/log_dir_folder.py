"""The files of a log directory itself: the broker's checkpoints and meta.properties."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from kafka_segments.errors import CorruptTextError
from kafka_segments.files.folders.kinds import LOG_DIR
from kafka_segments.files.folders.listing_rows import MOST_TEXT_BYTES, BrokerFiles, Listed
from kafka_segments.files.storage.files import Place, read_whole
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.text import checkpoints
from kafka_segments.kafka.text.names import (
    FolderState,
    is_beside_segments,
    is_unfinished_text,
    parse_partition_folder,
)

_OFFSET_FILES = {
    "recovery_point": checkpoints.RECOVERY_POINT,
    "log_start_offset": checkpoints.LOG_START_OFFSET,
    "high_watermark": checkpoints.HIGH_WATERMARK,
    "cleaner_offset": checkpoints.CLEANER_OFFSET,
}
NotedOffsets = Mapping[tuple[str, int], Mapping[str, int]]
"""What checkpoints note of each log, by topic and partition: offsets by their column."""

_LOG_DIR_FILES = {*_OFFSET_FILES.values(), checkpoints.META_PROPERTIES, checkpoints.CLEAN_SHUTDOWN}


def is_log_dir(entries: list[FileEntry]) -> bool:
    """Tell whether a folder has folders of partitions or a broker's checkpoint files."""
    return any(
        parse_partition_folder(entry.name) is not None
        if entry.is_folder
        else entry.name in _LOG_DIR_FILES
        for entry in entries
    )


def is_foreign(entry: FileEntry) -> bool:
    """Tell whether a broker keeps no file of this name in a log directory; it passes over those."""
    is_kafkas = entry.name in checkpoints.OF_LOG_DIR or is_unfinished_text(entry.name)
    return not (entry.is_folder or is_kafkas or is_beside_segments(entry.name))


def same_partitions(folders: list[FileEntry]) -> dict[str, str]:
    """Return the folders whose partition has another folder already, as t-01 beside t-1.

    The values are the names of the folders that come first.
    """
    first: dict[tuple[str, int], str] = {}
    doubles: dict[str, str] = {}
    live_first = sorted(folders, key=lambda entry: (len(entry.name), entry.name))
    for entry in live_first:
        parsed = parse_partition_folder(entry.name)
        if parsed is None or parsed.state in (FolderState.DELETE, FolderState.STRAY):
            continue
        key = (parsed.topic, parsed.partition)
        if first.setdefault(key, entry.name) != entry.name:
            doubles[entry.name] = first[key]
    return doubles


def list_log_dir(
    folder: Place, source: str, relative_path: str, uri: str, entries: list[FileEntry]
) -> Listed:
    """Return the row of a log directory: what its broker noted of it and of each of its logs."""
    files = BrokerFiles(folder, entries)
    properties = files.parse(
        checkpoints.META_PROPERTIES, checkpoints.parse_meta_properties, encoding="latin-1"
    )
    if properties is not None and properties.node_id is None:
        files.note(checkpoints.META_PROPERTIES, "no node id is in it")
    meta: dict[str, Any] = {
        "was_clean_shutdown": checkpoints.CLEAN_SHUTDOWN in files,
        "has_lock_file": checkpoints.LOCK in files,
        "has_high_watermarks": checkpoints.HIGH_WATERMARK in files,
        "has_log_starts": checkpoints.LOG_START_OFFSET in files,
        **(properties._asdict() if properties else {}),
    }
    offsets: dict[tuple[str, int], dict[str, Any]] = {}
    for column, name in _OFFSET_FILES.items():
        found = files.parse(name, partial(checkpoints.parse_offset_checkpoint, name))
        if name == checkpoints.CLEANER_OFFSET:
            meta["has_cleaner_offsets"] = found is not None
        for topic, partition, offset in found or []:
            row = offsets.setdefault((topic, partition), {"topic": topic, "partition": partition})
            row[column] = offset
    return Listed(
        LOG_DIR,
        source,
        relative_path,
        log_dir=uri,
        meta=meta,
        offsets=list(offsets.values()),
        reason=files.problems,
    )


def noted_high_watermark(log_dir: Place, topic: str, partition: int) -> int | None:
    """Return the high watermark that a log directory notes of a log.

    None: it notes none, or nothing that can be read; the directory's own row says the latter.
    """
    try:
        file = log_dir.child(checkpoints.HIGH_WATERMARK)
        data = read_whole(file, most_bytes=MOST_TEXT_BYTES, is_plain=True)
        return _high_watermarks(data.decode()).get((topic, partition))
    except (OSError, UnicodeDecodeError, CorruptTextError):
        return None


@lru_cache(maxsize=1)  # a directory of which all segments are gone has as many folders as lines
def _high_watermarks(text: str) -> Mapping[tuple[str, int], int]:
    rows = checkpoints.parse_offset_checkpoint(checkpoints.HIGH_WATERMARK, text)
    return {(topic, partition): offset for topic, partition, offset in rows}


def noted_offsets(row: Listed) -> NotedOffsets:
    """Return what the row of a log directory notes of its logs; make it once for all of them."""
    return {(noted["topic"], noted["partition"]): noted for noted in row.offsets or []}
