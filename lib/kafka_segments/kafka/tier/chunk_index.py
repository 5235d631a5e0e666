"""Where the chunks of a segment lie in its object of Aiven's tiered storage.

A log is cut into chunks of one size, the last one shorter; each is stored transformed. Sizes of
stored chunks are all equal (``fixed``) or listed (``variable``), as base64 of zstd of big-endian::

    count            int32
    base             int32   (count > 1)
    bytes a value    int8    (count > 1)
    values           count - 1 of that many bytes, unsigned, above the base
    last value       int32   (count > 0)

Source: io.aiven.kafka.tieredstorage.manifest.index: FixedSizeChunkIndex, VariableSizeChunkIndex,
ChunkSizesBinaryCodec, TransformedChunksDeserializer.
"""

import base64
import binascii
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import cramjam
import numpy as np
import numpy.typing as npt

from kafka_segments.errors import CorruptTextError

Sizes = npt.NDArray[np.int64]
MOST_CHUNK_BYTES = 128 * 1024 * 1024
MOST_LOG_BYTES = 2**31 - 1
_MOST_ENCODED_BYTES = 10 * 1024 * 1024
_WHERE = "chunkIndex.transformedChunks"
_ONE_HEADER, _MANY_HEADER, _LAST_BYTES = 4, 9, 4
_MOST_VALUE_BYTES = 4


class ChunkPlace(NamedTuple):
    """A chunk: its bytes in the log, and the stored ones in the object."""

    start: int
    length: int
    stored_start: int
    stored_length: int


@dataclass(frozen=True)
class ChunkIndex:
    """Sizes of a log and its stored chunks, in bytes.

    ``stored_sizes`` has the size of each stored chunk. Where it is None, each chunk has
    ``stored_chunk_bytes``, the last one ``last_stored_bytes``.
    """

    chunk_bytes: int
    log_bytes: int
    stored_chunk_bytes: int = 0
    last_stored_bytes: int = 0
    stored_sizes: Sizes | None = None

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.log_bytes // self.chunk_bytes)

    @property
    def stored_bytes(self) -> int:
        """Size of the object."""
        if self.stored_sizes is not None:
            return int(self.stored_sizes.sum())
        if self.count == 0:
            return 0
        return (self.count - 1) * self.stored_chunk_bytes + self.last_stored_bytes

    @cached_property
    def _stored_ends(self) -> Sizes:
        sizes = np.empty(0, dtype=np.int64) if self.stored_sizes is None else self.stored_sizes
        return np.cumsum(sizes)

    def at(self, position: int) -> ChunkPlace:
        """Find the chunk that holds a byte of the log; ``position`` lies below ``log_bytes``."""
        number = position // self.chunk_bytes
        start = number * self.chunk_bytes
        length = min(self.chunk_bytes, self.log_bytes - start)
        if self.stored_sizes is not None:
            end, stored = int(self._stored_ends[number]), int(self.stored_sizes[number])
            return ChunkPlace(start, length, end - stored, stored)
        is_last = number == self.count - 1
        stored = self.last_stored_bytes if is_last else self.stored_chunk_bytes
        return ChunkPlace(start, length, number * self.stored_chunk_bytes, stored)


def parse_chunk_sizes(text: str) -> Sizes:
    """Decode the sizes of a variable chunk index.

    Raises:
        CorruptTextError: no encoder writes them, or they decode to more than 10 MiB.
    """
    try:
        packed = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise CorruptTextError(_WHERE, f"no base64: {error}") from None
    return decode_chunk_sizes(_unpacked(packed))


def _unpacked(packed: bytes) -> bytes:
    room = np.empty(_MOST_ENCODED_BYTES, dtype=np.uint8)
    try:
        return room[: int(cramjam.zstd.decompress_into(packed, room))].tobytes()
    except cramjam.DecompressionError as error:
        reason = f"no zstd, or above {_MOST_ENCODED_BYTES} bytes: {error}"
        raise CorruptTextError(_WHERE, reason) from None


def decode_chunk_sizes(data: bytes) -> Sizes:
    """Decode chunk sizes from the codec's bytes.

    Raises:
        CorruptTextError: the length does not fit the count, or a size does not fit an int32.
    """
    count = int.from_bytes(data[:_ONE_HEADER], "big", signed=True)
    width = data[_MANY_HEADER - 1] if len(data) >= _MANY_HEADER and count > 1 else 0
    expected = _ONE_HEADER + _LAST_BYTES * min(max(count, 0), 1)
    if count > 1:
        expected = _MANY_HEADER + (count - 1) * width + _LAST_BYTES
    if count < 0 or len(data) != expected or (count > 1 and not 1 <= width <= _MOST_VALUE_BYTES):
        reason = f"{len(data)} bytes, {expected} expected for {count} chunks of {width} bytes each"
        raise CorruptTextError(_WHERE, reason)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    last = int.from_bytes(data[-_LAST_BYTES:], "big", signed=True)
    values = np.empty(0, dtype=np.int64)
    if count > 1:
        base = int.from_bytes(data[_ONE_HEADER : _ONE_HEADER + 4], "big", signed=True)
        values = base + _unsigned(data[_MANY_HEADER:-_LAST_BYTES], width)
    sizes = np.append(values, last)
    if int(sizes.min()) < 0 or int(sizes.max()) > MOST_LOG_BYTES:
        raise CorruptTextError(_WHERE, f"a size of {sizes.min()} or {sizes.max()} bytes")
    return sizes


def _unsigned(data: bytes, width: int) -> Sizes:
    columns = np.frombuffer(data, dtype=np.uint8).reshape(-1, width).astype(np.int64)
    weights = 256 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return np.asarray(columns @ weights, dtype=np.int64)
