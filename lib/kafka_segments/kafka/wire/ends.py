"""Where the batches of a segment end before its file does, and why."""

from kafka_segments.kafka.wire.header_layout import HEADER_BYTES, MIN_LENGTH

SOUND = 0  # nothing ends here: the batch passed the check
AT_END = 1  # fewer bytes left than offset, size, crc and magic take
PARTIAL_BATCH = 2
BAD_SIZE = 3
BAD_SIZE_FOR_MAGIC = 4
BAD_CRC = 5


def describe_end(status: int, *, found: int, expected: int, left: int) -> str | None:
    """Return why a walk ended ``left`` bytes before the end of its file, None where it did not.

    ``status`` is one of the values above; ``found`` and ``expected`` are the walk's.
    """
    reasons = {
        AT_END: f"{left} bytes left, too few for a batch" if left else None,
        PARTIAL_BATCH: f"the batch says {found} bytes, {expected} are left in the file",
        BAD_SIZE: f"batch length is {found}, the least is {MIN_LENGTH}",
        BAD_SIZE_FOR_MAGIC: f"the batch says {found} bytes, magic {expected} needs {HEADER_BYTES}",
        BAD_CRC: f"checksum is {found & 0xFFFFFFFF:#010x}, the batch says {expected:#010x}",
    }
    return reasons.get(status)
