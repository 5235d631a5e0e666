"""Read a log of Aiven's tiered storage: its manifest says how it is stored."""

from collections import deque

import numpy as np

from kafka_segments.errors import UnreadableObjectError
from kafka_segments.kafka.codecs.codecs import ZSTD, Decompressor
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.kafka.tier.chunk_index import MOST_CHUNK_BYTES, ChunkIndex, ChunkPlace
from kafka_segments.kafka.tier.segment_manifest import SegmentManifest
from kafka_segments.kafka.wire.reading import ReadInto

_MAGIC = 2
_KEPT = 2  # readers go back to where the last batch began
_ZSTD_OVERHEAD_BYTES = 64 * 1024


def check_readable(manifest: SegmentManifest) -> None:
    """Check that a log can be read as its manifest says.

    Raises:
        UnreadableObjectError: it is encrypted, or compressed in chunks too large for memory.
    """
    if manifest.is_encrypted:
        raise UnreadableObjectError("encrypted, says its manifest; without its key nothing is read")
    chunks = manifest.chunks
    largest = min(chunks.chunk_bytes, chunks.log_bytes)
    if manifest.is_compressed and largest > MOST_CHUNK_BYTES:
        raise UnreadableObjectError(
            f"compressed in chunks of {largest} bytes; at most {MOST_CHUNK_BYTES} are read"
        )


class CompressedLog:
    """Serves reads of a log from its zstd chunks, two of which are in memory."""

    def __init__(self, stored: ReadInto, stored_bytes: int, chunks: ChunkIndex) -> None:
        self._stored = stored
        self._stored_bytes = stored_bytes
        self._chunks = chunks
        self._decompressor = Decompressor(min(chunks.chunk_bytes, chunks.log_bytes))
        self._held: deque[tuple[int, bytes]] = deque(maxlen=_KEPT)

    def read_into(self, position: int, view: memoryview) -> int:
        """Fill the view from a position of the log; return the bytes read, fewer only at its end.

        Raises:
            UnreadableObjectError: a chunk is not what the manifest says.
            OSError: the store did not give the bytes.
        """
        filled = 0
        while filled < len(view) and position + filled < self._chunks.log_bytes:
            here = position + filled
            start, chunk = self._chunk_at(here)
            given = memoryview(chunk)[here - start :][: len(view) - filled]
            view[filled : filled + len(given)] = given
            filled += len(given)
        return filled

    def _chunk_at(self, position: int) -> tuple[int, bytes]:
        for start, chunk in self._held:
            if start <= position < start + len(chunk):
                return start, chunk
        found = self._chunks.at(position)
        self._held.append((found.start, self._decompressed(found)))
        return self._held[-1]

    def _decompressed(self, chunk: ChunkPlace) -> bytes:
        where = f"chunk at byte {chunk.start} of the log, {chunk.stored_start} of the object"
        most = chunk.length + chunk.length // 128 + _ZSTD_OVERHEAD_BYTES
        if chunk.stored_length > most or chunk.stored_start + chunk.stored_length > (
            self._stored_bytes
        ):
            raise UnreadableObjectError(
                f"{where}: {chunk.stored_length} bytes, says the manifest; the object has"
                f" {self._stored_bytes}, zstd makes at most {most} of {chunk.length}"
            )
        data = np.empty(chunk.stored_length, dtype=np.uint8)
        read = self._stored(chunk.stored_start, memoryview(data)) if len(data) else 0
        try:
            plain = self._decompressor.decompress(ZSTD, data[:read], magic=_MAGIC).tobytes()
        except DecompressionError as error:
            raise UnreadableObjectError(f"{where}: {error}") from None
        if len(plain) != chunk.length:
            reason = f"{where}: it decompresses to {len(plain)} bytes, {chunk.length} expected"
            raise UnreadableObjectError(reason)
        return plain
