"""What a broker's start does with one log.

1. After a hard stop the segment that holds the recovery point and all later ones are recovered.
   A log without recovery point is recovered from its first segment on.
2. A segment without ``.index``, or whose ``.txnindex`` ends a transaction below the base offset,
   is recovered after a clean stop too; after a hard stop once more, if rule 1 holds for it.
3. ``__cluster_metadata`` is recovered whole at every start: Kafka's raft layer knows no clean stop
   and no recovery point, and reads the log before the broker loads any other.
4. Logs marked ``-delete`` are opened and removed: only rule 2 holds for them. Those marked
   ``-stray`` and ``-future`` are recovered as any other.
5. To recover a segment the broker needs the producers' state at its base offset, and after any
   stop that at the log's end. It reads it from the newest snapshot at or below, and from there on
   all batches (``broker_rules.replays``).
6. With a recovery point at the log's end and all index files and snapshots in their place the
   active segment is recovered all the same: it holds the recovery point. An empty one costs next
   to nothing, and so a kit leaves one (``forecast.decide.kits``).

Source: LogLoader.load, recoverLog, recoverSegment; UnifiedLog.rebuildProducerState;
LogManager.loadLogs; KafkaMetadataLog (4.3.1).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.start.facts import SegmentEnd
from kafka_segments.kafka.broker_rules.start.replays import Replay, snapshots_of
from kafka_segments.kafka.broker_rules.start.startup import StartupPlan, plan_startup
from kafka_segments.kafka.text.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    METADATA_TOPIC,
    SWAP_SUFFIX,
    FolderState,
    file_name,
)

OFFSET_INDEX_BYTES = 10_485_760
TIME_INDEX_BYTES = 10_485_756
_MAX_INT64 = 2**63 - 1
_LEFT_BEHIND = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)


@dataclass(frozen=True)
class FoundLog:
    """A partition's folder as it lies there.

    Attributes:
        log_dir: The folder above it, as a path or URI.
        folder: The folder's name.
        topic: Topic.
        partition: Kafka partition.
        state: What the folder's name says of it.
        files: Bytes of each file by its name.
        recovery_point: Of the log directory's checkpoint; None: it has none for the partition.
        log_start_offset: Of its checkpoint; None: none.
        swap_end_offsets: Next offset of each ``.log.swap``, by its base offset.
        swap_starts: The first offset in each, in the same way.
        bad_swaps: Why the end of a ``.log.swap`` cannot be read, by its name.
        folders: Names of folders in it.
        unread: Links that were not followed, and pipes, in the place of its files: name and why.
        end: Where the last segment ends; None: not read, as no snapshot lies behind its beginning.
        refused_txn_indexes: Base offsets of segments whose ``.txnindex`` fails Kafka's check.
        bad_snapshots: Offsets of producers' snapshots that were looked at, and cannot be read.
    """

    log_dir: str
    folder: str
    topic: str
    partition: int
    state: FolderState
    files: Mapping[str, int]
    recovery_point: int | None = None
    log_start_offset: int | None = None
    swap_end_offsets: Mapping[int, int] = field(default_factory=dict)
    refused_txn_indexes: frozenset[int] = frozenset()
    swap_starts: Mapping[int, int] = field(default_factory=dict)
    bad_swaps: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    end: SegmentEnd | None = None
    bad_snapshots: frozenset[int] = frozenset()

    @property
    def is_metadata(self) -> bool:
        """Tell whether Kafka's raft layer loads the log."""
        return self.topic == METADATA_TOPIC


class LogStart(NamedTuple):
    """What a start does with a log; segments by their base offsets, in order.

    ``recovered`` are read again, checksums and all: in a first pass those that are ``lacking`` an
    index, in a second pass those at or after the recovery point, ``unflushed``. The batches of
    ``replayed`` are read for the producers' state alone. ``sizes``: bytes of every segment that
    stays, by its base offset.
    ``full_indexes``: index files at their full, preallocated size, in all but the last segment.
    ``loaded_snapshots``: the producers' snapshots that it takes the state from, by their offsets.
    """

    log: FoundLog
    plan: StartupPlan
    sizes: Mapping[int, int]
    lacking: tuple[int, ...]
    unflushed: tuple[int, ...]
    replayed: tuple[int, ...]
    full_indexes: tuple[str, ...]
    left_behind: tuple[str, ...]
    loaded_snapshots: frozenset[int]
    is_clean: bool

    @property
    def recovered(self) -> tuple[int, ...]:
        """Return the segments of both passes, each once."""
        return tuple(sorted({*self.lacking, *self.unflushed}))

    @property
    def read(self) -> tuple[int, ...]:
        """Return the segments that are recovered, or read for the producers' state, each once."""
        return tuple(sorted({*self.replayed, *self.recovered}))

    def without_snapshots(self, bad: Collection[int]) -> "LogStart":
        """Return what the start does if some snapshots cannot be read."""
        log = replace(self.log, bad_snapshots=self.log.bad_snapshots.union(bad))
        return decide_start(log, is_clean=self.is_clean)

    def bytes_of(self, bases: Sequence[int]) -> int:
        """Return the bytes of some of its segments."""
        return sum(self.sizes[base] for base in bases)


