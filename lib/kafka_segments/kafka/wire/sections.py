"""Where the records of a batch lie in the log's bytes, and their bytes where compressed."""

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.codecs.codecs import Decompressor
from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout
from kafka_segments.kafka.wire.header_layout import HEADER_BYTES
from kafka_segments.kafka.wire.messages import wrapper_value

Int64s = npt.NDArray[np.int64]


def record_sections(batches: wire.Batches, data_position: int) -> tuple[Int64s, Int64s]:
    """Return where the records of each batch start and end in bytes read from ``data_position`` on.

    In a batch v2 they are all that follows the header; a message v0 or v1 is taken whole.
    """
    ends = batches[wire.BATCH_POSITION] + batches[wire.BATCH_SIZE_BYTES] - data_position
    is_v2 = batches[wire.BATCH_MAGIC] >= layout.MAGIC_V2
    starts = ends - batches[wire.BATCH_SIZE_BYTES] + np.where(is_v2, HEADER_BYTES, 0)
    return starts, ends


def decompressed_records(
    decompressor: Decompressor, stored: wire.Bytes, batch: Int64s
) -> wire.Bytes:
    """Decompress the records of ``batch``, a column of batches.

    Raises:
        DecompressionError: they cannot be, or are more than ``decompressor`` takes.
    """
    codec, magic = (
        int(batch[wire.BATCH_ATTRIBUTES]) & layout.CODEC_MASK,
        int(batch[wire.BATCH_MAGIC]),
    )
    if magic < layout.MAGIC_V2:
        stored = wrapper_value(stored)
    if not batch[wire.BATCH_RECORD_COUNT] and not len(stored):
        return stored
    return decompressor.decompress(codec, stored, magic=magic)
