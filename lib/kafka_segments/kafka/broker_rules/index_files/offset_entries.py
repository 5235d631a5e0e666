"""Judge the entries of an ``.index`` file by the log that it lies beside.

Entries are right if

1. offsets and positions strictly increase, and lie within the log;
2. every position is the first byte of a batch, and all batches before it end below the entry's
   offset, so that no lookup starts behind the record that it is to find;
3. every offset is the last of the batch (2.0 and later), its first (0.8 to 1.1), or the last of a
   later batch, if several batches were appended together from this position on.

Source: OffsetIndex.append, LogSegment.append of the releases named.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    IndexKind,
    IndexVerdict,
    LogFacts,
    Opinion,
    WalkLog,
    difference,
)
from kafka_segments.kafka.broker_rules.index_files.log_probe import BatchFacts, LogProbe
from kafka_segments.kafka.index.segment.recovered_segment import Entries

_MOST_LEFT_OUT = 3  # entries at the end that restarts can leave out, one each
_NAMES = ("offset", "position")
Bools = npt.NDArray[np.bool_]


def judge_offset_entries(entries: Entries, log: LogFacts, walk: WalkLog) -> Opinion:
    """Judge entries (offset, position) that are not those that recovery writes."""
    wrong = _impossible(entries, log)
    if wrong is not None:
        return wrong
    probe = LogProbe(np.ascontiguousarray(entries[:, 1]), np.ascontiguousarray(entries[:, 0]))
    for batches in walk():
        probe.feed(batches)
    wrong = _misplaced(entries, probe)
    if wrong is not None:
        return wrong
    differs = difference(entries, log.offset_entries, _NAMES)
    left_out = len(log.offset_entries) - len(entries)
    is_start = np.array_equal(entries, log.offset_entries[: len(entries)])
    if is_start and left_out > _MOST_LEFT_OUT:
        last = int(entries[-1, 1])
        message = f"ends at byte {last} of {log.valid_bytes}, {left_out} entries short: {differs}"
        return Opinion(IndexVerdict.STALE, IndexKind.LOG_GREW, message)
    kind, why = _kind(entries, probe, log.index_interval_bytes)
    return Opinion(IndexVerdict.VALID, kind, f"{why}: {differs}")


def _first(wrong: Bools, describe: Callable[[int], str]) -> str | None:
    rows = wrong.nonzero()[0]
    return f"entry {rows[0]}: {describe(int(rows[0]))}" if len(rows) else None


def _impossible(entries: Entries, log: LogFacts) -> Opinion | None:
    """Return what is wrong that can be seen without the log's batches."""
    offsets, positions = entries[:, 0], entries[:, 1]
    steps = np.diff(entries, axis=0, prepend=[[log.base_offset - 1, -1]])
    out_of_order = _first(
        np.any(steps <= 0, axis=1, keepdims=True)[:, 0],
        lambda row: f"offset {offsets[row]} at byte {positions[row]} is out of order",
    )
    if out_of_order is not None:
        return Opinion(IndexVerdict.CORRUPT, IndexKind.OUT_OF_ORDER, out_of_order)
    beyond = _first(
        (offsets >= log.next_offset) | (positions >= log.valid_bytes),
        lambda row: (
            f"offset {offsets[row]} at byte {positions[row]}, the log ends at offset"
            f" {log.next_offset}, byte {log.valid_bytes}"
        ),
    )
    return None if beyond is None else Opinion(IndexVerdict.STALE, IndexKind.BEYOND_LOG, beyond)


def _misplaced(entries: Entries, probe: LogProbe) -> Opinion | None:
    """Return the first entry that the log's batches contradict."""
    offsets, positions, at = entries[:, 0], entries[:, 1], probe.at_positions
    no_batch = _first(~at.are_there, lambda row: f"no batch begins at byte {positions[row]}")
    if no_batch is not None:
        return Opinion(IndexVerdict.CORRUPT, IndexKind.NO_BATCH, no_batch)
    wrong = _first(
        ~(_is_last(offsets, at) | _is_first(offsets, at) | _is_of_set(offsets, probe)),
        lambda row: (
            f"offset {offsets[row]} at byte {positions[row]}, where a batch has"
            f" {at.base_offsets[row]} to {at.last_offsets[row]}"
        ),
    )
    return None if wrong is None else Opinion(IndexVerdict.CORRUPT, IndexKind.WRONG_OFFSET, wrong)


def _is_last(offsets: npt.NDArray[np.int64], at: BatchFacts) -> Bools:
    is_last: Bools = (offsets == at.last_offsets) & (offsets > at.offsets_before)
    return is_last


def _is_first(offsets: npt.NDArray[np.int64], at: BatchFacts) -> Bools:
    """Return which offsets are the first of a batch.

    The header of a compressed message hides its first offset, so any offset inside counts.
    """
    is_first = np.where(at.is_wrapper != 0, at.holds(offsets), offsets == at.base_offsets)
    return is_first & (offsets > at.offsets_before)


def _is_of_set(offsets: npt.NDArray[np.int64], probe: LogProbe) -> Bools:
    ends_a_batch = probe.by_offsets.last_offsets == offsets
    is_of_set: Bools = ends_a_batch & (offsets > probe.at_positions.last_offsets)
    return is_of_set


def _kind(entries: Entries, probe: LogProbe, interval_bytes: int) -> tuple[IndexKind, str]:
    """Return the kind of entries that are right, and what writes them."""
    offsets, at = entries[:, 0], probe.at_positions
    if _is_of_set(offsets, probe).any():
        return IndexKind.SPARSER, "one entry an append of several batches, as before KAFKA-806"
    if (_is_first(offsets, at) & ~_is_last(offsets, at)).any():
        return IndexKind.FIRST_OFFSET, "holds first offsets, as Kafka 0.8 to 1.1 wrote"
    positions = np.append(entries[:, 1], probe.last_position + 1)
    starts = np.concatenate(([0], entries[:, 1]))
    steps = (positions - starts)[:-1]
    before = np.append(at.positions_before, probe.last_position) - starts
    least, most = max(int(before.max()), 0), int(steps.min()) - 1
    if least <= most:
        return IndexKind.OTHER_INTERVAL, f"as index.interval.bytes from {least} to {most} gives"
    if most < interval_bytes:
        return (
            IndexKind.OTHER_INTERVAL,
            f"entries {most + 1} bytes apart, as a smaller interval gives",
        )
    if 2 * int((before > interval_bytes).sum()) <= len(before):
        return IndexKind.SHIFTED, "counted anew on the way, as after a restart"
    return IndexKind.SPARSER, "fewer entries, as before KAFKA-806"
