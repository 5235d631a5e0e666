"""Read what a start reads of a log directory and its logs, beside the segments' batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from kafka_segments.errors import (
    CorruptTextError,
    FileChangedError,
    SourceError,
    UnreadableBatchError,
)
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node.metadata_log import (
    KraftFile,
    read_kraft_file,
    read_metadata_log,
)
from kafka_segments.files.node.producer_search import has_producers
from kafka_segments.files.node.transaction_files import read_transaction_files
from kafka_segments.files.segments.segment_ends import first_leader_epoch, read_segment_end
from kafka_segments.files.storage.files import (
    Place,
    first_line,
    open_segment,
    place,
    read_whole,
)
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.broker_rules.gaps import gap_behind
from kafka_segments.kafka.broker_rules.start.cuts import Finding
from kafka_segments.kafka.broker_rules.start.facts import (
    Bad,
    FoundDamage,
    Parsed,
    SegmentEnd,
    StartDir,
    StartLog,
)
from kafka_segments.kafka.broker_rules.start.files import Identity, check_meta, check_quorum_state
from kafka_segments.kafka.broker_rules.start.log_facts import odd_names
from kafka_segments.kafka.broker_rules.start.log_start import LogStart
from kafka_segments.kafka.broker_rules.start.metadata import METADATA_FOLDER
from kafka_segments.kafka.broker_rules.start.metadata_facts import (
    ServedLog,
    contradicted_by,
    voter_ids,
)
from kafka_segments.kafka.broker_rules.start.state import MetadataStart
from kafka_segments.kafka.index.segment.batch_reading import headers
from kafka_segments.kafka.index.segment.recovered_segment import TIME_ENTRY_BYTES
from kafka_segments.kafka.messages.records import decode_internal
from kafka_segments.kafka.text import checkpoints
from kafka_segments.kafka.text.names import (
    INDEX_CACHE,
    LOG_SUFFIX,
    METADATA_TOPIC,
    QUORUM_STATE,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    FolderState,
    file_name,
    parse_partition_folder,
)
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout

_MOST_TEXT_BYTES = 64 * 1024 * 1024
_MOST_COUNTED = 256 * 1024 * 1024
_OFFSETS = {
    checkpoints.RECOVERY_POINT: "recovery_point",
    checkpoints.LOG_START_OFFSET: "log_start_offset",
    checkpoints.HIGH_WATERMARK: "high_watermark",
    checkpoints.CLEANER_OFFSET: "cleaner_offset",
}
_READ_ERRORS = (OSError, FileChangedError, SourceError)


def read_start_dir(uri: str, entries: Sequence[FileEntry], *, is_clean: bool) -> StartDir:
    """Read a log directory's own files; its logs come later (``read_start_log``)."""
    folder = place(uri)
    there = {entry.name: entry for entry in entries}
    folders = [entry.name for entry in entries if entry.is_folder and entry.oddity is None]

    def text(name: str, parse: Callable[[str], Any], encoding: str = "utf-8") -> Parsed:
        return read_text(folder, there, name, parse, encoding)

    own = StartDir(
        uri,
        text(checkpoints.META_PROPERTIES, checkpoints.java_properties, "latin-1"),
        _bootstrap(folder, there),
        {name: text(name, partial(checkpoints.parse_offset_checkpoint, name)) for name in _OFFSETS},
        tuple(sorted(name for name in folders if _is_odd(name))),
        is_clean=is_clean,
        unread=tuple((entry.name, entry.oddity) for entry in entries if entry.oddity),
    )
    return own if METADATA_FOLDER not in folders else _with_metadata(own, folder)


def _is_odd(name: str) -> bool:
    """Tell whether a folder's name is no partition's; a marker is gone when they are listed."""
    taken = (INDEX_CACHE, checkpoints.CLEAN_SHUTDOWN)
    return name not in taken and parse_partition_folder(name) is None


def _with_metadata(own: StartDir, parent: Place) -> StartDir:
    folder = parent.child(METADATA_FOLDER)
    entries = entries_of(own.uri, METADATA_FOLDER)
    there = {entry.name: entry for entry in entries}
    files = [entry.name for entry in entries if not entry.is_folder and entry.oddity is None]
    parse = checkpoints.parse_partition_metadata
    return StartDir(
        own.uri,
        own.meta,
        own.bootstrap,
        own.checkpoints,
        own.odd_folders,
        metadata_folder=True,
        metadata_id=read_text(folder, there, checkpoints.PARTITION_METADATA, parse),
        quorum_state=read_text(folder, there, QUORUM_STATE, check_quorum_state),
        metadata_epochs=read_text(
            folder, there, checkpoints.LEADER_EPOCHS, checkpoints.parse_leader_epochs
        ),
        metadata_odd=tuple(odd_names(files)),
        is_clean=own.is_clean,
        unread=own.unread,
    )


