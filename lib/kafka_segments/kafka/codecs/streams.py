"""Compressed bytes read in pieces, as Java's streams give them to Kafka, in bounded memory.

A stream ends (``None``), or gives nothing once and goes on (an empty piece). Kafka reads through a
buffer, to which both mean the end unless more than the buffer is asked for at once.

Source: InputStream.read, ChunkedBytesStream, Utils.readFully (as of Kafka 4.3).
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import KafkaSegmentsError

_MOST_AT_ONCE = 1024 * 1024  # Java's streams give as much at once as is asked for

Piece = bytes | memoryview
ReadPart = Callable[[int, int], Piece]
"""Read a part: a position and a length, both within what there is."""


class DecompressionError(KafkaSegmentsError):
    """A compressed part of a batch that cannot be decompressed."""


def beyond(most_bytes: int) -> DecompressionError:
    """Return the error where a reader's own limit is passed."""
    return DecompressionError(
        f"decompresses to more than {most_bytes} bytes, the most that is read"
    )


class Stored:
    """The compressed bytes of a batch, taken from the front; ``left`` are still to be taken."""

    def __init__(self, read: ReadPart, size_bytes: int) -> None:
        self._read = read
        self._at = 0
        self.left = size_bytes

    def take(self, most: int) -> Piece:
        """Take the next bytes: ``most``, or what is left."""
        length = min(most, self.left)
        piece = self._read(self._at, length)
        self._at += length
        self.left -= length
        return piece


def stored_in(data: npt.NDArray[np.uint8]) -> Stored:
    """Take compressed bytes from memory."""
    view = memoryview(data)
    return Stored(lambda at, length: view[at : at + length], len(view))


class Stream(Protocol):
    """What a codec makes of compressed bytes."""

    def read(self, most: int) -> Piece | None:
        """Return the next bytes, as many as Java's stream gives at once, up to ``most``.

        None: that was the end.

        Raises:
            DecompressionError: Java's stream throws.
        """

    def has_more(self) -> bool:
        """Tell whether Java's stream says that more bytes are available."""


class BufferedReader:
    """Reads a stream through Kafka's buffer of ``buffer_bytes``."""

    def __init__(self, stream: Stream, buffer_bytes: int) -> None:
        self._stream = stream
        self._buffer_bytes = buffer_bytes
        self._held = memoryview(b"")

    def byte(self) -> int:
        """Return the next byte; -1: there is none, for now."""
        if not self._held:
            self._held = memoryview(self._stream.read(self._buffer_bytes) or b"")
        if not self._held:
            return -1
        value, self._held = self._held[0], self._held[1:]
        return value

    def bytes(self, wanted: int) -> bytes:
        """Return the next bytes: ``wanted``, or as many as there are, for now."""
        return b"".join(self.pieces(wanted))

    def pieces(self, wanted: int) -> Iterator[Piece]:
        """Yield the next bytes piece by piece: ``wanted``, or as many as there are, for now."""
        while wanted > 0:
            piece = self._next(wanted)
            if piece is None:
                return
            while piece:
                yield piece
                wanted -= len(piece)
                if wanted <= 0 or not self._stream.has_more():
                    break
                piece = self._next(wanted)

    def _next(self, wanted: int) -> Piece | None:
        if not self._held and wanted >= self._buffer_bytes:
            return self._stream.read(min(wanted, _MOST_AT_ONCE))
        if not self._held:
            self._held = memoryview(self._stream.read(self._buffer_bytes) or b"")
        piece, self._held = self._held[:wanted], self._held[wanted:]
        return piece or None
