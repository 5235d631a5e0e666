"""Which replica of the metadata log tells the history of a cluster, and from where."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.verbs.find.internals.metadata.decide.agreement import is_of


class Snapshot(NamedTuple):
    """A snapshot that was read from header to footer.

    ``end_offset`` is the first offset that it does not contain, ``ms`` the timestamp of the last
    record that it does, ``keys`` name the replica of the log beside which it lies.
    """

    end_offset: int
    file: str
    ms: int
    keys: tuple[Any, ...]


class Run(NamedTuple):
    """Records of a replica that follow each other without a gap, and are all understood.

    ``epochs``: the first offset of each leader epoch in it, and the epoch.
    """

    first_offset: int
    last_offset: int
    epochs: tuple[tuple[int, int], ...]

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of the record at an offset of the run."""
        return max(entry for entry in self.epochs if entry[0] <= offset)[1]

    def ends_or_covers(self, offset: int, epoch: int) -> bool:
        """Tell whether what a replica has before its record at an offset is what the run has there.

        So it is where the run has a record of the same leader epoch there, or just before: one
        leader wrote both, in the order of its own log.
        """
        last = min(offset, self.last_offset)
        return self.first_offset < offset <= self.last_offset + 1 and self.epoch_at(last) == epoch


class Part(NamedTuple):
    """Records that another place tells: those of a replica from an offset until another."""

    keys: tuple[Any, ...]
    from_offset: int
    until: int


class MetadataLog(NamedTuple):
    """A replica of the metadata log.

    ``keys`` name it; ``first_offset`` and ``last_offset`` bound the records that end it without a
    gap, and are None where it has none. ``unclear`` has the offsets of the first and the last of
    them that is of an unknown kind, or that cannot be decoded; None: there is none. ``runs`` are
    all that it has.
    """

    keys: tuple[Any, ...]
    first_offset: int | None
    last_offset: int | None
    leader_epoch: int
    snapshots: tuple[Snapshot, ...]
    unclear: tuple[int, int] | None = None
    runs: tuple[Run, ...] = ()


_Held = tuple[Run, tuple[Any, ...]]  # and the keys of the log that has it


class HistoryStart(NamedTuple):
    """Where the history begins: with a snapshot (None: with nothing), then records from an offset.

    ``from_offset`` is the first offset that is applied, ``until`` the first one behind those that
    are; None: all are applied. ``parts`` have the records that the log itself lacks, the last ones
    first.
    """

    log: MetadataLog
    snapshot: Snapshot | None
    from_offset: int
    until: int | None = None
    parts: tuple[Part, ...] = ()

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
    2. What it lacks before its records is taken from runs of other replicas, or of its own before
       a gap, that meet them in the same leader epoch (``Run.ends_or_covers``).
    3. A log that begins at offset 0 begins with nothing.
    4. Else the first snapshot counts behind which the log has every record. Snapshots hold what
       was committed, so one of another replica is as good.
    5. Where there is none, the last snapshot is all that is known.
    6. The history ends before a record that is not understood: the state behind it is not known.
       Where a whole snapshot lies behind all such records, it begins there.

    None: no replica has a state to begin with.
    """
    snapshots = sorted(snapshot for log in logs for snapshot in log.snapshots)
    runs = [(run, log.keys) for log in logs for run in log.runs]
    starts = [start for log in logs if (start := _clear_start(log, snapshots, runs)) is not None]
    return min(starts, key=_rank, default=None)


def _clear_start(
    log: MetadataLog, snapshots: Sequence[Snapshot], runs: Sequence[_Held]
) -> HistoryStart | None:
    start = _start(log, snapshots, runs)
    if start is None or log.unclear is None or start.from_offset > log.unclear[1]:
        return start
    first, last = log.unclear
    later = [snapshot for snapshot in snapshots if snapshot.end_offset > last]
    behind = _start(log._replace(first_offset=last + 1), later, ())
    return behind or start._replace(until=max(first, start.from_offset))


def _start(
    log: MetadataLog, snapshots: Sequence[Snapshot], runs: Sequence[_Held]
) -> HistoryStart | None:
    if log.first_offset is not None and log.last_offset is not None:
        parts = tuple(_parts(log, log.first_offset, runs))
        first = parts[-1].from_offset if parts else log.first_offset
        if first == 0:
            return HistoryStart(log, None, 0, parts=parts)
        reached = range(first, log.last_offset + 2)
        for snapshot in snapshots:
            if snapshot.end_offset in reached:
                begin = snapshot.end_offset
                needed = tuple(part for part in parts if part.until > begin)
                return HistoryStart(log, snapshot, begin, parts=needed)
    last = snapshots[-1] if snapshots else None
    if last is None or (log.last_offset is not None and last.end_offset <= log.last_offset):
        return None
    return HistoryStart(log, last, last.end_offset)


def _parts(log: MetadataLog, offset: int, runs: Sequence[_Held]) -> Iterator[Part]:
    """Yield what leads up to a log's record at an offset, as far back as it goes."""
    own = [run for run in log.runs if run.first_offset <= offset <= run.last_offset]
    epoch = own[-1].epoch_at(offset) if own else None
    while offset and epoch is not None:
        before = [held for held in runs if held[0].ends_or_covers(offset, epoch)]
        if not before:
            return
        run, keys = min(before, key=lambda held: (held[0].first_offset, held[1]))
        yield Part(keys, run.first_offset, offset)
        offset, epoch = run.first_offset, run.epoch_at(run.first_offset)


def _rank(start: HistoryStart) -> tuple[Any, ...]:
    return (-start.log.leader_epoch, -start.end_offset, start.from_offset, start.log.keys)


def runs_of(steps: Sequence[Any], last_offset: int | None) -> tuple[Run, ...]:
    """Put together the runs of a log.

    ``steps``: in order, the offset of each record that does not go on as the one before: it is the
    first, or behind a gap, in another leader epoch, or one of both is not understood; its
    leader_epoch, before (the offset of the record before it) and is_unclear. ``last_offset``: the
    log's.
    """
    runs: list[Run] = []
    is_open = False
    for step, following in zip_longest(steps, steps[1:]):
        last = last_offset if following is None else following["before"]
        if step["is_unclear"] or last is None or step["leader_epoch"] is None:
            is_open = False
            continue
        entry = (step["offset"], step["leader_epoch"])
        if is_open and runs[-1].last_offset + 1 == step["offset"]:
            run = runs.pop()
            runs.append(Run(run.first_offset, last, (*run.epochs, entry)))
        else:
            runs.append(Run(step["offset"], last, (entry,)))
        is_open = True
    return tuple(runs)


def applied_from(start: HistoryStart) -> Transform:
    """Keep the records that tell a history, with the point at which each is applied.

    1. The snapshot's records are applied at the last offset that it contains, at its time.
    2. The log's are applied from the history's first offset on, each at its own, and before them
       those of the parts.
    3. What could not be read, and records without a value, tell nothing.

    Needs: rows of ``internal_records``.
    Gives: cluster, is_snapshot, row, kind, value_json, point_offset, point_ms.
    """
    snapshot = start.snapshot
    own_from = max(start.from_offset, *(part.until for part in start.parts[:1]), 0)
    is_of_log = is_of(start.log.keys) & (F.col("offset") >= own_from)
    for part in start.parts:
        of_part = F.col("offset").between(max(part.from_offset, start.from_offset), part.until - 1)
        is_of_log |= is_of(part.keys) & of_part
    is_of_log &= ~F.col("is_snapshot")
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