def read_text(
    folder: Place,
    there: Mapping[str, FileEntry],
    name: str,
    parse: Callable[[str], Any],
    encoding: str = "utf-8",
) -> Parsed:
    """Read a small file; what a broker would throw at it is part of what is returned."""
    told = _told_by_name(there.get(name))
    if told is not None:
        return told
    try:
        data = read_whole(folder.child(name), most_bytes=_MOST_TEXT_BYTES)
        return Parsed(True, parse(data.decode(encoding)))
    except CorruptTextError as error:
        return Parsed(True, None, Bad(error.exception, error.reason, error.line))
    except UnicodeDecodeError as error:
        return Parsed(True, None, Bad("MalformedInputException", f"no UTF-8: {error.reason}"))
    except OSError as error:
        return Parsed(True, None, Bad("AccessDeniedException", first_line(error)))


def _told_by_name(entry: FileEntry | None) -> Parsed | None:
    """Return what is told of a name where no plain file lies; None: one does, to be read."""
    if entry is None:
        return Parsed()
    if entry.oddity is not None:
        return Parsed(True, unread=entry.oddity)
    if entry.is_folder:
        return Parsed(True, None, Bad("IOException", "it is a folder"))
    return None


def _bootstrap(folder: Place, there: Mapping[str, FileEntry]) -> Parsed:
    """Read ``bootstrap.checkpoint``. Source: BootstrapDirectory, BatchFileReader."""
    told = _told_by_name(there.get(checkpoints.BOOTSTRAP))
    if told is not None:
        return told
    try:
        found = read_kraft_file(folder.child(checkpoints.BOOTSTRAP), check_crc=False)
    except _READ_ERRORS as error:
        return Parsed(True, None, Bad("AccessDeniedException", first_line(error)))
    return Parsed(True, True, _bad_bootstrap(found, there[checkpoints.BOOTSTRAP].size_bytes))


def _bad_bootstrap(found: KraftFile, size_bytes: int) -> Bad | None:
    if found.problem is not None:
        return Bad("CorruptRecordException", found.problem)
    names = []
    for record in found.records:
        if record.is_control:
            continue
        decoded = decode_internal(METADATA_TOPIC, record.key, record.value)
        if decoded.value is None:
            reason = decoded.problem or f"a record of type {decoded.type_id}"
            return Bad("RuntimeException", f"record at offset {record.offset}: {reason}")
        if decoded.kind == "FeatureLevelRecord":
            names.append(decoded.value["name"])
    if not found.records and size_bytes >= layout.LOG_OVERHEAD + layout.MIN_LENGTH:
        return Bad("CorruptRecordException", "zeros where a batch should begin")
    if "metadata.version" not in names:
        return Bad("RuntimeException", "there is no metadata.version in it")
    return None


def read_metadata(dirs: Sequence[StartDir]) -> MetadataStart:
    """Read the metadata log of a node's directories, if it is there."""
    own = next((one for one in dirs if one.metadata_folder), None)
    if own is None:
        return MetadataStart()
    try:
        entries = entries_of(own.uri, METADATA_FOLDER)
        found = read_metadata_log(place(own.uri).child(METADATA_FOLDER), entries)
    except _READ_ERRORS as error:
        return MetadataStart(unknown=first_line(error))
    facts = found.facts
    lacks = found.lacks or (None if facts is None else contradicted_by(facts, _served(dirs)))
    if lacks and not _is_only_voter(own, found):  # others have what is missing here
        return found._replace(facts=None, unknown=found.unknown or lacks)
    return found._replace(lacks=lacks)


def _is_only_voter(own: StartDir, metadata: MetadataStart) -> bool:
    """Tell whether nobody has records of the metadata log that a node's own has not.

    Source: QuorumStateData: later versions leave the voters to records.
    """
    identity = check_meta(own.meta.value or {})
    state = own.quorum_state.value or {}
    voters = metadata.voters or voter_ids(state.get("currentVoters"))
    return isinstance(identity, Identity) and voters == (identity.node_id,)


def _served(dirs: Iterable[StartDir]) -> Iterator[ServedLog]:
    for log in (log for one in dirs for log in one.logs):
        if log.state == FolderState.LIVE and log.topic_id.value is not None:
            epochs, topic_id = log.epochs.value or (), log.topic_id.value
            yield ServedLog(log.folder, topic_id, log.partition, epochs, partial(_end_of, log))


def _end_of(log: StartLog) -> int | None:
    return log.end_offset


def offsets_of(own: StartDir) -> dict[tuple[str, int], dict[str, int]]:
    """Return what the checkpoints of a directory note of each of its logs."""
    noted: dict[tuple[str, int], dict[str, int]] = {}
    for name, column in _OFFSETS.items():
        for topic, partition, offset in own.checkpoints.get(name, Parsed()).value or ():
            noted.setdefault((topic, partition), {})[column] = offset
    return noted


