"""Which replica of the metadata log tells the history of a cluster, and from where."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.internals.decide.agreement import is_of
from kafka_segments.tables.keys import Transform


class Snapshot(NamedTuple):
    """A snapshot that was read from header to footer.

    ``end_offset`` is the first offset that it does not contain, ``ms`` the timestamp of the last
    record that it does, ``keys`` name the replica of the log beside which it lies.
    """

    end_offset: int
    file: str
    ms: int
    keys: tuple[Any, ...]


class MetadataLog(NamedTuple):
    """A replica of the metadata log.

    ``keys`` name it; ``first_offset`` and ``last_offset`` bound the records that end it without a
    gap, and are None where it has none. ``unclear`` has the offsets of the first and the last of
    them that is of an unknown kind, or that cannot be decoded; None: there is none.
    """

    keys: tuple[Any, ...]
    first_offset: int | None
    last_offset: int | None
    leader_epoch: int
    snapshots: tuple[Snapshot, ...]
    unclear: tuple[int, int] | None = None


class HistoryStart(NamedTuple):
    """Where the history begins: with a snapshot (None: with nothing), then records from an offset.

    ``from_offset`` is the first offset of the log that is applied, ``until`` the first one behind
    those that are; None: all are applied.
    """

    log: MetadataLog
    snapshot: Snapshot | None
    from_offset: int
    until: int | None = None

    @property
    def end_offset(self) -> int:
        """The first offset that the history does not reach."""
        last = self.log.last_offset
        if self.until is not None:
            return self.until
        return self.from_offset if last is None else max(self.from_offset, last + 1)


def choose_start(logs: Sequence[MetadataLog]) -> HistoryStart | None:
    """Choose a replica of a cluster, and the earliest state that goes on in it without a gap.

    1. The replica of the last leader epoch and then of the greatest end has all that was
       committed, as in an election. Of equal ones the one is taken whose history begins first.
    2. A log that begins at offset 0 begins with nothing.
    3. Else the first snapshot counts behind which the log has every record. Snapshots hold what
       was committed, so one of another replica is as good.
    4. Where there is none, the last snapshot is all that is known.
    5. The history ends before a record that is not understood: the state behind it is not known.
       Where a whole snapshot lies behind all such records, it begins there.

    None: no replica has a state to begin with.
    """
    snapshots = sorted(snapshot for log in logs for snapshot in log.snapshots)
    starts = [start for log in logs if (start := _clear_start(log, snapshots)) is not None]
    return min(starts, key=_rank, default=None)


def _clear_start(log: MetadataLog, snapshots: Sequence[Snapshot]) -> HistoryStart | None:
    start = _start(log, snapshots)
    if start is None or log.unclear is None or start.from_offset > log.unclear[1]:
        return start
    first, last = log.unclear
    later = [snapshot for snapshot in snapshots if snapshot.end_offset > last]
    behind = _start(log._replace(first_offset=last + 1), later)
    return behind or start._replace(until=max(first, start.from_offset))


def _start(log: MetadataLog, snapshots: Sequence[Snapshot]) -> HistoryStart | None:
    if log.first_offset == 0:
        return HistoryStart(log, None, 0)
    if log.first_offset is not None and log.last_offset is not None:
        reached = range(log.first_offset, log.last_offset + 2)
        for snapshot in snapshots:
            if snapshot.end_offset in reached:
                return HistoryStart(log, snapshot, snapshot.end_offset)
    last = snapshots[-1] if snapshots else None
    if last is None or (log.last_offset is not None and last.end_offset <= log.last_offset):
        return None
    return HistoryStart(log, last, last.end_offset)


def _rank(start: HistoryStart) -> tuple[Any, ...]:
    return (-start.log.leader_epoch, -start.end_offset, start.from_offset, start.log.keys)


def applied_from(start: HistoryStart) -> Transform:
    """Keep the records that tell a history, with the point at which each is applied.

    1. The snapshot's records are applied at the last offset that it contains, at its time.
    2. The log's are applied from the history's first offset on, each at its own.
    3. What could not be read, and records without a value, tell nothing.

    Needs: rows of ``internal_records``.
    Gives: cluster, is_snapshot, row, kind, value_json, point_offset, point_ms.
    """
    snapshot = start.snapshot
    is_of_log = ~F.col("is_snapshot") & (F.col("offset") >= start.from_offset)
    is_of_log &= is_of(start.log.keys)
    if start.until is not None:
        is_of_log &= F.col("offset") < start.until
    is_of_snapshot = F.lit(False)
    point_offset, point_ms = F.col("offset"), F.col("timestamp_ms")
    if snapshot is not None:
        is_of_snapshot = (F.col("file") == snapshot.file) & is_of(snapshot.keys)
        point_offset = F.when(F.col("is_snapshot"), snapshot.end_offset - 1).otherwise(point_offset)
        point_ms = F.when(F.col("is_snapshot"), snapshot.ms).otherwise(point_ms)
    is_applied = F.col("problem").isNull() & F.col("value_json").isNotNull()

    def transform(records: DataFrame) -> DataFrame:
        return records.where((is_of_log | is_of_snapshot) & is_applied).select(
            "cluster",
            "is_snapshot",
            "row",
            "kind",
            "value_json",
            point_offset.cast("long").alias("point_offset"),
            point_ms.cast("long").alias("point_ms"),
        )

    return transform
