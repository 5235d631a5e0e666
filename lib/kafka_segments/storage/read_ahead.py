"""Read a file of an object store in a few large pieces, and fetch the next ones meanwhile."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from pyarrow import NativeFile

LARGEST_READ_BYTES = 8 * 1024 * 1024
_SMALLEST_READ_BYTES = 256 * 1024
_PAUSES_SECONDS = (0.2, 1.0, 5.0)
_NO_ROOM_FOR_REFUSAL = "Failed to flush response stream"
_MOST_AHEAD = 4  # one connection gives less than a task can take
_KEPT = 2  # readers go back to where the last batch began


def read_range(file: NativeFile, length: int, position: int) -> bytes:
    """Return a range of a file; a short range that fails is tried again here.

    Arrow hands the S3 client a buffer of the range's length. The text of a status 503 does not fit
    a short buffer: the client takes that for an error of its own, and does not try again.

    Raises:
        OSError: the store did not give the bytes.
    """
    for pause in _PAUSES_SECONDS:
        try:
            return bytes(file.read_at(length, position))
        except OSError as error:
            if _NO_ROOM_FOR_REFUSAL not in str(error):
                raise
        time.sleep(pause)
    return bytes(file.read_at(length, position))


class _Ahead(NamedTuple):
    start: int
    end: int
    bytes_read: Future[bytes]


class ReadAhead:
    """Serves reads from pieces of a file; at most six pieces are in memory.

    1. The first read fetches what is asked for, so that a look at a few bytes stays small.
    2. Each read that goes on from there fetches twice as much, up to ``LARGEST_READ_BYTES``.
    3. From then on each read fetches one more piece ahead, up to four at once.
    4. A jump starts at 1 again.
    """

    def __init__(self, file: NativeFile, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._pieces: deque[tuple[int, bytes]] = deque(maxlen=_KEPT)
        self._window = 0
        self._ahead: deque[_Ahead] = deque()
        self._depth = 0
        self._pool: ThreadPoolExecutor | None = None

    def read_into(self, position: int, view: memoryview) -> int:
        """Fill the view from a position; return the bytes read, fewer only at the end of the file.

        Raises:
            OSError: the store did not give the bytes.
        """
        filled = 0
        while filled < len(view) and position + filled < self._size_bytes:
            here = position + filled
            start, piece = self._piece_at(here, len(view) - filled)
            given = memoryview(piece)[here - start :][: len(view) - filled]
            if not given:
                break
            view[filled : filled + len(given)] = given
            filled += len(given)
        return filled

    def close(self) -> None:
        """Wait for the reads that are under way."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _piece_at(self, position: int, wanted: int) -> tuple[int, bytes]:
        for start, piece in self._pieces:
            if start <= position < start + len(piece):
                return start, piece
        if self._ahead and self._ahead[0].start <= position < self._ahead[0].end:
            ahead = self._ahead.popleft()
            start, piece = ahead.start, ahead.bytes_read.result()
        else:
            self._forget_ahead()
            self._window = self._next_window(position, wanted)
            length = min(self._window, self._size_bytes - position)
            start, piece = position, read_range(self._file, length, position)
        is_sequential = self._window == LARGEST_READ_BYTES and bool(self._pieces)
        self._pieces.append((start, piece))
        if is_sequential:
            self._read_ahead(start + len(piece))
        return start, piece

    def _next_window(self, position: int, wanted: int) -> int:
        least = max(_SMALLEST_READ_BYTES, wanted)
        if self._pieces:
            start, piece = self._pieces[-1]
            if 0 <= position - start - len(piece) <= self._window:
                least = max(least, 2 * self._window)
        return min(least, LARGEST_READ_BYTES)

    def _read_ahead(self, start: int) -> None:
        self._depth = min(self._depth + 1, _MOST_AHEAD)
        start = self._ahead[-1].end if self._ahead else start
        while start < self._size_bytes and len(self._ahead) < self._depth:
            length = min(LARGEST_READ_BYTES, self._size_bytes - start)
            self._pool = self._pool or ThreadPoolExecutor(_MOST_AHEAD)
            bytes_read = self._pool.submit(read_range, self._file, length, start)
            self._ahead.append(_Ahead(start, start + length, bytes_read))
            start += length

    def _forget_ahead(self) -> None:
        while self._ahead:
            self._ahead.pop().bytes_read.cancel()
        self._depth = 0
