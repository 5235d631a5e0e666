"""Frames of zstd, as Kafka reads them: one after another, skippable ones too, or none at all.

What lies behind a frame and is none, or the lack of its end, is met once the content is read.

Source: ZstdInputStreamNoFinalizer (zstd-jni 1.5.6).
"""

from contextlib import suppress

import cramjam
import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.codecs.streams import DecompressionError, Piece, Stored

_FIRST_BYTES = 64 * 1024
_GROWTH = 8
_OUTPUT_FULL = "failed to write whole buffer"  # what cramjam says
_BEHIND_CONTENT = ("Unknown frame descriptor", "incomplete frame")  # and once all was written


class ZstdStream:
    """Reads frames of zstd; no more of them is decompressed than some times what was read."""

    def __init__(self, stored: Stored, most_bytes: int) -> None:
        """Take the frames; the first ``most_bytes`` of the content can be read, and one more."""
        self._most_bytes = most_bytes
        self._data = stored.take(stored.left)
        self._plain: Piece = b""
        self._at = 0
        self._is_whole = not len(self._data)
        self._error: DecompressionError | None = None

    def read(self, most: int) -> Piece | None:
        """Return the next bytes, None at the end."""
        while self._at == len(self._plain) and not self._is_whole:
            self._decompress()
        if self._error is not None and self._at == len(self._plain):
            raise self._error
        piece = self._plain[self._at : self._at + most]
        self._at += len(piece)
        return piece or None

    def has_more(self) -> bool:
        """Tell that there may be more."""
        return True

    def _decompress(self) -> None:
        """Decompress more of the content, from its front on."""
        size = max(_FIRST_BYTES, _GROWTH * len(self._data), _GROWTH * len(self._plain))
        out = np.empty(min(size, self._most_bytes + 1), dtype=np.uint8)
        try:
            length = int(cramjam.zstd.decompress_into(self._data, out))
            self._is_whole = True
        except cramjam.DecompressionError as error:
            length = len(out)
            if _OUTPUT_FULL in str(error):
                self._is_whole = length > self._most_bytes
            else:
                self._error, self._is_whole = DecompressionError(f"zstd: {error}"), True
                length = self._written(out) if str(error).endswith(_BEHIND_CONTENT) else self._at
        self._plain = memoryview(out)[:length]

    def _written(self, out: npt.NDArray[np.uint8]) -> int:
        """Return how many bytes are written before the error: those that any buffer has then."""
        out[:] = 0
        others = np.full(len(out), 0xFF, dtype=np.uint8)
        for buffer in (out, others):
            with suppress(cramjam.DecompressionError):
                cramjam.zstd.decompress_into(self._data, buffer)
        differs = out != others
        return int(differs.argmax()) if differs.any() else len(out)
