"""Compression of a batch's records: gzip, snappy and lz4, in the framing of Kafka's own writers.

gzip is one member with the header of Java 16 and later, snappy the stream of snappy-java in blocks
of 32 KB, lz4 a frame of independent blocks of 64 KB without checksums but its header's, a block
stored where compression gains nothing. Levels are the codecs' own. The compressed bytes are
those of the library at hand and can differ from another version's.

Source: GZIPOutputStream, SnappyOutputStream, Lz4BlockOutputStream.
"""

import zlib
from collections.abc import Iterator

import cramjam
import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.codecs.codecs import GZIP, LZ4, SNAPPY
from kafka_segments.kafka.codecs.lz4_stream import LZ4_FRAME_MAGIC, LZ4_STORED, header_checksum
from kafka_segments.kafka.codecs.snappy_stream import XERIAL_MAGIC

Bytes = npt.NDArray[np.uint8]

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # deflate, no name, time or system
_XERIAL_VERSIONS = (1).to_bytes(4, "big") * 2  # version, compatible version
_SNAPPY_BLOCK_BYTES = 32 * 1024
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_DESCRIPTOR = b"\x60\x40"  # version 1, blocks independent, of at most 64 KB


def compress(codec: int, data: Bytes) -> bytes:
    """Compress the records of a batch.

    Raises:
        ValueError: a codec other than gzip, snappy and lz4, the ones of messages v0 and v1.
    """
    if codec == GZIP:
        return b"".join(_gzip(data))
    if codec == SNAPPY:
        return b"".join(_snappy(data))
    if codec == LZ4:
        return b"".join(_lz4(data))
    raise ValueError(f"codec is {codec}, 1 to 3 can be written")


def _gzip(data: Bytes) -> Iterator[bytes]:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    yield _GZIP_HEADER
    yield deflate.compress(data)
    yield deflate.flush()
    yield zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")


def _snappy(data: Bytes) -> Iterator[bytes]:
    yield XERIAL_MAGIC + _XERIAL_VERSIONS
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK_BYTES]))
        yield len(block).to_bytes(4, "big")
        yield block


def _lz4(data: Bytes) -> Iterator[bytes]:
    yield LZ4_FRAME_MAGIC + _LZ4_DESCRIPTOR + bytes([header_checksum(_LZ4_DESCRIPTOR)])
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[start : start + _LZ4_BLOCK_BYTES].tobytes()
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            yield len(block).to_bytes(4, "little")
            yield block
        else:
            yield (len(plain) | LZ4_STORED).to_bytes(4, "little")
            yield plain
    yield bytes(4)
