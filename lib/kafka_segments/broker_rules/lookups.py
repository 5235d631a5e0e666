"""How readers find their place in an index file: brokers, KIP-33's text, the minute design."""

from collections.abc import Sequence

import numpy as np

from kafka_segments.index.minute_index import MINUTE_MS
from kafka_segments.index.segment import Entries
from kafka_segments.index.time_index import TimestampOffset
from kafka_segments.index.transactions import AbortedTransaction
from kafka_segments.wire.header_layout import NO_TIMESTAMP


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
