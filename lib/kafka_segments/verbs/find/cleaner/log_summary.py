"""What the cleaner makes of one log, in words."""

from collections.abc import Iterator

from kafka_segments.console.output import size_text, utc
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import Checkpoint, Cleanable, CleanedLog
from kafka_segments.kafka.broker_rules.cleaner.outcome import LogPass, PassCounts
from kafka_segments.verbs.find.cleaner.decide import LogKey, LogStand, Policy

_MAX_INT64 = 2**63 - 1


def log_summary(key: LogKey, one: LogStand) -> Iterator[str]:
    """Yield lines about a log: where it stands, why, and what that follows from."""
    uri, folder = key
    yield f"{folder} in {uri}: {one.stand.value}"
    if one.why:
        yield f"  why: {one.why}"
    yield f"  policy: {_policy(one.policy)}"
    if one.log is None or one.found is None:
        return
    yield from _extent(one.log, one.found)
    config, found = one.config, one.found
    total = found.clean_bytes + found.cleanable_bytes
    ratio = f"{found.ratio:.3f}, {size_text(found.cleanable_bytes)} of {size_text(total)}"
    above = f"{config.min_cleanable_dirty_ratio:g} (min.cleanable.dirty.ratio)"
    yield f"  ratio: {ratio}; it is cleaned above {above}"
    least, most = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    told = "none" if most == _MAX_INT64 else str(most)
    yield f"  lags: min.compaction.lag.ms {least}, max.compaction.lag.ms {told}"
    if one.most_passes and one.most_passes > 1:
        yield f"  passes: {one.most_passes} at most, by log.cleaner.dedupe.buffer.size"
    if one.foretold is not None and one.foretold.counts is not None:
        yield f"  a pass now: {_pass(one.foretold, one.foretold.counts)}"


def _policy(policy: Policy | None) -> str:
    if policy is None:
        return "not known; it counts as compacted by its name, or by cleaner-offset-checkpoint"
    since = "" if policy.set_at is None else f", set {utc(policy.set_at)}"
    return f"cleanup.policy={policy.value}{since}"


def _extent(log: CleanedLog, found: Cleanable) -> Iterator[str]:
    noted = {
        Checkpoint.SOUND: "by its entry in cleaner-offset-checkpoint",
        Checkpoint.NONE: "the log's start, as cleaner-offset-checkpoint has no entry of it",
    }.get(found.checkpoint, f"the log's start, as its entry, {log.checkpoint}, is wrong")
    yield f"  clean: up to offset {found.first_dirty}, {size_text(found.clean_bytes)} ({noted})"
    can = f"{size_text(found.cleanable_bytes)} of {size_text(found.dirty_bytes)} dirty ones"
    yield f"  can be cleaned: up to offset {found.end}, {can}; bound: {found.bound.value}"
    yield f"  log: offsets {log.start} to {log.end}, high watermark {log.high_watermark}"


def _pass(foretold: LogPass, counts: PassCounts) -> str:
    if foretold.unread is not None:
        freed, error = foretold.freed_bytes or 0, foretold.unread.error_bytes
        return f"{freed} bytes go, {error} more or less, by a sample of what is clean"
    freed = counts.bytes_before - counts.bytes_after
    about = "about " if counts.estimated_bytes else ""
    told = [
        f"{about}{freed} of {counts.bytes_before} bytes go",
        f"{counts.records_before - counts.records_after} of {counts.records_before} records",
        f"{counts.markers_before - counts.markers_after} of {counts.markers_before} markers",
        f"{counts.tombstones_after} tombstones stay",
    ]
    if counts.next_horizon_ms is not None:
        told.append(f"the first of what waits may go {utc(counts.next_horizon_ms)}")
    return ", ".join(told)