def decide_start(log: FoundLog, *, is_clean: bool) -> LogStart:
    """Say what a start does with a log.

    Args:
        log: the log as it lies there.
        is_clean: ``.kafka_cleanshutdown`` lies in its log directory.

    Raises:
        KeyError: ``swap_end_offsets`` lacks a ``.log.swap`` that is to replace segments.
    """
    plan = plan_startup(
        log.files,
        is_clean=is_clean and not log.is_metadata,
        recovery_point=0 if log.is_metadata else log.recovery_point or 0,
        log_start_offset=log.log_start_offset or 0,
        swap_end_offsets=log.swap_end_offsets,
    )
    unflushed = () if log.state == FolderState.DELETE else plan.recovered_second
    sizes = _sizes(log, plan)
    odd = {*plan.recovered_first, *log.refused_txn_indexes} & set(sizes)
    lacking = tuple(sorted(odd))
    replay = _replay(log, sizes, lacking, unflushed, is_clean=is_clean)
    return LogStart(
        log,
        plan,
        sizes,
        lacking,
        unflushed,
        tuple(sorted(replay.read)),
        _full_indexes(log, tuple(sizes)),
        tuple(sorted(name for name in log.files if name.endswith(_LEFT_BEHIND))),
        frozenset(replay.loaded),
        is_clean,
    )


def _sizes(log: FoundLog, plan: StartupPlan) -> dict[int, int]:
    """Return the bytes of each segment that is there once leftovers are gone and swaps done."""
    renamed = {new: log.files[old] for old, new in plan.renamed}
    gone = {*plan.deleted, *(old for old, _ in plan.renamed)}
    there = {**{name: size for name, size in log.files.items() if name not in gone}, **renamed}
    found = {_offset(name): size for name, size in there.items() if name.endswith(LOG_SUFFIX)}
    return {base: size for base, size in sorted(found.items()) if base >= 0}


def _replay(
    log: FoundLog,
    sizes: Mapping[int, int],
    lacking: Sequence[int],
    unflushed: Sequence[int],
    *,
    is_clean: bool,
) -> Replay:
    """Return what is read for the producers' state alone."""
    bases, start = tuple(sizes), log.log_start_offset or 0
    snapshots = snapshots_of(log.files)
    replay = Replay(snapshots, bases, log.bad_snapshots)
    if log.is_metadata or not sizes:
        return replay
    end = _end(log, sizes, snapshots)
    replay.recovers(lacking, log_start=start, log_end=end)
    replay.recovers(unflushed, log_start=start, log_end=end)
    if log.state != FolderState.DELETE:
        replay.ends(log_start=max(start, bases[0]), log_end=end, is_clean=is_clean)
    return replay


def _end(log: FoundLog, sizes: Mapping[int, int], snapshots: Sequence[int]) -> int:
    """Return a log's end; where it was not read, one behind all snapshots that count."""
    last = max(sizes)
    if log.end is not None and log.end.next_offset is not None:
        return log.end.next_offset
    newest = max(snapshots, default=last)
    return newest if newest > last else last + (sizes[last] > 0)


def _full_indexes(log: FoundLog, bases: tuple[int, ...]) -> tuple[str, ...]:
    """Return the index files that a roll or a clean stop would have cut to their entries."""
    names = (file_name(base, suffix) for base in bases[:-1] for suffix in INDEX_SUFFIXES[:2])
    full = (OFFSET_INDEX_BYTES, TIME_INDEX_BYTES)
    return tuple(name for name in names if log.files.get(name) in full)


def _offset(name: str) -> int:
    """Return the offset in a file's name, -1 where there is none."""
    digits = name.partition(".")[0]
    offset = int(digits) if digits.isdecimal() and digits.isascii() else -1
    return offset if offset <= _MAX_INT64 else -1
