"""Plan which segments of each log a kit reads: those that a broker would read.

1. After an unclean stop a broker reads the segment that holds the recovery point, and all later
   ones. A segment without ``.index``, or whose ``.txnindex`` it refuses, is read too, wherever it
   lies.
2. For the first of them it needs the producer state: the newest snapshot at or below its base
   offset. What lies between the two is read as well; without a snapshot that is all of the log.
3. Each later segment is read anyway, so a kit has a snapshot at each. Index files it has of the
   segments of rule 1 alone: those of the others a broker leaves as they are.

Source: LogLoader.recoverLog, recoverSegment; UnifiedLog.rebuildProducerState;
ProducerStateManager.truncateAndReload.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.log_dir_folder import NotedOffsets
from kafka_segments.files.storage.durable_files import TEMPORARY
from kafka_segments.files.storage.links import without_option
from kafka_segments.kafka.text.checkpoints import PARTITION_METADATA, EpochStart
from kafka_segments.kafka.text.names import (
    DELETED_SUFFIX,
    METADATA_TOPIC,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TXN_INDEX_SUFFIX,
    FolderState,
    file_name,
    parse_partition_folder,
)
from kafka_segments.verbs.change.recovery.kit_manifest import KitState, LogKit

AskFile = Callable[[int], bool]
"""Tells something of the file that is named by an offset."""


class KitSegment(NamedTuple):
    """A segment of a log, as it was listed."""

    base_offset: int
    size_bytes: int
    mtime_ns: int


class LogPlan(NamedTuple):
    """What is to be read of a log.

    ``number`` is that of the log directory in the kit, ``folder`` the path of the log's folder.
    ``snapshot`` is the offset of the snapshot that the reading starts from, None: there is none.
    ``first_base`` is the base offset of the log's first segment, whether it is read or not.
    ``txn_indexes`` are the names of the ``.txnindex`` files that are there. ``recovered`` are the
    base offsets of the segments that a broker recovers; of the others it reads the producers.
    """

    number: int
    folder: str
    log: str
    topic: str
    partition: int
    segments: tuple[KitSegment, ...]
    first_base: int
    snapshot: int | None
    recovery_point: int
    log_start: int
    epochs: tuple[EpochStart, ...]
    txn_indexes: frozenset[str]
    recovered: frozenset[int] = frozenset()

    @property
    def read_bytes(self) -> int:
        """Return the bytes of the segments that are read."""
        return sum(segment.size_bytes for segment in self.segments)

    def kit(self, state: KitState, message: str) -> LogKit:
        """Return what the kit says of a log that is not ready."""
        return LogKit(
            log=self.log,
            topic=self.topic,
            partition=self.partition,
            state=state,
            message=message,
            recovery_point=self.recovery_point,
            next_recovery_point=self.recovery_point,
        )


def plan_log(
    rows: Sequence[Listed],
    log_dir: Listed,
    *,
    offsets: NotedOffsets,
    number: int,
    folder: str,
    names: Collection[str],
    has_state: AskFile,
    is_refused: AskFile,
) -> LogPlan | LogKit:
    """Plan one log; return its plan, or what the kit says of a log that is not read.

    Args:
        rows: the rows of the log's folder.
        log_dir: the row of its log directory.
        offsets: what the checkpoints of its log directory note.
        number: the log directory's, in the kit.
        folder: the path of the log's folder.
        names: all names in it.
        has_state: tells whether a snapshot can be read.
        is_refused: tells whether a broker refuses a ``.txnindex`` that is there.
    """
    log = folder.rpartition("/")[2]
    parsed = parse_partition_folder(log)
    topic, partition = (parsed.topic, parsed.partition) if parsed else (log, 0)
    noted = offsets.get((topic, partition), {})
    segments = tuple(
        KitSegment(row.base_offset or 0, row.size_bytes or 0, row.mtime_ns or 0)
        for row in rows
        if row.kind == kinds.SEGMENT
    )
    plan = LogPlan(
        number=number,
        folder=folder,
        log=log,
        topic=topic,
        partition=partition,
        segments=segments,
        first_base=segments[0].base_offset if segments else 0,
        snapshot=None,
        recovery_point=noted.get("recovery_point") or 0,
        log_start=noted.get("log_start_offset") or 0,
        epochs=next((tuple(row.leader_epochs or ()) for row in rows if row.kind == kinds.LOG), ()),
        txn_indexes=frozenset(name for name in names if name.endswith(TXN_INDEX_SUFFIX)),
    )
    left = _why_left(plan, parsed.state if parsed else None, log_dir, rows)
    if left is not None:
        return plan.kit(KitState.LEFT, left)
    refused = _why_refused(plan, parsed.state if parsed else None, rows)
    if refused is not None:
        return plan.kit(KitState.REFUSED, refused)
    return _from_where_it_is_read(plan, names, has_state, is_refused)


def _why_left(
    plan: LogPlan, state: FolderState | None, log_dir: Listed, rows: Sequence[Listed]
) -> str | None:
    if (log_dir.meta or {}).get("was_clean_shutdown"):
        return "its broker was stopped cleanly and recovers nothing"
    if plan.topic == METADATA_TOPIC:
        return "the metadata log: KRaft loads it by rules of its own"
    if state == FolderState.DELETE:
        return "marked -delete: a broker opens it and removes it, and recovers nothing of it"
    is_seen = not any(row.kind == kinds.UNLISTED or row.name == plan.log for row in rows)
    is_listed = state != FolderState.STRAY and is_seen
    if is_listed and not plan.segments:
        return "no segments"
    return None


def _why_refused(plan: LogPlan, state: FolderState | None, rows: Sequence[Listed]) -> str | None:
    """Return why a log is left to its broker; None: it is as a crash alone leaves it."""
    if state == FolderState.FUTURE:
        return "a copy on its way to another log directory, marked -future"
    if state == FolderState.STRAY:
        return (
            "marked -stray: its broker serves it to nobody, yet recovers it like any other log, by"
            f" the recovery point of {plan.topic}-{plan.partition}; if nobody needs it, move it out"
            " of the log directory before the start"
        )
    for row in rows:
        if row.kind == kinds.UNLISTED:
            return f"its folder cannot be listed: {row.reason}"
        if row.kind == kinds.LOG and row.reason is not None:
            return row.reason
        if row.kind == kinds.LOG and row.topic_id is None:
            return (
                f"it has no {PARTITION_METADATA}: a broker takes it for a stray log, renames it to"
                " -stray and serves it to nobody"
            )
        if row.kind == kinds.LEFT_OVER and not row.name.endswith(DELETED_SUFFIX):
            return f"{row.name}: an unfinished compaction or split, which a broker resolves first"
        is_ours = row.name.endswith(TEMPORARY)
        if row.name == plan.log:
            return f"{without_option(row.reason or '')}: its broker recovers it, without the kit"
        if row.kind in (kinds.UNRECOGNIZED, kinds.NOT_FOLLOWED) and not is_ours:
            return f"{row.name}: {row.reason}"
    if plan.recovery_point < 0:
        return f"its recovery point is {plan.recovery_point}: no broker writes that"
    if 0 < plan.log_start < plan.first_base:
        return (
            f"its first segment is {plan.first_base}, its log start offset {plan.log_start}: older"
            " segments are in tiered storage, or lost"
        )
    return None


def _from_where_it_is_read(
    plan: LogPlan, names: Collection[str], has_state: AskFile, is_refused: AskFile
) -> LogPlan:
    bases, names = [segment.base_offset for segment in plan.segments], frozenset(names)
    point = max(bisect_right(bases, plan.recovery_point) - 1, 0)
    lacking = [
        base
        for base in bases[:point]
        if file_name(base, OFFSET_INDEX_SUFFIX) not in names
        or (file_name(base, TXN_INDEX_SUFFIX) in plan.txn_indexes and is_refused(base))
    ]
    plan = plan._replace(recovered=frozenset((*lacking, *bases[point:])))
    first = bases.index(min(plan.recovered))
    for at in range(first, -1, -1):
        is_there = file_name(bases[at], SNAPSHOT_SUFFIX) in names
        if is_there and bases[at] > plan.log_start and has_state(bases[at]):
            return plan._replace(segments=plan.segments[at:], snapshot=bases[at])
    return plan