def read_start_log(
    start: LogStart, noted: Mapping[str, int], findings: Sequence[Finding]
) -> StartLog:
    """Read what a start reads of a log beside the batches that it recovers.

    ``findings``: what it makes of the segments that it recovers, as far as they were looked at.
    """
    log = start.log
    folder = place(log.log_dir).child(log.folder)
    there = {name: FileEntry(name, False, size, 0) for name, size in log.files.items()}
    there |= {name: FileEntry(name, True, 0, 0) for name in log.folders}
    there |= {name: FileEntry(name, False, 0, 0, why) for name, why in log.unread}

    def text(name: str, parse: Callable[[str], Any]) -> Parsed:
        return read_text(folder, there, name, parse)

    bases = tuple(start.sizes)
    unreadable, ends, transactions, first_epoch, producers = None, {}, {}, None, None
    zeroed: tuple[int, ...] = ()
    counted: dict[int, int] = {}
    try:
        ends = {} if log.state == FolderState.DELETE else _ends(folder, start)
        last = None if not bases or bases[-1] not in ends else ends[bases[-1]].next_offset
        transactions = read_transaction_files(folder, bases, log.files, end=last)
        first_epoch = _first_epoch(folder, start)
        producers = has_producers(folder, bases, log.files)
        zeroed = tuple(_zeroed(folder, start))
        counted = dict(_counted(folder, start, ends, noted.get("cleaner_offset")))
    except (OSError, FileChangedError) as error:
        unreadable = first_line(error)
    return StartLog(
        log.folder,
        log.topic,
        log.partition,
        log.state,
        log.files,
        bases,
        {base: (log.swap_starts[base], end) for base, end in log.swap_end_offsets.items()},
        log.bad_swaps,
        start.plan.deleted,
        text(checkpoints.PARTITION_METADATA, checkpoints.parse_partition_metadata),
        text(checkpoints.LEADER_EPOCHS, checkpoints.parse_leader_epochs),
        ends,
        first_epoch,
        transactions,
        start.recovered,
        noted,
        unreadable,
        tuple(_damage(start, finding) for finding in findings),
        log.folders,
        log.unread,
        producers,
        zeroed,
        counted,
    )


def _damage(start: LogStart, finding: Finding) -> FoundDamage:
    base = finding.base_offset
    later = sorted(each for each in start.sizes if each > base)[: finding.lost_segments]
    return FoundDamage(
        base,
        finding.consequence,
        finding.position,
        finding.lost_bytes,
        finding.lost_records,
        finding.message,
        tuple(file_name(each, LOG_SUFFIX) for each in (base, *later)),
        finding.next_offset,
    )


def _ends(folder: Place, start: LogStart) -> dict[int, SegmentEnd]:
    ends, last = {}, max(start.sizes, default=None)
    for base in start.sizes:
        name = file_name(base, LOG_SUFFIX)
        suffix = "" if name in start.log.files else SWAP_SUFFIX
        if base == last and not suffix and start.log.end is not None:
            ends[base] = start.log.end
            continue
        ends[base] = read_segment_end(folder, base, start.log.files, suffix=suffix)
    return ends


def _counted(
    folder: Place, start: LogStart, ends: Mapping[int, SegmentEnd], came: int | None
) -> Iterator[tuple[int, int]]:
    """Yield how many records segments have in front of a gap that ends behind the cleaner's place.

    ``came``: where that is; None: it never was at the log. Too large segments are left out.
    """
    for base, after in pairwise(start.sizes):
        end, size = ends.get(base), start.sizes[base]
        gap = None if end is None else gap_behind(end.next_offset, after)
        if gap is None or came is None or after <= came or size > _MOST_COUNTED:
            continue
        with open_segment(folder.child(file_name(base, LOG_SUFFIX))) as opened:
            try:
                batches = headers(opened.read_into, 0, opened.size_bytes)
                counts = [each[wire.BATCH_RECORD_COUNT] for each in batches]
            except UnreadableBatchError:
                continue
        records = np.concatenate(counts) if counts else np.zeros(1, np.int64)
        if (records >= 0).all():
            yield base, int(records.sum())


def _zeroed(folder: Place, start: LogStart) -> Iterator[int]:
    """Yield the segments whose time index is not made anew, and ends in an entry of zeros.

    The only entry of a sound one may be that of the segment's first record, of 1970.
    """
    for base in start.sizes:
        name = file_name(base, TIME_INDEX_SUFFIX)
        entries = start.log.files.get(name, 0) // TIME_ENTRY_BYTES
        if base in start.recovered or entries < 2:
            continue
        last = bytearray(TIME_ENTRY_BYTES)
        with open_segment(folder.child(name), reads_ahead=False) as opened:
            filled = opened.read_into((entries - 1) * TIME_ENTRY_BYTES, memoryview(last))
        if filled == TIME_ENTRY_BYTES and not any(last):
            yield base


def _first_epoch(folder: Place, start: LogStart) -> int | None:
    """Return the leader epoch of a log's first batch; None: it is of a format without."""
    base = min(start.sizes, default=None)
    if base is None or file_name(base, LOG_SUFFIX) not in start.log.files:
        return None
    return first_leader_epoch(folder.child(file_name(base, LOG_SUFFIX)))
