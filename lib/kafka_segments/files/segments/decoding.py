"""How records are decoded where many of them are read: how much memory a reader takes for that."""

from kafka_segments.kafka.wire.record_filling import RecordFiller

MOST_BATCH_BYTES = 256 * 1024 * 1024
"""Of a batch, and of what it decompresses to; a larger one is not decoded."""
_DATA_BYTES = 8 * 1024 * 1024  # of keys, of values, of headers, before rows are given away
_MOST_HEADERS = 128 * 1024


def record_filler(
    wants: tuple[bool, bool, bool], *, max_batch_bytes: int = MOST_BATCH_BYTES
) -> RecordFiller:
    """Return what decodes the records of batches into columns; ``wants``: key, value, headers."""
    return RecordFiller(
        max_batch_bytes=max_batch_bytes,
        wants=wants,
        data_bytes=_DATA_BYTES,
        most_headers=_MOST_HEADERS,
    )
