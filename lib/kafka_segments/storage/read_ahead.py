"""Read a file of an object store in a few large pieces, and fetch the next ones meanwhile."""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import NamedTuple

import numpy as np
from pyarrow import NativeFile

from kafka_segments.storage.pace import (
    LARGEST_READ_BYTES,
    MOST_AT_ONCE,
    MOST_BYTES,
    Pace,
)
from kafka_segments.wire.reading import ReadInto

_SMALLEST_READ_BYTES = 256 * 1024
_FIRST_OF_ALL_BYTES = 1024 * 1024
_KEPT = 2  # readers go back to where the last batch began
_PAUSES_SECONDS = (0.2, 1.0, 5.0)
_MOST_BUFFERS = MOST_BYTES // LARGEST_READ_BYTES
_NO_ROOM_FOR_REFUSAL = "Failed to flush response stream"


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


def arrow_ranges(file: NativeFile) -> ReadInto:
    """Return what fills views from ranges of a file of Arrow's, from several threads at once."""

    def read_into(position: int, view: memoryview) -> int:
        data = read_range(file, len(view), position)
        view[: len(data)] = data
        return len(data)

    return read_into


class _Buffers:
    """This process's buffers, each of the largest piece.

    They are used again: fresh memory costs more than to fill it.
    """

    def __init__(self) -> None:
        self._free: list[memoryview] = []
        self._taken = 0
        self._lock = Lock()

    def take(self) -> memoryview:
        """Give one that is needed now, whatever others have."""
        with self._lock:
            return self._another()

    def take_if_room(self) -> memoryview | None:
        """Give one for what is needed later."""
        with self._lock:
            return self._another() if self._taken < _MOST_BUFFERS else None

    def _another(self) -> memoryview:
        self._taken += 1
        if self._free:
            return self._free.pop()
        return memoryview(np.empty(LARGEST_READ_BYTES, dtype=np.uint8))

    def give_back(self, buffer: memoryview) -> None:
        with self._lock:
            self._taken -= 1
            if len(self._free) < _MOST_BUFFERS:
                self._free.append(buffer)


_BUFFERS = _Buffers()


class _Piece(NamedTuple):
    start: int
    end: int
    buffer: memoryview

    def holds(self, position: int) -> bool:
        return self.start <= position < self.end

    def fill(self, ranges: ReadInto) -> int:
        return ranges(self.start, self.buffer[: self.end - self.start])


class _Ahead(NamedTuple):
    piece: _Piece
    filled: Future[int]


