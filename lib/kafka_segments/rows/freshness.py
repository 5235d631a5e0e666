"""Whether index files are still true at the end of their log."""

import struct

_UP_TO_MAX_TIMESTAMP = 43  # of a v2 batch
_UP_TO_MAGIC = 17
_LOG_OVERHEAD = 12
_LEGACY_UP_TO_TIMESTAMP = 26


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
    position, first = 0, True
    while len(tail) - position > _UP_TO_MAGIC:
        offset, length = struct.unpack_from(">qi", tail, position)
        magic = tail[position + _UP_TO_MAGIC - 1]
        end = position + _LOG_OVERHEAD + length
        if length < _LEGACY_UP_TO_TIMESTAMP - _LOG_OVERHEAD or end > len(tail):
            break
        if magic >= 2 and length < _UP_TO_MAX_TIMESTAMP - _LOG_OVERHEAD:
            break
        timestamp = -1
        if magic >= 2:
            offset += struct.unpack_from(">i", tail, position + 23)[0]
            timestamp = struct.unpack_from(">q", tail, position + 35)[0]
        elif magic == 1:
            timestamp = struct.unpack_from(">q", tail, position + 18)[0]
        if timestamp > greatest_timestamp or (first and last_offset not in (None, offset)):
            return False
        position, first = end, False
    return not first or last_offset is None
