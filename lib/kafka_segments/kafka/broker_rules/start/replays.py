"""Which segments a start reads for the producers' state alone.

1. The state is built anew before each segment that is recovered, and once more when all segments
   are loaded: from the newest snapshot at or below that offset on, else from the log's start on,
   all batches up to the offset are read.
2. Each time the snapshots beyond the offset go, and one at it is left; so does recovery at a
   segment's end. So behind a segment that is recovered inside a log all later ones are read.
3. Before the last time a snapshot at no segment's base offset goes, if it is not the newest of
   these, or lies below the last base offset.
4. After a clean stop nothing is read if no snapshot is left then: the producers are forgotten.
5. A snapshot that cannot be read goes as it is loaded, and the one before it is; until then it
   counts by its name.
6. A log marked ``-delete`` is not read to its end. The metadata log is recovered whole.

Source: LogLoader.load, recoverSegment; UnifiedLog.rebuildProducerState; ProducerStateManager
truncateAndReload, loadFromSnapshot, takeSnapshot, removeStraySnapshots (4.3.1).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

from kafka_segments.kafka.text.names import SNAPSHOT_SUFFIX

_MAX_INT64 = 2**63 - 1


def snapshots_of(files: Iterable[str]) -> list[int]:
    """Return the offsets of the producers' snapshots among a folder's files, in order."""
    digits = [name.partition(".")[0] for name in files if name.endswith(SNAPSHOT_SUFFIX)]
    offsets = [int(each) for each in digits if each.isdecimal() and each.isascii()]
    return sorted(offset for offset in offsets if offset <= _MAX_INT64)


def kept_snapshots(snapshots: Iterable[int], bases: Collection[int]) -> list[int]:
    """Return the snapshots that are left by rule 3, in order."""
    snapshots = sorted(snapshots)
    newest = max((offset for offset in snapshots if offset not in bases), default=-1)
    stays = newest if bases and newest >= max(bases) else None
    return [offset for offset in snapshots if offset in bases or offset == stays]


class Replay:
    """The producers' snapshots of a log while it loads, and the segments read for their state.

    ``snapshots``: offsets of those that lie there; ``unreadable``: of those that cannot be read.
    ``bases``: base offsets of the segments.
    ``read``: those that were read. ``loaded``: the snapshots that lay there and were loaded.
    """

    def __init__(
        self, snapshots: Iterable[int], bases: Sequence[int], unreadable: Iterable[int] = ()
    ) -> None:
        self._snapshots = sorted(snapshots)
        self._bases = bases
        self._unreadable = set(unreadable)
        self._written: set[int] = set()
        self.read: set[int] = set()
        self.loaded: set[int] = set()

    def recovers(self, recovered: Sequence[int], *, log_start: int, log_end: int) -> None:
        """Recover segments, given by their base offsets, one after another."""
        ends = dict(zip(self._bases, (*self._bases[1:], log_end), strict=True))
        reached = None
        for base in recovered:
            if base != reached:
                self._rebuild(base, log_start)
            reached = ends[base]
            self._leave(reached)

    def ends(self, *, log_start: int, log_end: int, is_clean: bool) -> None:
        """Build the state at the log's end."""
        self._snapshots = kept_snapshots(self._snapshots, frozenset(self._bases))
        if self._snapshots or not is_clean:
            self._rebuild(log_end, log_start)

    def _rebuild(self, end: int, log_start: int) -> None:
        del self._snapshots[bisect_right(self._snapshots, end) :]
        del self._snapshots[: bisect_right(self._snapshots, log_start)]
        while self._snapshots and self._snapshots[-1] in self._unreadable - self._written:
            self._snapshots.pop()
        self.loaded.update({*self._snapshots[-1:]} - self._written)
        newest = self._snapshots[-1] if self._snapshots else log_start
        if newest < end:
            first = max(bisect_right(self._bases, newest) - 1, 0)
            self.read.update(self._bases[first : bisect_left(self._bases, end)])
        self._leave(end)

    def _leave(self, offset: int) -> None:
        if not self._snapshots or self._snapshots[-1] < offset:
            self._snapshots.append(offset)
        self._written.add(offset)
