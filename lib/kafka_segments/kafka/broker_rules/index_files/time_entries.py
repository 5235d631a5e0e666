"""Judge the entries of a ``.timeindex`` file by the log that it lies beside.

Entries are right if

1. timestamps strictly increase, offsets do not go back, and both lie within the log;
2. every entry (timestamp, offset) is true: the batch that holds the offset has that greatest
   timestamp, and no batch before it has one as great, so that a search from there misses nothing;
3. the last entry has the log's greatest timestamp, which retention and searches go by.

Source: TimeIndex.maybeAppend, LogSegment.append of the releases named.
"""

import numpy as np

from kafka_segments.kafka.broker_rules.index_files.judgement import (
    IndexKind,
    IndexVerdict,
    LogFacts,
    Opinion,
    WalkLog,
    difference,
)
from kafka_segments.kafka.broker_rules.index_files.log_probe import LogProbe
from kafka_segments.kafka.index.segment.recovered_segment import Entries

_NAMES = ("timestamp", "offset")


def judge_time_entries(entries: Entries, log: LogFacts, walk: WalkLog) -> Opinion:
    """Judge entries (timestamp ms, offset) that are not those that recovery writes."""
    wrong = _impossible(entries, log)
    if wrong is not None:
        return wrong
    probe = LogProbe(np.empty(0, dtype=np.int64), np.ascontiguousarray(entries[:, 1]))
    for batches in walk():
        probe.feed(batches)
    wrong = _untrue(entries, probe)
    if wrong is not None:
        return wrong
    differs = difference(entries, log.time_entries, _NAMES)
    last = int(entries[-1, 0])
    if last < log.max_timestamp:
        message = f"its last timestamp is {last}, the log's greatest {log.max_timestamp}: {differs}"
        verdict = IndexVerdict.VALID if log.is_open else IndexVerdict.STALE
        return Opinion(verdict, IndexKind.NOT_CLOSED, message)
    return Opinion(IndexVerdict.VALID, *_kind(entries, log.time_entries, differs))


def _impossible(entries: Entries, log: LogFacts) -> Opinion | None:
    """Return what is wrong that can be seen without the log's batches."""
    timestamps, offsets = entries[:, 0], entries[:, 1]
    goes_back = np.diff(offsets, prepend=log.base_offset) < 0
    rows = (goes_back | ~(timestamps > np.concatenate(([-1], timestamps[:-1])))).nonzero()[0]
    if len(rows):
        entry = f"timestamp {timestamps[rows[0]]} at offset {offsets[rows[0]]}"
        message = f"entry {rows[0]}: {entry} is out of order"
        return Opinion(IndexVerdict.CORRUPT, IndexKind.OUT_OF_ORDER, message)
    rows = (offsets >= log.next_offset).nonzero()[0]
    if len(rows):
        message = (
            f"entry {rows[0]}: timestamp {timestamps[rows[0]]} at offset {offsets[rows[0]]},"
            f" the log ends at offset {log.next_offset}"
        )
        return Opinion(IndexVerdict.STALE, IndexKind.BEYOND_LOG, message)
    return None


def _untrue(entries: Entries, probe: LogProbe) -> Opinion | None:
    """Return the first entry that the log's batches contradict."""
    timestamps, offsets, batch = entries[:, 0], entries[:, 1], probe.by_offsets
    has_it = batch.are_there & batch.holds(offsets) & (batch.max_timestamps == timestamps)
    rows = (~(has_it & (batch.timestamps_before < timestamps))).nonzero()[0]
    if not len(rows):
        return None
    row = int(rows[0])
    if has_it[row]:
        why = f"a batch before it has {batch.timestamps_before[row]} already"
    elif not (batch.are_there & batch.holds(offsets))[row]:
        why = "no batch holds this offset"
    else:
        why = f"the batch there has {batch.max_timestamps[row]}"
    message = f"entry {row}: timestamp {timestamps[row]} at offset {offsets[row]}, but {why}"
    return Opinion(IndexVerdict.CORRUPT, IndexKind.UNTRUE, message)


def _kind(entries: Entries, rebuilt: Entries, differs: str) -> tuple[IndexKind, str]:
    """Return the kind of entries that are right, and what writes them."""
    if len(entries) == len(rebuilt) and (entries[:, 0] == rebuilt[:, 0]).all():
        why = "other offsets for the same timestamps, as a leader of 3.6 and older wrote"
        return IndexKind.OFFSET_OF_MAX, f"{why}: {differs}"
    if len(entries) < len(rebuilt) - 1:
        return IndexKind.SPARSER, f"fewer entries, all true: {differs}"
    return IndexKind.SHIFTED, f"entries at other places, all true: {differs}"
