"""Read a metadata log as a starting broker does: its newest checkpoint, and the log behind it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kafka_segments.errors import CorruptTextError, SourceError
from kafka_segments.files.segments.chunks import Chunk, ChunkOptions, ChunkReader
from kafka_segments.files.segments.decoding import record_filler
from kafka_segments.files.storage.files import Place, open_segment, read_whole
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.broker_rules.start.metadata_facts import (
    CheckpointId,
    MetadataFacts,
    begins_anew,
    checkpoint_id,
)
from kafka_segments.kafka.broker_rules.start.state import MetadataStart
from kafka_segments.kafka.index.log.leader_epochs import are_rising
from kafka_segments.kafka.messages.control import SNAPSHOT_FOOTER, VOTERS
from kafka_segments.kafka.messages.json_form import json_form
from kafka_segments.kafka.messages.metadata_image import (
    BROKER,
    BROKERS,
    CONFIGS,
    PARTITIONS,
    TOPIC,
    TOPICS,
    MetadataImage,
    MetadataReplayError,
)
from kafka_segments.kafka.messages.records import decode_internal
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, parse_leader_epochs
from kafka_segments.kafka.text.names import LOG_SUFFIX, METADATA_TOPIC, parse_segment_name
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import filling
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.record_filling import RecordFiller

_MOST_BATCH_BYTES = 64 * 1024 * 1024
_MOST_TEXT_BYTES = 64 * 1024 * 1024


class KraftRecord(NamedTuple):
    """A record of the metadata log, of a checkpoint or of ``bootstrap.checkpoint``; time in ms."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    is_control: bool


class KraftFile(NamedTuple):
    """The records of a file; where they end.

    ``damage``: why they end before the file does; None: they do not. ``is_torn``: all that is wrong
    there is a last batch that is not whole. ``undecoded``: why a batch before cannot be decoded.
    """

    records: list[KraftRecord]
    next_offset: int
    epoch: int
    damage: str | None = None
    is_torn: bool = False
    undecoded: str | None = None

    @property
    def problem(self) -> str | None:
        """Why a broker throws at the file; None: it does not."""
        return self.undecoded or (None if self.is_torn else self.damage)


def read_metadata_log(folder: Place, entries: Iterable[FileEntry]) -> MetadataStart:
    """Read a metadata log from its folder; ``entries``: what lies in it.

    Raises:
        OSError: a file cannot be read.
        FileChangedError: a file became shorter.
    """
    entries = list(entries)
    names = {one.name for one in entries if not one.is_folder and one.oddity is None}
    bases = sorted(base for name in names if (base := _base_of(name)) is not None)
    ids = {one: name for name in names if (one := checkpoint_id(name)) is not None}
    start = bases[0] if bases else 0
    kept = [one for one in ids if one.offset >= start]
    newest = max(kept, default=None)
    log = _log_of(folder, bases)
    is_anew = begins_anew(newest, end=log.end)
    read = MetadataStart(
        newest=newest,
        is_anew=is_anew,
        start=start,
        end=log.end,
        checkpoints=tuple(sorted(ids.values())),
    )
    image, unknown, lacks = _Image(), log.undecoded, log.damage
    checkpoint = KraftFile([], 0, 0)
    if newest is not None:
        checkpoint = read_kraft_file(folder.child(ids[newest]))
        if checkpoint.problem is not None:
            problem = checkpoint.problem
            return read._replace(unknown=problem, bad_checkpoint=problem, is_anew=False)
        lacks = _lacks_end(ids[newest], checkpoint) or lacks
        image.replay(checkpoint.records, has_times=False)
    elif start > 0:
        unknown = f"the log begins at offset {start}, and no .checkpoint has what was before"
    floor = start if newest is None else newest.offset
    behind = [] if is_anew else [record for record in log.records if record.offset >= floor]
    image.replay(behind)
    unknown = unknown or _gap(behind, floor) or _in_place_of_a_file(entries, floor)
    unknown = unknown or image.unknown
    lacks = lacks or _missing_end(folder, names, newest, log.end)
    has_begin = newest is None and not lacks
    return read._replace(
        facts=None if unknown else image.facts(has_begin=has_begin),
        unknown=unknown,
        lacks=lacks,
        voters=_voters([*checkpoint.records, *behind]),
    )


def _voters(records: Iterable[KraftRecord]) -> tuple[int, ...] | None:
    """Return the voters that records name last; None: they name none, quorum-state has them."""
    voters = None
    for record in records:
        if record.is_control:
            found = decode_internal(METADATA_TOPIC, record.key, record.value, is_control=True)
            if found.kind == VOTERS.name and found.value is not None:
                voters = tuple(int(voter["voterId"]) for voter in found.value["voters"])
    return voters


