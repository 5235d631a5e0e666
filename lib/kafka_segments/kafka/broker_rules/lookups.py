"""How readers find their place in an index file: brokers, and the designs of other formats."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kafka_segments.errors import OffsetNotFoundError
from kafka_segments.kafka.index.formats.minute_index import MINUTE_MS, MinuteVariant
from kafka_segments.kafka.index.segment.offset_index import lookup_offset
from kafka_segments.kafka.index.segment.recovered_segment import Entries
from kafka_segments.kafka.index.segment.time_index import TimestampOffset
from kafka_segments.kafka.index.segment.transaction_index import AbortedTransaction
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP

OffsetsFrom = Callable[[int], Iterator[int]]
"""Returns the offsets of a log's records from the batch at a byte position on."""


def lookup_timestamp(
    entries: Entries, target_timestamp: int, *, base_offset: int
) -> TimestampOffset:
    """Find the entry with the greatest timestamp not above the target.

    A target below the first entry, or an empty index, gives (-1, base_offset).

    Source: TimeIndex.lookup.
    """
    row = int(np.searchsorted(entries[:, 0], target_timestamp, side="right")) - 1
    if row < 0:
        return TimestampOffset(NO_TIMESTAMP, base_offset)
    return TimestampOffset(int(entries[row, 0]), int(entries[row, 1]))


def lookup_kip33(entries: Entries, target_timestamp: int, *, base_offset: int) -> TimestampOffset:
    """Find where to start reading for records at or after ``target_timestamp``.

    Return the entry with the greatest timestamp strictly below the target, or (-1, base_offset)
    where there is none. If its offset is the next segment's base offset, this segment holds no such
    record.

    Source: KIP-33, "Build the time index".
    """
    row = int(np.searchsorted(entries[:, 0], target_timestamp, side="left")) - 1
    if row < 0:
        return TimestampOffset(NO_TIMESTAMP, base_offset)
    return TimestampOffset(int(entries[row, 0]), int(entries[row, 1]))


def search_literally(entries: Entries, target_timestamp: int, *, base_offset: int) -> int:
    """Return the offset to scan from by the minute design's rule: the closest minute not above.

    Where timestamps go back, records of the target's minute or later may lie before it, and in
    the derived variant records of the same minute do: use ``safe_start``.
    """
    minute = target_timestamp - target_timestamp % MINUTE_MS
    below = entries[entries[:, 0] <= minute]
    return base_offset if not len(below) else int(below[np.argmax(below[:, 0]), 1])


def safe_start(
    entries: Entries, target_timestamp: int, *, base_offset: int, variant: MinuteVariant
) -> int | None:
    """Return an offset before which no record has ``target_timestamp`` or a later one.

    1. Map: the least offset of an entry of the target's minute or a later one. None where there
       is none: then no record of the segment is so late.
    2. Derived: the offset of the last entry of an earlier minute, else ``base_offset``. Holds
       where timestamps do not go back, as with LogAppendTime.
    """
    minute = target_timestamp - target_timestamp % MINUTE_MS
    if variant is MinuteVariant.MAP:
        late = entries[entries[:, 0] >= minute, 1]
        return int(late.min()) if len(late) else None
    early = entries[entries[:, 0] < minute, 1]
    return int(early[-1]) if len(early) else base_offset


class Seek(NamedTuple):
    """How a record was found: the entry's offset and position, and the records looked at."""

    start_offset: int
    start_position: int
    scanned: int


def seek(
    entries: Entries, target: int, *, base_offset: int, tail: int, offsets_from: OffsetsFrom
) -> Seek:
    """Find the record at offset ``target`` by an index of every N-th message, in two phases.

    1. Before the index is consulted: below ``base_offset``, or at or past ``tail`` (last
       offset + 1; an empty log's is its base offset), there is nothing to find.
    2. Binary search for the greatest indexed offset at or below the target, else the start.
    3. Scan on from there until the record is found, or passed: a gap. At most N records, given
       that an entry was made every N: by offset, a log with gaps may lack some of them.

    Raises:
        OffsetNotFoundError: the log has no such record. A fetch from Kafka would go on with the
            next one.
    """
    if target < base_offset or target >= tail:
        raise OffsetNotFoundError(target, f"is outside of {base_offset} to {tail - 1}")
    start = lookup_offset(entries, target, base_offset=base_offset)
    scanned = 0
    for offset in offsets_from(start.position):
        if offset < start.offset:
            continue  # earlier records of the same batch
        scanned += 1
        if offset == target:
            return Seek(start.offset, start.position, scanned)
        if offset > target:
            break
    raise OffsetNotFoundError(target, "lies in a gap of the log")


def aborted_in(
    entries: Sequence[AbortedTransaction], *, fetch_offset: int, upper_bound: int
) -> tuple[list[AbortedTransaction], bool]:
    """Return the aborted transactions of a fetch, and whether they are all of them.

    The fetch reads offsets from ``fetch_offset`` up to, but not including, ``upper_bound``. The
    list is complete where an entry's last stable offset says that no transaction that ends later
    can touch the fetch; else the search goes on in the next segment.

    Source: TransactionIndex.collectAbortedTxns.
    """
    found = []
    for entry in entries:
        if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
            found.append(entry)
        if entry.last_stable_offset >= upper_bound:
            return found, True
    return found, False
