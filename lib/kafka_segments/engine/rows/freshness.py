"""Whether index files are still true at the end of their log."""

import numpy as np

from kafka_segments.kafka.wire import batches as wire

_MOST_AT_ONCE = 1024


def covers_end_of_log(tail: bytes, *, last_offset: int | None, greatest_timestamp: int) -> bool:
    """Tell whether no batch at the end of a log is newer than its time index.

    The first batch must end at ``last_offset``, and no batch may have a timestamp above
    ``greatest_timestamp``. The search ends at an unfinished batch, which recovery cuts off.

    Args:
        tail: the bytes of the log from the batch of the last offset index entry to the end; the
            whole log if the offset index is empty.
        last_offset: the offset of that entry; None if the offset index is empty.
        greatest_timestamp: the timestamp of the last time index entry in ms, -1 if there is none.
    """
    data = np.frombuffer(tail, dtype=np.uint8)
    walk = wire.new_walk(size_bytes=len(tail), check_crc=False, needs_body=False)
    batches = np.empty((wire.BATCH_FIELDS, _MOST_AT_ONCE), dtype=np.int64)
    is_first = True
    while count := wire.walk_batches(data, len(data), 0, batches, 0, walk):
        if is_first and last_offset not in (None, int(batches[wire.BATCH_LAST_OFFSET, 0])):
            return False
        if int(batches[wire.BATCH_MAX_TIMESTAMP, :count].max()) > greatest_timestamp:
            return False
        is_first = False
    return not is_first or last_offset is None
