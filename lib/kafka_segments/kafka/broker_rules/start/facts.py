"""What a broker's start finds in its log directories, as it was read: no file is opened here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_segments.kafka.text.names import FolderState


class Bad(NamedTuple):
    """Why a file cannot be read: the class that a broker throws, what was found, in which line."""

    exception: str
    reason: str
    line: int | None = None


class Parsed(NamedTuple):
    """A small file: whether it is there, what it says, or why it cannot be read.

    ``unread``: why nobody looked at it, as a pipe or a link that was not followed is in its place.
    """

    is_there: bool = False
    value: Any = None
    bad: Bad | None = None
    unread: str | None = None

    @property
    def problem(self) -> str | None:
        """Return why it is not known what it says; None: it is known, or there is no such file."""
        return self.unread if self.bad is None else self.bad.reason


ABSENT = Parsed()


class SegmentEnd(NamedTuple):
    """Where a segment ends as a broker reads it, from the last entry of its offset index on.

    Attributes:
        next_offset: As ``LogSegment.readNextOffset`` gives it; None: it throws, or was not read.
        valid_bytes: Where the last whole batch ends.
        last_offset: The last offset of that batch; None: there is none.
        has_transactions: That batch is of a transaction, or its marker.
        problem: Why Kafka throws; None: it does not.
        position: At which byte.
        exception: Kafka's class.
        first_offset: Of the first batch; None: not read.
        kept_offset: Where recovery would end, if Kafka throws here; None: it does not.
        is_legacy: That batch is of format v0 or v1, in which records have no producer.
    """

    next_offset: int | None
    valid_bytes: int = 0
    last_offset: int | None = None
    has_transactions: bool = False
    problem: str | None = None
    position: int = 0
    exception: str = "CorruptRecordException"
    first_offset: int | None = None
    kept_offset: int | None = None
    is_legacy: bool = False


class TransactionFile(NamedTuple):
    """What is wrong with a segment's ``.txnindex``.

    ``aborted`` counts the transactions that end in the segment; None: not counted. ``listed``: how
    many entries Kafka reads; -1: there is no file.
    """

    listed: int = -1
    aborted: int | None = None
    problem: str | None = None
    is_refused_version: bool = False


class FoundDamage(NamedTuple):
    """What a start makes of a segment that it recovers and finds damaged.

    ``consequence``: ``cut``, ``split`` or ``refused``. ``files``: those that are cut or deleted.
    ``next_offset``: where the segment ends once it is cut; None: not known.
    """

    base_offset: int
    consequence: str
    position: int
    lost_bytes: int
    lost_records: int | None
    message: str
    files: tuple[str, ...] = ()
    next_offset: int | None = None


@dataclass(frozen=True)
class StartLog:
    """A partition's folder.

    Attributes:
        folder: Its name.
        topic: Topic, as Kafka takes it from the name.
        partition: Kafka partition.
        state: What the name says.
        files: Bytes of each file by its name.
        bases: Base offsets of the segments that are there once swaps are done.
        swaps: For each finished ``.log.swap``: its base offset, first and next offset.
        bad_swaps: Why the end of a ``.log.swap`` cannot be read, by its name.
        deleted: Files that go with leftovers and finished swaps.
        topic_id: ``partition.metadata``.
        epochs: ``leader-epoch-checkpoint``.
        ends: The segments' ends, by base offset.
        first_epoch: Leader epoch of the first batch; None: it has none, or was not read.
        transactions: ``.txnindex`` files, by base offset.
        recovered: Base offsets of the segments that this start recovers.
        noted: What the checkpoints of its log directory have: recovery_point, log_start_offset,
            high_watermark, cleaner_offset.
        unreadable: Why the folder or a file cannot be read by us.
        damages: What recovery finds in the segments that were looked at.
        folders: Names of folders in it.
        unread: Links that were not followed, and pipes, in the place of its files: name and why.
        has_producers: Batches have producer ids; None: not known. Asked where no snapshot is left.
        zeroed: Base offsets of the segments whose time index is taken as it is, and ends in zeros.
        counted: Records of segments, by base offset, that tell whether the cleaner left the gap
            behind them.
    """

    folder: str
    topic: str
    partition: int
    state: FolderState
    files: Mapping[str, int] = field(default_factory=dict)
    bases: tuple[int, ...] = ()
    swaps: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    bad_swaps: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    topic_id: Parsed = ABSENT
    epochs: Parsed = ABSENT
    ends: Mapping[int, SegmentEnd] = field(default_factory=dict)
    first_epoch: int | None = None
    transactions: Mapping[int, TransactionFile] = field(default_factory=dict)
    recovered: tuple[int, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)
    unreadable: str | None = None
    damages: tuple[FoundDamage, ...] = ()
    folders: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    has_producers: bool | None = None
    zeroed: tuple[int, ...] = ()
    counted: Mapping[int, int] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of its segments."""
        return sum(size for name, size in self.files.items() if name.endswith(".log"))

    @property
    def start_offset(self) -> int:
        """Return the log's first offset, as the start takes it."""
        return max(self.noted.get("log_start_offset", 0), self.bases[0] if self.bases else 0)

    @property
    def end_offset(self) -> int | None:
        """Return the log's end, as the start reads it; None: not known.

        What recovery cuts decides before what the last entry of an index leads to, which can lie
        behind the cut.
        """
        if not self.bases:
            return self.noted.get("log_start_offset", 0)
        for damage in self.damages:
            if self.ends_at(damage):
                return damage.next_offset
        found = self.ends.get(self.bases[-1])
        if found is None:
            return None
        is_cut = found.next_offset is None and self.bases[-1] in self.recovered
        return found.kept_offset if is_cut else found.next_offset

    def ends_at(self, damage: FoundDamage) -> bool:
        """Tell whether the log ends where a damaged segment is cut: none is left behind it."""
        is_last = damage.base_offset == self.bases[-1] or len(damage.files) > 1
        return damage.consequence == "cut" and is_last


@dataclass(frozen=True)
class StartDir:
    """A log directory.

    Attributes:
        uri: Where, as a path or URI.
        meta: The properties of ``meta.properties``, as text by their names.
        bootstrap: ``bootstrap.checkpoint``; the value is True where it has a metadata.version.
        checkpoints: The four offset checkpoints by their names.
        odd_folders: Folders whose name is no partition's.
        logs: The folders of partitions, without that of the metadata log.
        metadata_folder: ``__cluster_metadata-0`` is there.
        metadata_id: Its ``partition.metadata``.
        quorum_state: Its ``quorum-state``.
        metadata_odd: Its files whose name has no number.
        metadata_epochs: Its ``leader-epoch-checkpoint``.
        is_clean: ``.kafka_cleanshutdown`` is there.
        unread: Links and folders that were not followed or listed: the path and why.
    """

    uri: str
    meta: Parsed
    bootstrap: Parsed = ABSENT
    checkpoints: Mapping[str, Parsed] = field(default_factory=dict)
    odd_folders: tuple[str, ...] = ()
    logs: tuple[StartLog, ...] = ()
    metadata_folder: bool = False
    metadata_id: Parsed = ABSENT
    quorum_state: Parsed = ABSENT
    metadata_epochs: Parsed = ABSENT
    metadata_odd: tuple[str, ...] = ()
    is_clean: bool = False
    unread: tuple[tuple[str, str], ...] = ()