class ReadAhead:
    """Serves reads from pieces of a file.

    At most ``MOST_BYTES`` of pieces are in memory, those of a process's other readers included; a
    reader that finds no room has three pieces all the same.

    1. A first read from the file's start that is large is one of all: pieces of
       ``LARGEST_READ_BYTES`` are fetched, as many at once as ``Pace`` says.
    2. Any other first read fetches what is asked for, so that a look at a few bytes stays small.
       Each read that goes on from there fetches twice as much, up to ``LARGEST_READ_BYTES``; from
       then on several are fetched at once, too.
    3. A jump starts at 2 again.
    """

    def __init__(
        self,
        ranges: ReadInto,
        size_bytes: int,
        pace: Pace,
        *,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; nothing is read. ``ranges`` is called by several threads.

        ``at_end`` is called when all of the file is read or under way, by any thread, again and
        again until it is closed: there may be room for what is read next.
        """
        self._ranges = ranges
        self._size_bytes = size_bytes
        self._pace = pace
        self._at_end = at_end
        self._pieces: deque[_Piece] = deque()
        self._window = 0
        self._pool: ThreadPoolExecutor | None = None
        # What the threads that fetch change as well:
        self._lock = Lock()
        self._ahead: deque[_Ahead] = deque()
        self._next: int | None = None  # where the next piece starts; none is fetched ahead
        self._under_way = 0
        self._is_closed = False

    def read_into(self, position: int, view: memoryview) -> int:
        """Fill the view from a position; return the bytes read, fewer only at the end of the file.

        Raises:
            OSError: the store did not give the bytes.
            FileReplacedError: another object took this one's place.
        """
        filled = 0
        while filled < len(view) and position + filled < self._size_bytes:
            here = position + filled
            start, end, buffer = self._piece_at(here, len(view) - filled)
            given = buffer[here - start : end - start][: len(view) - filled]
            if not given:
                break
            view[filled : filled + len(given)] = given
            filled += len(given)
        return filled

    def start(self) -> bool:
        """Fetch the first pieces before anything is read; for who is going to read all.

        Gives whether all of the file is under way; else call it again when there is room.
        """
        with self._lock:
            if self._is_closed:
                return True
            if self._window == 0:
                self._window, self._next = LARGEST_READ_BYTES, 0
            return self._fetch_more()

    def close(self) -> None:
        """Wait for the reads that are under way, and give the buffers up."""
        with self._lock:
            self._is_closed = True
        self._forget_ahead()
        if self._pool is not None:
            self._pool.shutdown()
        while self._pieces:
            _BUFFERS.give_back(self._pieces.pop().buffer)

    def _piece_at(self, position: int, wanted: int) -> _Piece:
        for piece in self._pieces:
            if piece.holds(position):
                return piece
        ahead = self._taken_ahead(position)
        if ahead is None:
            self._forget_ahead()
            self._window = self._next_window(position, wanted)
            is_last = position + self._window >= self._size_bytes
            is_first_of_many = self._window == LARGEST_READ_BYTES and (self._pieces or not position)
            if is_last:
                self._at_end()
            if is_last or not is_first_of_many:
                end = min(position + self._window, self._size_bytes)
                piece = _Piece(position, end, _BUFFERS.take())
                return self._kept(piece, lambda: piece.fill(self._ranges))
            with self._lock:
                self._next = position
                self._fetch(_BUFFERS.take())
                ahead = self._ahead.popleft()
        self._go_on()
        kept = self._kept(ahead.piece, ahead.filled.result)
        self._go_on()  # there may be room now
        return kept

    def _taken_ahead(self, position: int) -> _Ahead | None:
        with self._lock:
            if self._ahead and self._ahead[0].piece.holds(position):
                return self._ahead.popleft()
        return None

    def _kept(self, piece: _Piece, fill: Callable[[], int]) -> _Piece:
        """Keep a piece once it is filled, and give up the oldest."""
        try:
            piece = piece._replace(end=piece.start + fill())
        except Exception:  # at Ctrl-C it may be written to still
            _BUFFERS.give_back(piece.buffer)
            raise
        self._pieces.append(piece)
        if len(self._pieces) > _KEPT:
            _BUFFERS.give_back(self._pieces.popleft().buffer)
        return piece

    def _next_window(self, position: int, wanted: int) -> int:
        if not self._pieces and not position and wanted >= _FIRST_OF_ALL_BYTES:
            return LARGEST_READ_BYTES
        least = max(_SMALLEST_READ_BYTES, wanted)
        if self._pieces:
            between = position - self._pieces[-1].end
            if 0 <= between <= self._window:
                least = max(least, 2 * self._window)
        return min(least, LARGEST_READ_BYTES)

    def _go_on(self) -> None:
        with self._lock:
            is_all = self._fetch_more()
        if is_all:
            self._at_end()

    def _fetch_more(self) -> bool:
        """Fetch pieces while there is room; tell whether all of the file is under way."""
        while self._next is not None and self._next < self._size_bytes:
            if self._under_way >= self._pace.at_once:
                return False
            buffer = _BUFFERS.take_if_room()
            if buffer is None:
                return False
            self._fetch(buffer)
        return self._next is not None

    def _fetch(self, buffer: memoryview) -> None:
        start = self._next or 0
        self._next = min(start + LARGEST_READ_BYTES, self._size_bytes)
        piece = _Piece(start, self._next, buffer)
        self._under_way += 1
        self._pool = self._pool or ThreadPoolExecutor(MOST_AT_ONCE)
        self._ahead.append(_Ahead(piece, self._pool.submit(self._fill, piece, self._under_way)))

    def _fill(self, piece: _Piece, at_once: int) -> int:
        """Fill a piece, and let the next one be fetched at once: nobody has to wake up for it."""
        started = time.perf_counter()
        try:
            length = piece.fill(self._ranges)
            if length == LARGEST_READ_BYTES:
                self._pace.took(time.perf_counter() - started, at_once=at_once)
            return length
        finally:
            with self._lock:
                self._under_way -= 1
            self._go_on()

    def _forget_ahead(self) -> None:
        """Drop what was fetched ahead; wait for what is under way, its buffers are written to."""
        with self._lock:
            self._next = None
            dropped, self._ahead = self._ahead, deque()
            waited_for = [ahead.filled for ahead in dropped if not ahead.filled.cancel()]
            self._under_way -= len(dropped) - len(waited_for)
        wait(waited_for)
        for ahead in dropped:
            _BUFFERS.give_back(ahead.piece.buffer)
