"""Whether a batch is the one that the tables know at its place, or of a file that replaced theirs.

A topic that was deleted and made again, a log that was cleaned or truncated and written on, a copy
put back: all have files of the same names. A log that only grew keeps the batches that it had.
"""

from kafka_segments.errors import OtherFileError
from kafka_segments.kafka.wire import batches as wire

LAST_OFFSET, MAX_TIMESTAMP = "last offset", "greatest timestamp"
_FIELDS = {LAST_OFFSET: wire.BATCH_LAST_OFFSET, MAX_TIMESTAMP: wire.BATCH_MAX_TIMESTAMP}


def refuse_other_file(
    batches: wire.Batches, position: int, *, last_offset: int | None, max_timestamp_ms: int | None
) -> None:
    """Hold the first of some batches against what the tables know of the one there.

    Args:
        batches: the batches that a walk found.
        position: the byte at which it begins; another one has another batch, which is left alone.
        last_offset: its last offset; None: not known.
        max_timestamp_ms: its greatest timestamp; None: not known.

    Raises:
        OtherFileError: it is another batch.
    """
    if batches.shape[1] == 0 or int(batches[wire.BATCH_POSITION, 0]) != position:
        return
    for what, expected in ((LAST_OFFSET, last_offset), (MAX_TIMESTAMP, max_timestamp_ms)):
        found = int(batches[_FIELDS[what], 0])
        if expected is not None and found != expected:
            raise OtherFileError(position, what, found, expected)


def refuse_later_batch(batches: wire.Batches, *, max_timestamp_ms: int) -> None:
    """Refuse a batch with a greater timestamp than any batch had that the tables know.

    Args:
        batches: the batch, in a column; none: nothing is refused.
        max_timestamp_ms: the greatest timestamp of the batches of its segment.

    Raises:
        OtherFileError: it is of another file.
    """
    if batches.shape[1] and int(batches[wire.BATCH_MAX_TIMESTAMP, 0]) > max_timestamp_ms:
        position, found = (
            int(batches[field, 0]) for field in (wire.BATCH_POSITION, wire.BATCH_MAX_TIMESTAMP)
        )
        raise OtherFileError(position, MAX_TIMESTAMP, found, max_timestamp_ms, is_most=True)
