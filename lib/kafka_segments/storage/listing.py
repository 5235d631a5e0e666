"""What one folder holds: segments, the files a broker keeps beside them, folders, oddities.

A source is a log directory, a folder of several, or one partition's folder, on a broker's disk or
as tiered storage keeps it (``storage.tiered_folder``). A folder with
segments is a partition's; a folder of such folders, or with a broker's checkpoint files, is a
log directory. Nothing is left out in silence: what is no segment gets a row that says why.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple, TypeVar

from kafka_segments.errors import CorruptTextError, SourceError
from kafka_segments.storage.files import (
    TEMPORARY_SUFFIX,
    FileEntry,
    Place,
    first_line,
    list_folder,
    place,
    read_whole,
)
from kafka_segments.storage.tiered_folder import Role, is_tiered, sort_objects, topic_of
from kafka_segments.wire import checkpoints
from kafka_segments.wire.names import (
    LOG_SUFFIX,
    FolderState,
    PartitionFolder,
    file_name,
    parse_partition_folder,
    parse_segment_name,
)
from kafka_segments.wire.tiered_names import TieredFolder, parse_name_with_id, tiered_folder_of

SEGMENT, LOG, LOG_DIR, FOLDER, UNRECOGNIZED, UNLISTED = (
    "segment",
    "log",
    "log_dir",
    "folder",
    "unrecognized",
    "unlisted",
)
MOST_LEVELS = 4
# Keys of object stores may have them; what is written for them would lie elsewhere.
_NO_FOLDERS = ("", ".", "..")
_T = TypeVar("_T")
_MOST_TEXT_BYTES = 64 * 1024 * 1024
_OFFSET_FILES = {
    "recovery_point": checkpoints.RECOVERY_POINT,
    "log_start_offset": checkpoints.LOG_START_OFFSET,
    "high_watermark": checkpoints.HIGH_WATERMARK,
    "cleaner_offset": checkpoints.CLEANER_OFFSET,
}
_LOG_DIR_FILES = {*_OFFSET_FILES.values(), checkpoints.META_PROPERTIES, checkpoints.CLEAN_SHUTDOWN}


class Listed(NamedTuple):
    """One row of a listing; what a kind does not have is None.

    ``relative_path`` is the folder's, from its source; ``""`` is the source itself.
    """

    kind: str
    source: str
    relative_path: str
    name: str = ""
    log_dir: str = ""
    topic: str | None = None
    partition: int | None = None
    folder_state: str | None = None
    base_offset: int | None = None
    size_bytes: int | None = None
    mtime_ns: int | None = None
    is_active: bool = False
    next_base_offset: int | None = None
    reason: str | None = None
    topic_id: str | None = None
    leader_epochs: list[checkpoints.EpochStart] | None = None
    meta: dict[str, Any] | None = None
    offsets: list[dict[str, Any]] | None = None


def join_uri(*parts: str) -> str:
    """Join a URI and relative paths; empty ones are left out."""
    return "/".join(part.rstrip("/") if part != "/" else "" for part in parts if part)


def list_source_folder(source: str, relative_path: str) -> Iterator[Listed]:
    """List one folder below a source: its rows, and the folders to go on with.

    A folder that cannot be listed, or lies too deep, is a row of kind ``unlisted``.
    """
    folder = place(source).child(relative_path)
    try:
        entries = list_folder(folder)
    except SourceError as error:
        yield Listed(UNLISTED, source, relative_path, reason=error.reason)
        return
    uri = join_uri(source, relative_path)
    parent, _, name = uri.rpartition("/")
    tiered = tiered_folder_of(uri)
    if tiered is not None and is_tiered(entries):
        yield from _list_tiered(folder, source, relative_path, tiered, entries)
        return
    here = parse_partition_folder(name)
    folders = [entry for entry in entries if entry.is_folder]
    has_logs = any(entry.name.endswith(LOG_SUFFIX) for entry in entries if not entry.is_folder)
    if here is not None and (has_logs or not folders):
        yield from _list_log(_Folder(folder, source, relative_path, parent, here), entries)
        return
    for entry in entries:
        if not entry.is_folder and entry.name.endswith(LOG_SUFFIX):
            reason = f"its folder's name, {name}, is no <topic>-<partition>"
            yield _unrecognized(source, relative_path, entry, reason)
    if _is_log_dir(entries):
        yield _list_log_dir(folder, source, relative_path, uri, entries)
    doubles = _doubles(folders)
    for entry in folders:
        if entry.name in doubles:
            reason = f"the same partition as {doubles[entry.name]}; a broker would not start"
            yield _unrecognized(source, relative_path, entry, reason)
            continue
        if entry.name in _NO_FOLDERS:
            reason = f"objects lie below the name {entry.name!r}, no folder's; it was not entered"
            yield _unrecognized(source, relative_path, entry, reason)
            continue
        below = join_uri(relative_path, entry.name)
        if below.count("/") < MOST_LEVELS - 1:
            yield Listed(FOLDER, source, below, name=entry.name)
        else:
            reason = f"it lies {MOST_LEVELS} levels below its source, too deep"
            yield Listed(UNLISTED, source, below, name=entry.name, reason=reason)


def _list_tiered(
    folder: Place, source: str, relative_path: str, named: TieredFolder, entries: list[FileEntry]
) -> Iterator[Listed]:
    """List a partition's folder in Aiven's layout; only segments that were rolled get there."""
    objects = sort_objects(folder, entries)
    log = Listed(
        LOG,
        source,
        relative_path,
        log_dir=join_uri(source, relative_path).rpartition("/")[0],
        topic=topic_of(folder, objects, named.topic),
        partition=named.partition,
        folder_state=FolderState.LIVE.value,
        topic_id=named.topic_id,
    )
    segments = [found for found in objects if found.role == Role.SEGMENT]
    next_bases = [found.base_offset for found in segments[1:]]
    for found, next_base in zip_longest(segments, next_bases):
        yield log._replace(
            kind=SEGMENT,
            name=found.entry.name,
            base_offset=found.base_offset,
            size_bytes=found.entry.size_bytes,
            mtime_ns=found.entry.mtime_ns,
            next_base_offset=next_base,
            topic_id=None,
        )
    for found in objects:
        if found.role != Role.SEGMENT:
            yield _unrecognized(source, relative_path, found.entry, found.reason)
    yield log


class _Folder(NamedTuple):
    place: Place
    source: str
    relative_path: str
    log_dir: str
    partition: PartitionFolder


def _unrecognized(source: str, relative_path: str, entry: FileEntry, reason: str) -> Listed:
    return Listed(
        UNRECOGNIZED,
        source,
        relative_path,
        name=entry.name,
        size_bytes=None if entry.is_folder else entry.size_bytes,
        reason=reason,
    )


def _is_log_dir(entries: list[FileEntry]) -> bool:
    return any(
        parse_partition_folder(entry.name) is not None
        if entry.is_folder
        else entry.name in _LOG_DIR_FILES
        for entry in entries
    )


def _doubles(folders: list[FileEntry]) -> dict[str, str]:
    """Name the folders that mean a partition another one means too, such as t-1 and t-01."""
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


def _list_log(folder: _Folder, entries: list[FileEntry]) -> Iterator[Listed]:
    state = folder.partition.state
    gone = state in (FolderState.DELETE, FolderState.STRAY)
    are_plain = any(parse_segment_name(entry.name) is not None for entry in entries)
    parse_name = parse_segment_name if are_plain else parse_name_with_id
    copies = {} if are_plain else _copies(entries, parse_name)
    segments: list[tuple[int, FileEntry]] = []
    for entry in entries:
        reason = copies.get(entry.name) or _why_unrecognized(entry, parse_name)
        base_offset = None if entry.is_folder else parse_name(entry.name)
        if base_offset is not None and gone and reason is None:
            reason = f"the folder is marked -{state.value}, a broker does not serve it"
        if reason is not None:
            yield _unrecognized(folder.source, folder.relative_path, entry, reason)
        elif base_offset is not None:
            segments.append((base_offset, entry))
    if gone:
        return
    common = {
        "log_dir": folder.log_dir,
        "topic": folder.partition.topic,
        "partition": folder.partition.partition,
        "folder_state": state.value,
    }
    next_bases = [base_offset for base_offset, _ in segments[1:]]
    for (base_offset, entry), next_base in zip_longest(segments, next_bases):
        yield Listed(
            SEGMENT,
            folder.source,
            folder.relative_path,
            name=entry.name,
            base_offset=base_offset,
            size_bytes=entry.size_bytes,
            mtime_ns=entry.mtime_ns,
            is_active=next_base is None,
            next_base_offset=next_base,
            **common,  # type: ignore[arg-type]
        )
    present = {entry.name for entry in entries if entry.oddity is None}
    problems: list[str] = []
    yield Listed(
        LOG,
        folder.source,
        folder.relative_path,
        topic_id=_read(
            folder.place,
            present,
            checkpoints.PARTITION_METADATA,
            checkpoints.parse_partition_metadata,
            problems,
        ),
        leader_epochs=_read(
            folder.place,
            present,
            checkpoints.LEADER_EPOCHS,
            checkpoints.parse_leader_epochs,
            problems,
        ),
        reason="; ".join(problems) or None,
        **common,  # type: ignore[arg-type]
    )


def _copies(entries: list[FileEntry], parse_name: Callable[[str], int | None]) -> dict[str, str]:
    """Say of segments that begin at the same offset, named with ids, which one is taken."""
    named = [(parse_name(entry.name), entry) for entry in entries]
    logs = sorted(
        (
            (base_offset, entry.mtime_ns, entry.name)
            for base_offset, entry in named
            if base_offset is not None and not entry.is_folder and entry.oddity is None
        ),
    )
    return {
        older[2]: f"another copy from offset {older[0]}: the row is {newer[2]}, the last upload"
        for older, newer in pairwise(logs)
        if older[0] == newer[0]
    }


def _why_unrecognized(entry: FileEntry, parse_name: Callable[[str], int | None]) -> str | None:
    if entry.is_folder:
        return "a folder inside a partition's folder"
    if entry.oddity is not None:
        return entry.oddity
    if entry.name.endswith((".cleaned", ".swap", ".deleted")):
        return "left over from compaction, a split or a deletion; a broker resolves it at start"
    if entry.name.endswith(TEMPORARY_SUFFIX):
        return "unfinished file of a kafka-segments run that was stopped; may be removed"
    if not entry.name.endswith(LOG_SUFFIX) or parse_name(entry.name) is not None:
        return None
    number = entry.name.partition(".")[0]
    if number.isascii() and number.isdigit() and int(number) < 2**63:
        return f"no segment name: a broker would open {file_name(int(number), LOG_SUFFIX)} instead"
    return "no segment name: 20 digits and .log expected; a broker would not start"


def _read(
    folder: Place,
    present: set[str],
    name: str,
    parse: Callable[[str], _T],
    problems: list[str],
) -> _T | None:
    if name not in present:
        return None
    try:
        return parse(read_whole(folder.child(name), most_bytes=_MOST_TEXT_BYTES).decode("utf-8"))
    except CorruptTextError as error:
        problems.append(str(error))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{name}: {first_line(error)}")
    return None


def _list_log_dir(
    folder: Place, source: str, relative_path: str, uri: str, entries: list[FileEntry]
) -> Listed:
    present = {entry.name for entry in entries if entry.oddity is None}
    problems: list[str] = []
    properties = _read(
        folder, present, checkpoints.META_PROPERTIES, checkpoints.parse_meta_properties, problems
    )
    meta: dict[str, Any] = {
        "was_clean_shutdown": checkpoints.CLEAN_SHUTDOWN in present,
        "has_lock_file": checkpoints.LOCK in present,
        **(properties._asdict() if properties else {}),
    }
    offsets: dict[tuple[str, int], dict[str, Any]] = {}
    for column, name in _OFFSET_FILES.items():

        def parse(text: str, name: str = name) -> list[checkpoints.PartitionOffset]:
            return checkpoints.parse_offset_checkpoint(name, text)

        for topic, partition, offset in _read(folder, present, name, parse, problems) or []:
            row = offsets.setdefault((topic, partition), {"topic": topic, "partition": partition})
            row[column] = offset
    return Listed(
        LOG_DIR,
        source,
        relative_path,
        log_dir=uri,
        meta=meta,
        offsets=list(offsets.values()),
        reason="; ".join(problems) or None,
    )
