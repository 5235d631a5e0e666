"""Names of segments and of the folders they lie in.

Source: LogFileUtils, UnifiedLog.parseTopicPartitionName.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.text.checkpoints import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCHS,
    LOCK,
    OF_LOG_DIR,
    PARTITION_METADATA,
)

LOG_SUFFIX = ".log"
IN_LOG_DIR = r"/[0-9]{20}\.log$"
"""How the path of a segment in a log directory ends; the name of an object of a tier has an id."""
METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
SNAPSHOT_SUFFIX = ".snapshot"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX = ".deleted", ".cleaned", ".swap"
"""Of files to delete; of a compaction or split that was not finished; of one that was."""
TMP_SUFFIX = ".tmp"
"""Of a text file that is being written."""
INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
QUORUM_STATE = "quorum-state"
OF_LOG = frozenset((LEADER_EPOCHS, PARTITION_METADATA, QUORUM_STATE))
"""The names of the files that a broker keeps of a log as a whole, in its folder."""
INDEX_CACHE = "remote-log-index-cache"
"""The folder in a log directory in which tiered storage keeps index files that it fetched."""
_RENAMED_TEXTS = (OF_LOG | OF_LOG_DIR) - {LOCK, CLEAN_SHUTDOWN}
_SEGMENT = re.compile(r"([0-9]{20})\.log", re.ASCII)
_OTHER_FORM = re.compile(r"([0-9]{20})\.log.*", re.ASCII | re.DOTALL | re.IGNORECASE)
_BESIDE_SEGMENT = re.compile(
    r"[0-9]{20}(?:\.(?:index|timeindex|txnindex|snapshot)|-[0-9]{10}\.checkpoint)", re.ASCII
)
_MOVED = re.compile(r"(\S+-\S+)\.\S+-(delete|stray|future)", re.ASCII)
_LIVE = re.compile(r"(.+)-(\+?[0-9]+)", re.ASCII | re.DOTALL)
_MAX_INT64 = 2**63 - 1
_MAX_INT32 = 2**31 - 1


class FolderState(StrEnum):
    """What the suffix of a partition's folder says."""

    LIVE = "live"
    DELETE = "delete"
    STRAY = "stray"
    FUTURE = "future"


class PartitionFolder(NamedTuple):
    """A partition's folder by its name."""

    topic: str
    partition: int
    state: FolderState


def parse_segment_name(name: str) -> int | None:
    """Return the base offset in a segment's file name, None where the name is no segment's.

    Only 20 digits count. A broker takes any number before the first dot, but then opens the
    file named with 20 digits, not this one.
    """
    match = _SEGMENT.fullmatch(name)
    if match is None:
        return None
    base_offset = int(match[1])
    return base_offset if base_offset <= _MAX_INT64 else None


def parse_other_form(name: str) -> int | None:
    """Return the base offset of a segment of which a file is named as a copy, packed or not.

    ``00000000000000000012.log.gz`` and ``….log (1)`` are such names. A broker passes them over.
    """
    match = _OTHER_FORM.fullmatch(name)
    return None if match is None or parse_segment_name(name) is not None else int(match[1])


def is_beside_segments(name: str) -> bool:
    """Tell whether a broker gives this name to files that describe a segment, or a snapshot."""
    return _BESIDE_SEGMENT.fullmatch(name) is not None


def is_unfinished_text(name: str) -> bool:
    """Tell whether a broker writes a text file beside its logs under this name, then renames it.

    Source: CheckpointFile, PartitionMetadataFile, PropertiesUtils, FileQuorumStateStore,
    BootstrapDirectory.
    """
    return name.endswith(TMP_SUFFIX) and name.removesuffix(TMP_SUFFIX) in _RENAMED_TEXTS


def is_of_segment(name: str) -> bool:
    """Tell whether a broker gives this name to a segment, what describes it, or a snapshot."""
    return parse_segment_name(name) is not None or is_beside_segments(name)


def file_name(base_offset: int, suffix: str) -> str:
    """Name a file of a segment, e.g. ``file_name(1000, ".index")``."""
    return f"{base_offset:020d}{suffix}"


def parse_partition_folder(name: str) -> PartitionFolder | None:
    """Split ``<topic>-<partition>`` at its last dash; knows the -delete, -stray, -future forms."""
    state = FolderState.LIVE
    moved = _MOVED.fullmatch(name)
    if moved is not None:
        name, state = name[: name.rindex(".")], FolderState(moved[2])
    live = _LIVE.fullmatch(name)
    if live is None or int(live[2]) > _MAX_INT32:
        return None
    return PartitionFolder(live[1], int(live[2]), state)


def is_of_partition(*, has_folders: bool, files: Iterable[str]) -> bool:
    """Tell whether a folder that is named like a partition's is one, by what lies in it.

    A disk may be named like that as well, ``node-1``: it has folders, and beside them neither
    segments nor what a broker keeps with these, whatever programs log there; or a broker's own
    files.
    """
    if not has_folders:
        return True
    names = list(files)
    return OF_LOG_DIR.isdisjoint(names) and any(map(_is_of_log, names))


def _is_of_log(name: str) -> bool:
    is_segment = parse_segment_name(name) is not None or parse_other_form(name) is not None
    return is_segment or name in OF_LOG
