"""The files of a partition's folder: its segments, and what a broker keeps beside them."""

from collections.abc import Callable, Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

from kafka_segments.files.folders.finished_swaps import NO_SWAPS, finished_swaps
from kafka_segments.files.folders.kinds import (
    LEFT_OVER,
    LOG,
    NO_SEGMENT,
    PASSED_OVER,
    SEGMENT,
    UNRECOGNIZED,
)
from kafka_segments.files.folders.listing_rows import (
    BrokerFiles,
    Listed,
    unrecognized,
    why_strange,
)
from kafka_segments.files.folders.log_dir_folder import noted_high_watermark
from kafka_segments.files.folders.tiered_folder import Role, sort_objects, topic_of
from kafka_segments.files.storage.files import Place, place
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.broker_rules.foreign_files import foreign_file, foreign_reason
from kafka_segments.kafka.broker_rules.start.startup import unread_swaps
from kafka_segments.kafka.text import checkpoints
from kafka_segments.kafka.text.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OF_LOG,
    SWAP_SUFFIX,
    FolderState,
    PartitionFolder,
    file_name,
    is_beside_segments,
    is_unfinished_text,
    parse_other_form,
    parse_segment_name,
)
from kafka_segments.kafka.tier.tiered_names import (
    TieredFolder,
    parse_name_with_id,
    parse_object_name,
)

_LEFT_OVER = "left over from compaction, a split or a deletion; a broker resolves it at start"
_NONE_OF_KAFKAS = "no file of Kafka's: a broker passes over it"


class LogFolder(NamedTuple):
    """A partition's folder below a source; ``log_dir`` is the URI of the folder above it."""

    place: Place
    source: str
    relative_path: str
    log_dir: str
    partition: PartitionFolder


def list_log(
    folder: LogFolder, entries: list[FileEntry], *, finishes_swaps: bool = False
) -> Iterator[Listed]:
    """Yield the rows of a partition's folder: other files, its segments in order, and the log.

    ``finishes_swaps``: the segments are those of a start, which finishes ``.swap`` files first.
    """
    state = folder.partition.state
    named_state = state.value  # an enum gives it by a call, one a segment otherwise
    gone = state in (FolderState.DELETE, FolderState.STRAY)
    are_plain = any(parse_segment_name(entry.name) is not None for entry in entries)
    parse_name = parse_segment_name if are_plain else parse_name_with_id
    copies = {} if are_plain else _copies(entries, parse_name)
    swaps = finished_swaps(folder.place, entries) if finishes_swaps and not gone else NO_SWAPS
    segments: list[tuple[int, FileEntry]] = []
    names = {entry.name for entry in entries}
    unread = {} if gone else unread_swaps(names)
    for entry in entries:
        base_offset = None if entry.is_folder else parse_name(entry.name)
        base_offset = swaps.segments.get(entry.name, base_offset)
        kind, reason = UNRECOGNIZED, copies.get(entry.name) or _why_strange(entry, base_offset)
        if reason is None and entry.name in swaps.replaced:
            kind, reason = LEFT_OVER, swaps.replaced[entry.name]
        elif reason is None and base_offset is None and entry.name in unread:
            reason = _why_unread(entry.name, stays=unread[entry.name])
        elif reason is None and base_offset is None:
            kind, reason = _why_no_segment(entry.name, names)
        elif reason is None and gone:
            reason = f"the folder is marked -{named_state}, a broker does not serve it"
            if state == FolderState.DELETE:  # -stray is for a person to decide
                kind = LEFT_OVER
        if reason is not None:
            yield unrecognized(folder.source, folder.relative_path, entry, reason, kind)
        elif base_offset is not None:
            segments.append((base_offset, entry))
    if gone:
        return
    if not segments:
        yield from _lost(folder)
    topic, partition = folder.partition.topic, folder.partition.partition
    next_bases = [base_offset for base_offset, _ in segments[1:]]
    for (base_offset, entry), next_base in zip_longest(segments, next_bases):
        yield Listed(  # by their places: to name the fields takes twice as long
            SEGMENT,
            folder.source,
            folder.relative_path,
            entry.name,
            folder.log_dir,
            topic,
            partition,
            named_state,
            base_offset,
            entry.size_bytes,
            entry.mtime_ns,
            next_base is None,
            next_base,
        )
    files = BrokerFiles(folder.place, entries)
    topic_id = files.parse(checkpoints.PARTITION_METADATA, checkpoints.parse_partition_metadata)
    leader_epochs = files.parse(checkpoints.LEADER_EPOCHS, checkpoints.parse_leader_epochs)
    yield Listed(
        LOG,
        folder.source,
        folder.relative_path,
        log_dir=folder.log_dir,
        topic=topic,
        partition=partition,
        folder_state=named_state,
        topic_id=topic_id,
        leader_epochs=leader_epochs,
        reason=files.problems,
    )


