"""Decompression of batches: gzip, snappy, lz4 and zstd, framed as Kafka takes them.

What a stream of a codec takes and refuses is Kafka's, for messages v0 and v1 and batches v2 alike:
see the modules of the streams. Of a block alone, libraries decide.

Source: CompressionType, Compression.wrapForInput (as of 4.3).
"""

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.codecs.gzip_stream import GzipStream
from kafka_segments.kafka.codecs.lz4_stream import Lz4Stream
from kafka_segments.kafka.codecs.snappy_stream import SnappyStream
from kafka_segments.kafka.codecs.streams import (
    BufferedReader,
    DecompressionError,
    Piece,
    Stored,
    Stream,
    beyond,
    stored_in,
)
from kafka_segments.kafka.codecs.zstd_stream import ZstdStream

Bytes = npt.NDArray[np.uint8]

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
_MOST_BYTES = 2**31 - 1  # Java holds no more at once
_BUFFER_BYTES = {GZIP: 16 * 1024, SNAPPY: 2 * 1024, LZ4: 2 * 1024, ZSTD: 16 * 1024}


def open_stream(codec: int, stored: Stored, *, magic: int, most_bytes: int = _MOST_BYTES) -> Stream:
    """Open the compressed bytes of a batch of any magic.

    ``most_bytes``: the reader takes no more; of what a library holds at once there is no more.

    Raises:
        DecompressionError: Kafka throws when it opens them.
    """
    if codec == GZIP:
        return GzipStream(stored)
    if codec == SNAPPY:
        return SnappyStream(stored, most_bytes)
    if codec == LZ4:
        return Lz4Stream(stored, checks_header=magic != 0)
    if codec == ZSTD and magic >= 2:
        return ZstdStream(stored, most_bytes)
    if codec == ZSTD:
        raise DecompressionError(f"codec zstd in a message of magic {magic}")
    raise DecompressionError(f"codec is {codec}, 0 to 4 are known")


def open_reader(codec: int, stored: Stored, *, magic: int) -> BufferedReader:
    """Open the compressed bytes of a batch, to be read through Kafka's buffer.

    Raises:
        DecompressionError: Kafka throws when it opens them.
    """
    return BufferedReader(open_stream(codec, stored, magic=magic), _BUFFER_BYTES[codec])


class Decompressor:
    """Decompresses whole batches of up to ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    def decompress(self, codec: int, data: Bytes, *, magic: int) -> Bytes:
        """Decompress ``data`` to its end, or to where Kafka takes it for the end.

        Raises:
            DecompressionError: unknown codec, corrupt data, or more than ``max_bytes``.
        """
        left = self._max_bytes
        stream = open_stream(codec, stored_in(data), magic=magic, most_bytes=left)
        pieces: list[Piece] = []
        while piece := stream.read(left + 1):
            left -= len(piece)
            if left < 0:
                raise beyond(self._max_bytes)
            pieces.append(piece)
        return np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), dtype=np.uint8)
