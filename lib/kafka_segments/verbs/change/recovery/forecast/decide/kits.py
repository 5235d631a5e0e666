"""How much work a start has left once a kit has been applied.

1. A kit leaves all files in their places, the recovery point at the log's end, and an empty segment
   there. A broker recovers this segment alone, because it holds the recovery point.
2. A log that the kit leaves to the broker is recovered as ever. Which ones these are is told as far
   as the listing and the damaged segments tell it; docs/recovery-kit.md has the whole list.
"""

from collections.abc import Mapping

from kafka_segments.kafka.broker_rules.start.cuts import TORN, DamagedSegment
from kafka_segments.kafka.broker_rules.start.log_start import LogStart
from kafka_segments.kafka.text.names import CLEANED_SUFFIX, SWAP_SUFFIX, FolderState
from kafka_segments.verbs.change.recovery.forecast.decide.times import LogWork

_UNFINISHED = (CLEANED_SUFFIX, SWAP_SUFFIX)


def work_with_kit(start: LogStart, work: LogWork, damaged: Mapping[int, DamagedSegment]) -> LogWork:
    """Return the work of a start after a kit; ``work`` is that of a start without it."""
    if not start.unflushed or is_left_alone(start, damaged):
        return work
    last = max(start.sizes)
    is_empty = start.sizes[last] == (damaged[last].cut_bytes if last in damaged else 0)
    return work_left(len(start.sizes), ends_empty=is_empty)


def work_left(segments: int, *, ends_empty: bool) -> LogWork:
    """Return the work of a start with a log of so many segments to which a kit was applied."""
    return LogWork(segments=segments + (not ends_empty), recovered_segments=1)


def is_left_alone(start: LogStart, damaged: Mapping[int, DamagedSegment]) -> bool:
    """Tell whether a kit leaves a log to its broker."""
    log, bases = start.log, sorted(start.sizes)
    return (
        log.is_metadata
        or log.state != FolderState.LIVE
        or any(name.endswith(_UNFINISHED) for name in start.left_behind)
        or 0 < (log.log_start_offset or 0) < bases[0]
        or any(
            found.damage.kind not in TORN or base != bases[-1] for base, found in damaged.items()
        )
    )