def _lost(folder: LogFolder) -> Iterator[Listed]:
    """Yield a row of a folder without segments if its log directory notes that it had records."""
    name, partition = folder.relative_path, folder.partition
    if not name or partition.state != FolderState.LIVE:
        return  # what lies above the source was not asked about; of a -future log nothing is noted
    above = place(folder.log_dir)
    noted = noted_high_watermark(above, partition.topic, partition.partition)
    if noted:
        reason = (
            f"{NO_SEGMENT}, but {checkpoints.HIGH_WATERMARK} notes the high watermark"
            f" {noted} of the log: its segments are missing; put them back from a backup or"
            " another replica"
        )
        yield Listed(UNRECOGNIZED, folder.source, name, reason=reason)


def list_tiered_log(
    folder: Place, source: str, relative_path: str, named: TieredFolder, entries: list[FileEntry]
) -> Iterator[Listed]:
    """Yield the rows of a partition's folder in Aiven's layout; it has no active segment."""
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
            yield unrecognized(source, relative_path, found.entry, found.reason)
    yield log


def _copies(entries: list[FileEntry], parse_name: Callable[[str], int | None]) -> dict[str, str]:
    """Return, for each older copy of a segment with an id, why the newest copy is taken instead."""
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


def _why_strange(entry: FileEntry, base_offset: int | None) -> str | None:
    """Return why a broker fails at an entry, or reads another file; None: it does not."""
    reason = why_strange(entry)
    if reason is not None or base_offset is not None or not entry.name.endswith(LOG_SUFFIX):
        return reason
    number = entry.name.partition(".")[0]
    if number.isascii() and number.isdigit() and int(number) < 2**63:
        return f"no segment name: a broker would open {file_name(int(number), LOG_SUFFIX)} instead"
    return "no segment name: 20 digits and .log expected; a broker would not start"


def _why_unread(swap: str, *, stays: bool) -> str:
    segment = swap.removesuffix(SWAP_SUFFIX)
    does = f"makes it {segment}" if stays else "deletes it"
    return f"it was not read, and no segment holds its records: a broker's start {does}"


def _why_no_segment(name: str, names: set[str]) -> tuple[str, str | None]:
    """Return the kind of a file that is no segment, and what it is; None: a file of Kafka's.

    ``names``: all that are in the folder. A copy of a segment that is not there is for a person to
    look at: the log may lack its records.
    """
    if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)):
        return LEFT_OVER, _LEFT_OVER
    is_of_log = name in OF_LOG or is_unfinished_text(name)
    if is_of_log or is_beside_segments(name) or parse_object_name(name) is not None:
        return PASSED_OVER, None
    base_offset = parse_other_form(name)
    if base_offset is None:
        foreign = foreign_file("", name)
        told = foreign and foreign_reason(foreign, is_read_over=True)
        return PASSED_OVER, told or _NONE_OF_KAFKAS
    segment = file_name(base_offset, LOG_SUFFIX)
    if segment in names:
        return PASSED_OVER, f"named as a copy of {segment}: a broker passes over it"
    reason = f"named as a copy of {segment}, which is not there: a broker passes over it, and it"
    return UNRECOGNIZED, f"{reason} was not read; if it is the segment, put it there as {segment}"
