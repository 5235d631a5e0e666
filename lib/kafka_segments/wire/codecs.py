"""Decompression of batches: gzip, snappy, lz4 and zstd, never past a given size.

gzip is RFC 1952, lz4 and zstd are their frame formats. snappy is a bare block, or the framing of
snappy-java, integers big-endian::

    82 53 4e 41 50 50 59 00   magic
    version                   int32
    compatible version        int32
    then, again and again:
      block length            int32
      block                   snappy

A lz4 frame of a message v0 carries a header checksum that also covers the frame's magic number.
Kafka never verifies it there, so it is put right before the frame is opened.

Source: CompressionType, KafkaLZ4BlockInputStream, SnappyInputStream.
"""

from collections.abc import Callable

import cramjam
import numpy as np
import numpy.typing as npt

from kafka_segments.errors import KafkaSegmentsError

Bytes = npt.NDArray[np.uint8]

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_HAS_CONTENT_CHECKSUM = 0x04
_LZ4_HAS_BLOCK_CHECKSUMS = 0x10
_LZ4_BLOCK_BYTES = 0x7FFFFFFF  # the bit above: it is stored
_OUTPUT_FULL = "failed to write whole buffer"  # what cramjam says
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


class DecompressionError(KafkaSegmentsError):
    """A compressed part of a batch that cannot be decompressed."""


class Decompressor:
    """Decompresses one batch after another into the same buffer.

    The buffer is made with ``max_bytes``; the system gives it memory only as it is filled.
    """

    def __init__(self, max_bytes: int) -> None:
        self._out = np.empty(max_bytes, dtype=np.uint8)

    def decompress(self, codec: int, data: Bytes, *, magic: int) -> Bytes:
        """Decompress ``data``; return a view that holds until the next call.

        Raises:
            DecompressionError: unknown codec, corrupt data, or more than ``max_bytes``.
        """
        if codec == ZSTD and magic < 2:
            raise DecompressionError(f"codec zstd in a message of magic {magic}")
        into = _CODECS.get(codec)
        if into is None:
            raise DecompressionError(f"codec is {codec}, 0 to 4 are known")
        if codec == LZ4 and magic == 0:
            data = _with_right_checksum(data)
        if codec == LZ4:
            data = _without_content_checksum(data)
        try:
            return self._out[: into(data, self._out)]
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL in str(error):
                raise self._too_large() from None
            raise DecompressionError(f"cannot decompress {len(data)} bytes: {error}") from None
        except _OutputFullError:
            raise self._too_large() from None

    def _too_large(self) -> DecompressionError:
        return DecompressionError(f"decompresses to more than {len(self._out)} bytes")


class _OutputFullError(Exception):
    """The output does not hold what the data says it needs."""


def _gzip(data: Bytes, out: Bytes) -> int:
    return int(cramjam.gzip.decompress_into(data, out))


def _lz4(data: Bytes, out: Bytes) -> int:
    return int(cramjam.lz4.decompress_into(data, out))


def _zstd(data: Bytes, out: Bytes) -> int:
    return int(cramjam.zstd.decompress_into(data, out))


def _snappy(data: Bytes, out: Bytes) -> int:
    if data[:8].tobytes() != XERIAL_MAGIC:
        return _snappy_block(data, out)
    at, written = 0, 0
    while at < len(data):
        if data[at : at + 8].tobytes() == XERIAL_MAGIC:  # streams may follow one another
            at += _XERIAL_HEADER_BYTES
            continue
        length = int.from_bytes(data[at : at + 4].tobytes(), "big", signed=True)
        left = len(data) - at - 4
        if not 0 <= length <= left:
            raise DecompressionError(f"snappy block says {length} bytes, {max(left, 0)} are left")
        written += _snappy_block(data[at + 4 : at + 4 + length], out[written:])
        at += 4 + length
    if at > len(data):
        raise DecompressionError(f"snappy stream ends in its header, {len(data)} bytes long")
    return written


def _snappy_block(data: Bytes, out: Bytes) -> int:
    length = cramjam.snappy.decompress_raw_len(data)
    if length > len(out):
        raise _OutputFullError
    return int(cramjam.snappy.decompress_raw_into(data, out[:length])) if len(data) else 0


_CODECS: dict[int, Callable[[Bytes, Bytes], int]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}


def _with_right_checksum(frame: Bytes) -> Bytes:
    """Copy an lz4 frame with the header checksum that its format asks for."""
    checksum_at = _lz4_checksum_at(frame)
    if checksum_at is None:
        return frame
    right = frame.copy()
    right[checksum_at] = _lz4_checksum(frame[4:checksum_at])
    return right


def _without_content_checksum(frame: Bytes) -> Bytes:
    """Copy an lz4 frame without the checksum of its content, which Kafka passes over."""
    checksum_at = _lz4_checksum_at(frame)
    if checksum_at is None or not frame[4] & _LZ4_HAS_CONTENT_CHECKSUM:
        return frame
    if frame[checksum_at] != _lz4_checksum(frame[4:checksum_at]):
        return frame
    at, more = checksum_at + 1, 4 if frame[4] & _LZ4_HAS_BLOCK_CHECKSUMS else 0
    while size := int.from_bytes(frame[at : at + 4].tobytes(), "little"):
        at += 4 + (size & _LZ4_BLOCK_BYTES) + more
    if at + 8 > len(frame):
        return frame
    plain = frame[: at + 4].copy()
    plain[4] &= ~_LZ4_HAS_CONTENT_CHECKSUM & 0xFF
    plain[checksum_at] = _lz4_checksum(plain[4:checksum_at])
    return plain


def _lz4_checksum_at(frame: Bytes) -> int | None:
    """Return the place of the checksum of an lz4 frame's header, None where there is no header."""
    if len(frame) < 7 or frame[:4].tobytes() != LZ4_FRAME_MAGIC:
        return None
    flags = int(frame[4])
    at = 4 + 2 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    return at if at < len(frame) else None


def _lz4_checksum(descriptor: Bytes) -> int:
    return (xxh32(descriptor.tobytes()) >> 8) & 0xFF


def _rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


def xxh32(data: bytes) -> int:
    """Compute XXH32 with seed 0 of fewer than 16 bytes."""
    value = _PRIMES[4] + len(data)
    words = len(data) // 4
    for i in range(words):
        word = int.from_bytes(data[4 * i : 4 * i + 4], "little")
        value = _rotated(value + word * _PRIMES[2], 17) * _PRIMES[3]
    for byte in data[4 * words :]:
        value = _rotated(value + byte * _PRIMES[4], 11) * _PRIMES[0]
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * _PRIMES[1] & 0xFFFFFFFF
    value = (value ^ value >> 13) * _PRIMES[2] & 0xFFFFFFFF
    return value ^ value >> 16