def _base_of(name: str) -> int | None:
    return parse_segment_name(name) if name.endswith(LOG_SUFFIX) else None


def _in_place_of_a_file(entries: Iterable[FileEntry], floor: int) -> str | None:
    """Return what lies in the place of a file that would have records from an offset on."""
    for one in entries:
        told = checkpoint_id(one.name)
        base = _base_of(one.name) if told is None else told.offset
        if base is not None and base >= floor and (one.is_folder or one.oddity is not None):
            return f"{one.name}: {one.oddity or 'it is a folder'}"
    return None


def _missing_end(
    folder: Place, names: Iterable[str], newest: CheckpointId | None, end: CheckpointId
) -> str | None:
    """Return what tells that the log had records behind its end; None: nothing at hand does.

    A checkpoint is made of records that the log has. An entry of ``leader-epoch-checkpoint`` is
    written with the first batch of its epoch, so one that begins at the log's end may be the batch
    that was about to be written.

    Source: KafkaRaftLog.createNewSnapshot, UnifiedLog.append.
    """
    if not any(_base_of(name) is not None for name in names):
        return "no segment of the log is there"
    if newest is not None and newest.offset > end.offset:
        return _cut(end, f"its newest .checkpoint ends at {newest.offset}")
    if LEADER_EPOCHS not in names:
        return None
    try:
        text = read_whole(folder.child(LEADER_EPOCHS), most_bytes=_MOST_TEXT_BYTES).decode()
        epochs = parse_leader_epochs(text)
    except (OSError, SourceError, UnicodeDecodeError, CorruptTextError):
        return None
    last = epochs[-1] if epochs and are_rising(epochs) else None
    if last is None or last.start_offset <= end.offset:
        return None
    return _cut(end, f"by its {LEADER_EPOCHS} epoch {last.epoch} begins at {last.start_offset}")


def _cut(end: CheckpointId, other: str) -> str:
    return f"the log ends at offset {end.offset}, {other}: its last records are missing"


def _lacks_end(name: str, checkpoint: KraftFile) -> str | None:
    """Return why a checkpoint is not whole; None: it is, its last record is its footer.

    A start takes what is there of it. Source: RecordsSnapshotWriter.freeze.
    """
    last = checkpoint.records[-1] if checkpoint.records else None
    if last is not None and last.is_control:
        found = decode_internal(METADATA_TOPIC, last.key, last.value, is_control=True)
        if found.kind == SNAPSHOT_FOOTER.name:
            return None
    return f"{name} is not whole: {checkpoint.damage or 'its last record is no footer'}"


def _gap(records: list[KraftRecord], first: int) -> str | None:
    """Return which offsets are missing from the first one on; None: none, none is compacted."""
    for expected, record in enumerate(records, first):
        if record.offset < expected:
            return f"offset {record.offset} comes again behind offset {expected - 1} in the log"
        if record.offset > expected:
            return f"offsets {expected} to {record.offset - 1} are missing in the log"
    return None


class _Log(NamedTuple):
    """The records of a log, its end, what is damaged and what cannot be decoded in it."""

    records: list[KraftRecord]
    end: CheckpointId
    damage: str | None
    undecoded: str | None


def _log_of(folder: Place, bases: list[int]) -> _Log:
    """Read a log as far as a start does.

    Recovery, which each start makes, cuts a bad end. A last batch that is not whole was being
    written. What follows other damage was there, and a quorum may still have it.
    """
    records: list[KraftRecord] = []
    end, epoch, damage, undecoded = bases[0] if bases else 0, 0, None, None
    for base in bases:
        name = f"{base:020d}{LOG_SUFFIX}"
        found = read_kraft_file(folder.child(name))
        records += found.records
        end, epoch = max(found.next_offset, base), max(epoch, found.epoch)
        if found.undecoded is not None:
            undecoded = undecoded or f"{name}: {found.undecoded}"
        if found.damage is not None:
            is_being_written = found.is_torn and base == bases[-1]
            damage = None if is_being_written else f"{name}: {found.damage}"
            break
    return _Log(records, CheckpointId(end, epoch), damage, undecoded)


