"""How long a broker's start takes: a model by batches, bytes, segments and threads.

1. One thread loads a log, segment by segment: several threads do not share a large log.
2. Each log directory has ``num.recovery.threads.per.data.dir`` threads of its own. A thread that is
   free takes the next log, in the order in which the disk lists their folders. All directories are
   loaded at once.
3. A segment that is recovered costs what its batches and bytes cost, and what it costs to make
   index files anew and to force a snapshot of the producers' state to disk. The disk syncs the
   files of several threads more or less one after another: this cost depends on their number, those
   of other log directories on the same disk among them.
4. For each segment that it recovers Kafka looks for snapshots among all files of the log's folder,
   one by one. So a log of twice as many segments takes up to four times as long.
5. A segment that is only opened costs little, and so does a batch that is read for the
   producers' state alone.
6. Threads share the cores. They hinder each other even before all cores are busy, because they
   change the memory mappings of one process.
7. A new JVM interprets its code at first. This cost is added, most of it in the first second.

Source: LogManager.loadLogs, LogLoader.load, LogLoader.recoverSegment,
ProducerStateManager.listSnapshotFiles (4.3.1).
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

THREADS = (1, 2, 4, 8, 16, 32)
"""The numbers of threads that are set side by side."""
_FILES_OF_SEGMENT = 4  # .log, .index, .timeindex and, but for those to be recovered, .snapshot


class LogWork(NamedTuple):
    """What a start does with a log, as far as it costs time.

    ``twice_…`` count the segments that both passes of a load recover.
    """

    segments: int = 0
    recovered_segments: int = 0
    recovered_bytes: int = 0
    recovered_batches: float = 0
    replayed_bytes: int = 0
    replayed_batches: float = 0
    twice_segments: int = 0
    twice_bytes: int = 0
    twice_batches: float = 0

    @property
    def passes(self) -> int:
        """Return how often a segment is recovered."""
        return self.recovered_segments + self.twice_segments

    @property
    def looked_at(self) -> float:
        """Return how many files are looked at for snapshots (rule 4).

        The snapshots from the recovery point on are removed first, and come back one by one.
        """
        return self.passes * (_FILES_OF_SEGMENT * self.segments - self.recovered_segments / 2)


class DirWork(NamedTuple):
    """The work of a log directory: its logs in the order in which the broker takes them.

    ``disk``: what tells its disk from others; None: not known, it is taken for one of its own.
    """

    log_dir: str
    logs: Sequence[LogWork]
    disk: int | None = None


def _assumed() -> dict[int, float]:
    return {1: 1.5, 2: 2.5, 4: 5.0}


@dataclass(frozen=True)
class Costs:
    """What the parts of the work cost on a machine.

    Attributes:
        batch_us: To recover a batch, whatever its size.
        byte_ns: To read and checksum a byte of it.
        file_us: To look at a file of a log's folder.
        replayed_batch_us: To read a batch for the producers' state alone.
        log_ms: To load a log, whatever is in it.
        open_ms: To open a segment.
        segment_ms: What the disk takes for a recovered segment, by the number of threads that
            recover at once on it; above the greatest number given it grows with the threads.
        segment_cpu_ms: What Kafka does for it around the files, whatever is in it.
        hindrance: By how much, as a share, each further thread slows the others.
        warm_up_ms: What a long start costs in addition, until the JVM has compiled its code.
        warm_up_span_ms: After how much work of a start all but 1 / e of that has been spent.
        read_bytes_per_s: What the disk reads; None: the files lie in the page cache.
        cores: Of the machine.
        error: By which share of itself a forecast may be wrong.
        is_calibrated: Measured on the disk that is asked about.
    """

    batch_us: float = 1.9
    byte_ns: float = 0.55
    file_us: float = 3.0
    replayed_batch_us: float = 1.0
    log_ms: float = 2.5
    open_ms: float = 0.15
    segment_ms: Mapping[int, float] = field(default_factory=_assumed)
    segment_cpu_ms: float = 0.4
    hindrance: float = 0.25
    warm_up_ms: float = 700.0
    warm_up_span_ms: float = 500.0
    read_bytes_per_s: float | None = None
    cores: int = 4
    error: float = 0.8
    is_calibrated: bool = False

    def segment_ms_at(self, threads: float) -> float:
        """Return how many ms a recovered segment costs on a disk with so many threads at work."""
        known = sorted(self.segment_ms)
        below = max((count for count in known if count <= threads), default=known[0])
        above = min((count for count in known if count >= threads), default=None)
        if above is None or above == below:
            return self.segment_ms[below] * max(1.0, threads / below)
        share = (threads - below) / (above - below)
        return self.segment_ms[below] * (1 - share) + self.segment_ms[above] * share

    def slower(self, threads: float) -> float:
        """Return by which factor a thread takes longer where so many work on the machine."""
        beside = max(0.0, min(threads, self.cores) - 1)
        return (1 + self.hindrance * beside) * max(1.0, threads / self.cores)

    def warm_up_seconds(self, seconds: float) -> float:
        """Return how many seconds a new JVM adds to a start of so many seconds."""
        done = 1 - math.exp(-seconds * 1e3 / self.warm_up_span_ms) if self.warm_up_ms else 0.0
        return self.warm_up_ms / 1e3 * done


def seconds_of_start(dirs: Sequence[DirWork], costs: Costs, *, threads: int) -> dict[str, float]:
    """Return how long each log directory of a broker takes; the broker takes the longest.

    A few large logs do not keep all threads busy. How many are busy at once, on a disk and on the
    cores, is computed as if they did not hinder each other.
    """
    alone = [_Alone.of(one.logs, costs, threads=threads) for one in dirs]
    found = {}
    for one, own in zip(dirs, alone, strict=True):
        beside = [(other.disk, own.beside(its)) for other, its in zip(dirs, alone, strict=True)]
        on_disk = sum(busy for disk, busy in beside if disk is not None and disk == one.disk)
        seconds = _seconds_of_logs(
            one.logs,
            costs,
            at_once=on_disk or own.busy,
            slower=costs.slower(sum(busy for _, busy in beside)),
        )
        last = makespan(seconds, threads=threads)
        found[one.log_dir] = last + costs.warm_up_seconds(last)
    return found


class _Alone(NamedTuple):
    """A log directory that nothing hinders: when its last log is loaded, and its busy threads."""

    seconds: float
    busy: float

    @classmethod
    def of(cls, logs: Sequence[LogWork], costs: Costs, *, threads: int) -> "_Alone":
        each = _seconds_of_logs(logs, costs, at_once=1, slower=1)
        last = makespan(each, threads=threads)
        return cls(last, sum(each) / last if last else 0.0)

    def beside(self, other: "_Alone") -> float:
        """Return how many threads of another directory are busy on average while this one loads."""
        return other.busy * min(1.0, other.seconds / self.seconds) if self.seconds else 0.0


def makespan(seconds: Sequence[float], *, threads: int) -> float:
    """Return when the last job ends: each goes, in order, to the thread that is free first."""
    free = [0.0] * max(1, min(threads, len(seconds)))
    for job in seconds:
        heapq.heapreplace(free, free[0] + job)
    return max(free)


def _seconds_of_logs(
    logs: Sequence[LogWork], costs: Costs, *, at_once: float, slower: float
) -> list[float]:
    """Return how many seconds a thread takes for each log: most of thousands have equal work."""
    of_work = {
        work: _seconds_of_log(work, costs, at_once=at_once, slower=slower) for work in set(logs)
    }
    return [of_work[work] for work in logs]


def _seconds_of_log(work: LogWork, costs: Costs, *, at_once: float, slower: float) -> float:
    """Return how many seconds a thread takes for a log where ``at_once`` threads use its disk.

    ``slower``: by which factor it takes longer than alone on the machine.
    """
    micros = (work.recovered_batches + work.twice_batches) * costs.batch_us
    micros += work.replayed_batches * costs.replayed_batch_us
    micros += (work.recovered_bytes + work.twice_bytes) * costs.byte_ns / 1e3
    micros += (costs.log_ms + work.segments * costs.open_ms) * 1e3
    micros += work.passes * costs.segment_cpu_ms * 1e3 + work.looked_at * costs.file_us
    seconds = slower * micros / 1e6
    if work.recovered_bytes:  # an empty segment forces nothing
        seconds += work.passes * costs.segment_ms_at(max(1.0, at_once)) / 1e3
    if costs.read_bytes_per_s:
        read = work.recovered_bytes + work.replayed_bytes
        seconds += read * max(1.0, at_once) / costs.read_bytes_per_s
    return seconds
