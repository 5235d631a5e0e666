"""Which objects of a partition's folder in Aiven's layout are segments, and what the others are.

A segment is whole if it has its log and its manifest, which is written last. Two brokers can each
upload a segment that begins at the same offset. A broker then takes the copy of the highest leader
epoch, and of several in one epoch the last upload. That copy is the segment here; the others are
rows with a reason.

Source: RemoteLogMetadataCache, RemoteLogLeaderEpochState.handleSegmentWithCopySegmentFinishedState.
"""

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.errors import CorruptTextError
from kafka_segments.files.folders.listing_rows import why_strange
from kafka_segments.files.storage.files import Place, read_manifest
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.tier.segment_manifest import RemoteSegment
from kafka_segments.kafka.tier.tiered_names import (
    INDEXES,
    LOG,
    MANIFEST,
    TIERED_SUFFIXES,
    TieredName,
    parse_tiered_name,
)

_MOST_READ_FOR_A_TOPIC = 3


class Role(StrEnum):
    """What an object is in its folder."""

    SEGMENT = "segment"
    COPY = "second_copy"
    NO_MANIFEST = "no_manifest"
    NO_LOG = "no_log"
    STRANGE = "strange"


class TieredObject(NamedTuple):
    """An object that is the log of a segment, or is no part of one; ``reason`` says why not."""

    role: Role
    entry: FileEntry
    base_offset: int | None = None
    reason: str = ""


def is_tiered(entries: Iterable[FileEntry]) -> bool:
    """Tell whether a folder has objects with names that the plugin gives."""
    names = (parse_tiered_name(entry.name) for entry in entries if not entry.is_folder)
    return any(name is not None and name.suffix in TIERED_SUFFIXES for name in names)


def sort_objects(folder: Place, entries: Iterable[FileEntry]) -> list[TieredObject]:
    """Return the segments of a folder by base offset, and all objects that are no part of one."""
    strange: list[TieredObject] = []
    uploads: dict[TieredName, dict[str, FileEntry]] = defaultdict(dict)
    for entry in entries:
        name = parse_tiered_name(entry.name)
        reason = _why_no_object(entry, name)
        if reason is not None or name is None:
            strange.append(TieredObject(Role.STRANGE, entry, None, reason or ""))
        else:
            uploads[name._replace(suffix="")][name.suffix] = entry
    whole: dict[int, list[TieredName]] = defaultdict(list)
    for upload, objects in uploads.items():
        if LOG in objects and MANIFEST in objects:
            whole[upload.base_offset].append(upload)
        else:
            strange += _unfinished(upload, objects)
    segments = []
    for base_offset, copies in sorted(whole.items()):
        best, *others = _ranked(folder, copies) if len(copies) > 1 else copies
        segments.append(TieredObject(Role.SEGMENT, uploads[best][LOG], base_offset))
        for other in others:
            reason = f"another copy from offset {base_offset}: the row is {best.stem}{LOG}, of the"
            reason += " higher leader epoch or the later upload"
            strange.append(TieredObject(Role.COPY, uploads[other][LOG], base_offset, reason))
    return segments + strange


def topic_of(folder: Place, objects: Iterable[TieredObject], named: str) -> str:
    """Return the topic of a folder; ``named`` is the topic in the folder's name.

    The prefix that all keys have may end in the middle of the folder's name, so that ``named``
    begins with a part of it. The manifests have the topic without it.
    """
    logs = [found.entry.name for found in objects if found.role == Role.SEGMENT]
    for log in logs[:_MOST_READ_FOR_A_TOPIC]:
        remote = _announced(folder, log)
        if remote is not None and named.endswith(remote.topic):
            return remote.topic
    return named


def _announced(folder: Place, log: str) -> RemoteSegment | None:
    try:
        return read_manifest(folder.child(log)).segment
    except (CorruptTextError, OSError):
        return None


def _why_no_object(entry: FileEntry, name: TieredName | None) -> str | None:
    reason = why_strange(entry)
    if reason is not None:
        return reason
    if name is None:
        return "no object of a tiered segment: <20 digits>-<segment id>.log expected"
    if name.suffix not in TIERED_SUFFIXES:
        known = ", ".join(TIERED_SUFFIXES)
        return f"{name.suffix} is none of {known}; uploads before October 2023 had others"
    return None


def _unfinished(upload: TieredName, objects: dict[str, FileEntry]) -> Iterable[TieredObject]:
    role = Role.NO_LOG if MANIFEST in objects else Role.NO_MANIFEST
    missing = LOG if role == Role.NO_LOG else MANIFEST
    what = "the log of a whole upload is gone" if missing == LOG else "an incomplete upload"
    for suffix in (LOG, INDEXES, MANIFEST):
        if suffix in objects:
            reason = f"{what}: there is no {upload.stem}{missing}"
            yield TieredObject(role, objects[suffix], upload.base_offset, reason)


def _ranked(folder: Place, copies: list[TieredName]) -> list[TieredName]:
    """Return the copies of a segment, beginning with the one that a broker would take."""

    def rank(copy: TieredName) -> tuple[int, int, int, str]:
        remote = _announced(folder, copy.stem + LOG)
        if remote is None:
            return (-2, -2, -2, copy.segment_id)
        epoch = remote.leader_epochs[-1].epoch if remote.leader_epochs else -1
        return (epoch, remote.event_timestamp_ms, remote.end_offset, copy.segment_id)

    return sorted(copies, key=rank, reverse=True)