class _Image:
    """The state of a cluster, replayed; ``unknown`` says from which record on it is not known."""

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._rows: dict[str, dict[Any, dict[str, Any]]] = {}
        self._set_at: dict[tuple[str, str], int] = {}
        self._ever: set[str] = set()
        self.unknown: str | None = None

    def replay(self, records: list[KraftRecord], *, has_times: bool = True) -> None:
        """Apply records until one is not understood.

        ``has_times``: those of the log were written when something changed, a checkpoint's later.
        """
        for record in records:
            if record.is_control or self.unknown is not None:
                continue
            found = decode_internal(METADATA_TOPIC, record.key, record.value)
            version, laid_out = found.value_version, found.value_layout
            if found.value is None or version is None or laid_out is None:
                what = found.problem or f"a record of type {found.type_id}, of a newer release"
                self.unknown = f"metadata offset {record.offset}: {what}"
                return
            value = json_form(laid_out, version, found.value)
            try:
                for change in self._image.replay(found.kind, value):
                    rows = self._rows.setdefault(change.table, {})
                    if change.table == TOPICS:
                        self._ever.add(change.key[0])
                    if has_times and change.table == CONFIGS and change.key[0] == TOPIC:
                        self._set_at[change.key[1:]] = record.timestamp
                    if change.values is None:
                        rows.pop(change.key, None)
                    else:
                        rows[change.key] = change.values
            except (MetadataReplayError, KeyError) as error:
                self.unknown = f"metadata offset {record.offset}: {error}"

    def facts(self, *, has_begin: bool) -> MetadataFacts:
        """Return the state so far; ``has_begin``: every record of the cluster was applied."""
        configs: dict[str, dict[str, dict[str, str]]] = {TOPIC: {}, BROKER: {}}
        for row in self._rows.get(CONFIGS, {}).values():
            of_type = configs.get(row["resource_type"], {})
            of_type.setdefault(row["resource_name"], {})[row["name"]] = row["value"]
        partitions = self._rows.get(PARTITIONS, {}).values()
        return MetadataFacts(
            {
                (row["topic_id"], row["partition"]): (
                    tuple(row["replicas"]),
                    tuple(row["directories"]),
                )
                for row in partitions
            },
            {row["topic_id"]: row["topic"] for row in self._rows.get(TOPICS, {}).values()},
            configs[TOPIC],
            {
                row["node_id"]: tuple(row["log_dirs"])
                for row in self._rows.get(BROKERS, {}).values()
            },
            configs[BROKER],
            self._set_at,
            {(row["topic_id"], row["partition"]): row["leader_epoch"] for row in partitions},
            self._ever if has_begin else None,
        )


def read_kraft_file(file: Place, *, check_crc: bool = True) -> KraftFile:
    """Read the records of a segment or checkpoint of the metadata log.

    Raises:
        OSError: it cannot be read.
        FileChangedError: it became shorter.
    """
    reader = ChunkReader(
        ChunkOptions(needs_body=True, check_crc=check_crc, max_batch_bytes=_MOST_BATCH_BYTES)
    )
    filler = record_filler((True, True, False), max_batch_bytes=_MOST_BATCH_BYTES)
    records: list[KraftRecord] = []
    next_offset, epoch, damage, is_torn, undecoded = 0, 0, None, False, None
    with open_segment(file) as opened:
        chunks = reader.read(
            opened.read_into, size_bytes=opened.size_bytes, written_bytes=opened.written_bytes
        )
        for chunk in chunks:
            if chunk.batches.shape[1]:
                next_offset = int(chunk.batches[wire.BATCH_LAST_OFFSET, -1]) + 1
                epoch = int(chunk.batches[wire.BATCH_LEADER_EPOCH, -1])
            records += _records(filler, chunk)
            undecoded = undecoded or next(iter(filler.errors.values()), None)
            if chunk.end_reason is not None:
                damage = f"{chunk.end_reason} (at byte {chunk.end_position})"
                is_torn = _is_torn(opened.read_into, chunk.end_position, opened.size_bytes)
    return KraftFile(records, next_offset, epoch, damage, is_torn, undecoded)


def _records(filler: RecordFiller, chunk: Chunk) -> Iterator[KraftRecord]:
    if not chunk.batches.shape[1]:
        return
    attributes = chunk.batches[wire.BATCH_ATTRIBUTES]
    for rows in filler.fill(chunk.batches, chunk.data, chunk.data_position):
        columns = filler.columns
        for row in range(rows):
            batch = int(columns.rows[filling.ROW_BATCH, row])
            yield KraftRecord(
                int(columns.rows[filling.ROW_OFFSET, row]),
                int(columns.rows[filling.ROW_TIMESTAMP, row]),
                _bytes(columns.key, row),
                _bytes(columns.value, row),
                bool(attributes[batch] & layout.CONTROL),
            )


def _bytes(column: filling.Bytes, row: int) -> bytes | None:
    if column.is_null[row]:
        return None
    return bytes(column.data[column.ends[row] : column.ends[row + 1]])


def _is_torn(read_into: Any, position: int, size_bytes: int) -> bool:
    """Tell whether what is left of a file is the beginning of a batch that is not whole."""
    left = size_bytes - position
    if left < layout.HEADER_BYTES:
        return True
    header = bytearray(layout.LOG_OVERHEAD)
    read_into(position, memoryview(header))
    length = int.from_bytes(header[layout.LENGTH : layout.LENGTH + 4], "big", signed=True)
    return length + layout.LOG_OVERHEAD > left
