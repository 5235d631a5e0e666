"""Read a file of an object store in a few large pieces, and fetch the next ones meanwhile."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import chain
from threading import Condition, Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.files.storage.range_concurrency import (
    LARGEST_READ_BYTES,
    MOST_ASKED_BYTES,
    MOST_AT_ONCE,
    MOST_BYTES,
    Concurrency,
)
from kafka_segments.kafka.wire.reading import FRONT_BYTES, Fetched, FillViews

if TYPE_CHECKING:
    from pyarrow import NativeFile

_SMALLEST_READ_BYTES = 256 * 1024
_FIRST_OF_ALL_BYTES = 1024 * 1024
_KEPT = 2  # pieces: readers go back to where the last batch began
_PAUSES_SECONDS = (0.2, 1.0, 5.0)
_MOST_FREE = MOST_BYTES // LARGEST_READ_BYTES
_Memory = npt.NDArray[np.uint8]
_NO_MEMORY: _Memory = np.empty(0, dtype=np.uint8)
_NO_ROOM_FOR_REFUSAL = "Failed to flush response stream"


def read_range(file: "NativeFile", length: int, position: int) -> bytes:
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


def arrow_ranges(file: "NativeFile") -> FillViews:
    """Return what fills views from ranges of a file of Arrow's, from several threads at once."""

    def fill(position: int, length: int, views: Iterator[memoryview]) -> int:
        first = next(views, None)  # there is room now
        if first is None:
            return 0
        data = memoryview(read_range(file, length, position))
        filled = 0
        for view in chain([first], views):
            given = data[filled : filled + len(view)]
            view[: len(given)] = given
            filled += len(given)
            if filled == len(data):
                break
        return filled

    return fill


class _Room:
    """This process's memory for what is read: so many bytes, in blocks that are used again.

    A piece asks for its memory in its turn. The block that was given back last is used first: it
    is in the processor's cache.
    """

    def __init__(self) -> None:
        self._free: list[_Memory] = []
        self._waiting: deque[_Piece] = deque()
        self._held = 0
        self._asked = 0  # held, and waited for
        self._lock = Lock()

    def ask_now(self, piece: "_Piece") -> None:
        """Let a piece have its memory, whatever others have: a reader waits for it."""
        with self._lock:
            if piece in self._waiting:
                self._waiting.remove(piece)
            elif piece.is_granted:
                return
            else:
                self._asked += piece.size_bytes
            self._grant(piece)

    def ask_if_room(self, piece: "_Piece") -> bool:
        """Let a piece have its memory when there is room; tell whether it may wait for that."""
        with self._lock:
            if self._asked + piece.size_bytes > MOST_ASKED_BYTES:
                return False
            self._asked += piece.size_bytes
            self._waiting.append(piece)
            self._grant_waiting()
            return True

    def memory(self, size_bytes: int) -> _Memory:
        """Return the memory of a piece of so many bytes."""
        with self._lock:
            if self._free and size_bytes == LARGEST_READ_BYTES:
                return self._free.pop()
        return np.empty(FRONT_BYTES + size_bytes, dtype=np.uint8)

    def give_back(self, size_bytes: int, memory: _Memory) -> None:
        """Take back what a piece of so many bytes had; ``memory`` is empty if none was made."""
        with self._lock:
            self._held -= size_bytes
            self._asked -= size_bytes
            is_large = len(memory) == FRONT_BYTES + LARGEST_READ_BYTES
            if is_large and len(self._free) < _MOST_FREE:
                self._free.append(memory)
            self._grant_waiting()

    def forget(self, piece: "_Piece") -> bool:
        """Let a piece wait no longer; tell whether it did."""
        with self._lock:
            if piece not in self._waiting:
                return False
            self._waiting.remove(piece)
            self._asked -= piece.size_bytes
            return True

    def _grant_waiting(self) -> None:
        while self._waiting and self._held + self._waiting[0].size_bytes <= MOST_BYTES:
            self._grant(self._waiting.popleft())

    def _grant(self, piece: "_Piece") -> None:
        self._held += piece.size_bytes
        piece.grant()


_ROOM = _Room()


class _Piece:
    """A range of a file, which one thread fetches and a reader waits for."""

    def __init__(self, start: int, end: int) -> None:
        """Prepare; nothing is filled before ``grant``."""
        self.start, self.end = start, end
        self.size_bytes = end - start
        self._memory = _NO_MEMORY
        self._changed = Condition()
        # What several threads change:
        self.is_granted = self._is_dropped = self._is_done = False
        self._error: Exception | None = None

    def holds(self, position: int) -> bool:
        """Tell whether a position is in it."""
        return self.start <= position < self.end

    def grant(self) -> None:
        """Let it be filled: there is room."""
        with self._changed:
            self.is_granted = True
            self._changed.notify_all()

    def drop(self) -> None:
        """Let it not be filled any more where that has not begun."""
        with self._changed:
            self._is_dropped = True
            self._changed.notify_all()

    def fetch(self, ranges: FillViews) -> int:
        """Fill it; return the bytes that came. What went wrong is for who waits for it."""
        length, error = 0, None
        try:
            length = ranges(self.start, self.size_bytes, self._views())
        except Exception as raised:  # noqa: BLE001 - any: ``wait`` raises it again
            error = raised
        with self._changed:
            self.end = self.start + length
            self._error, self._is_done = error, True
            self._changed.notify_all()
        return length

    def wait(self) -> None:
        """Wait until it was fetched; ``end`` is where what came ends.

        Raises:
            OSError: the store did not give the bytes.
            FileReplacedError: another object took this one's place.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_done)
        if self._error is not None:
            raise self._error

    def fetched(self) -> Fetched:
        """Return what came."""
        return Fetched(self._memory, self.end - self.start)

    def release(self) -> None:
        """Give it up; no thread writes to it any more."""
        if not _ROOM.forget(self):
            _ROOM.give_back(self.size_bytes, self._memory)

    def _views(self) -> Iterator[memoryview]:
        """Yield its memory as soon as there is room; nothing where it was dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_granted or self._is_dropped)
            if self._is_dropped:
                return
        self._memory = _ROOM.memory(self.size_bytes)
        yield memoryview(self._memory)[FRONT_BYTES:]


class _Ahead(NamedTuple):
    piece: _Piece
    fetched: Future[int] | None  # None: its reader fetches it


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads that fetch for a process's readers."""
    del process  # a child of it has none
    return ThreadPoolExecutor(MOST_AT_ONCE)


class ReadAhead:
    """Serves reads from pieces of a file.

    At most ``MOST_BYTES`` of pieces are in memory, those of a process's other readers included; a
    reader that finds no room has what it waits for all the same. More than these may be asked for:
    an answer that comes sooner than there is room is left in its connection.

    1. A first read from the file's start that is large is one of all: pieces of
       ``LARGEST_READ_BYTES`` are fetched, as many at once as ``Concurrency`` says.
    2. Any other first read fetches what is asked for, so that a look at a few bytes stays small.
       Each read that goes on from there fetches twice as much, up to ``LARGEST_READ_BYTES``; from
       then on several are fetched at once, too.
    3. A jump starts at 2 again.
    """

    def __init__(
        self,
        ranges: FillViews,
        size_bytes: int,
        concurrency: Concurrency,
        *,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; nothing is read. ``ranges`` is called by several threads.

        ``at_end`` is called when all of the file is read or under way, by any thread, again and
        again until it is closed: there may be room for what is read next.
        """
        self._ranges = ranges
        self._size_bytes = size_bytes
        self._concurrency = concurrency
        self._at_end = at_end
        self._kept: deque[_Piece] = deque()
        self._window = 0
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
            piece = self._piece_with(position + filled, len(view) - filled)
            if piece is None:
                break
            memory, length = piece.fetched()
            data = memoryview(memory)[FRONT_BYTES : FRONT_BYTES + length]
            given = data[position + filled - piece.start :][: len(view) - filled]
            _copy(given, view[filled : filled + len(given)])
            filled += len(given)
        return filled

    def fetched_at(self, position: int) -> Fetched | None:
        """Return the piece that begins at a position; None: none does, or the file ended before.

        It stays as it is until ``_KEPT`` others were read.

        Raises:
            OSError: the store did not give the bytes.
            FileReplacedError: another object took this one's place.
        """
        if position >= self._size_bytes:
            return None
        piece = self._piece_with(position, _FIRST_OF_ALL_BYTES)
        if piece is None or piece.start != position:
            return None
        return piece.fetched()

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
        """Wait for the reads that are under way, and give the memory up."""
        with self._lock:
            self._is_closed = True
        self._forget_ahead()
        while self._kept:
            self._kept.pop().release()

    def _piece_with(self, position: int, wanted: int) -> _Piece | None:
        """Return the piece that holds a position; None: the file ended before."""
        for piece in self._kept:
            if piece.holds(position):
                return piece
        while True:
            first = self._piece_at(position, wanted)
            piece = first.piece
            self._go_on()
            self._fetch_now(first)
            try:
                piece.wait()
            except Exception:
                self._taken().release()
                raise
            self._keep(self._taken())
            if piece.holds(position):
                return piece
            if position == piece.start:
                return None  # else the store gave less than was asked for

    def _taken(self) -> _Piece:
        with self._lock:
            return self._ahead.popleft().piece

    def _keep(self, piece: _Piece) -> None:
        """Keep a piece that came, and give up the oldest."""
        self._kept.append(piece)
        if len(self._kept) > _KEPT:
            self._kept.popleft().release()

    def _piece_at(self, position: int, wanted: int) -> _Ahead:
        with self._lock:
            first = self._ahead[0] if self._ahead else None
        if first is not None and first.piece.holds(position):
            if not first.piece.is_granted:
                _ROOM.ask_now(first.piece)
            return first
        self._forget_ahead()
        self._window = self._next_window(position, wanted)
        is_last = position + self._window >= self._size_bytes
        is_first_of_many = self._window == LARGEST_READ_BYTES and (self._kept or not position)
        if is_last:
            self._at_end()
        with self._lock:
            if is_last or not is_first_of_many:
                end = min(position + self._window, self._size_bytes)
                self._ahead.append(_Ahead(_Piece(position, end), None))
                _ROOM.ask_now(self._ahead[0].piece)
            else:
                self._next = position
                piece = self._next_piece()
                _ROOM.ask_now(piece)
                self._fetch(piece)
            return self._ahead[0]

    def _fetch_now(self, first: _Ahead) -> None:
        """Fetch a piece here if no thread has begun to: all may wait for what others read."""
        if first.fetched is None:
            first.piece.fetch(self._ranges)
        elif first.fetched.cancel():
            self._fill(first.piece, 0)

    def _next_window(self, position: int, wanted: int) -> int:
        if not self._kept and not position and wanted >= _FIRST_OF_ALL_BYTES:
            return LARGEST_READ_BYTES
        least = max(_SMALLEST_READ_BYTES, wanted)
        if self._kept:
            between = position - self._kept[-1].end
            if 0 <= between <= self._window:
                least = max(least, 2 * self._window)
        return min(least, LARGEST_READ_BYTES)

    def _go_on(self) -> None:
        with self._lock:
            is_all = self._fetch_more()
        if is_all:
            self._at_end()

    def _fetch_more(self) -> bool:
        """Fetch pieces while they may be asked for; tell whether all of the file is under way."""
        while self._next is not None and self._next < self._size_bytes:
            if self._under_way >= self._concurrency.at_once:
                return False
            piece = self._next_piece()
            if not _ROOM.ask_if_room(piece):
                return False
            self._fetch(piece)
        return self._next is not None

    def _next_piece(self) -> _Piece:
        start = self._next or 0
        return _Piece(start, min(start + LARGEST_READ_BYTES, self._size_bytes))

    def _fetch(self, piece: _Piece) -> None:
        self._next = piece.end
        self._under_way += 1
        fetched = _pool(os.getpid()).submit(self._fill, piece, self._under_way)
        self._ahead.append(_Ahead(piece, fetched))

    def _fill(self, piece: _Piece, at_once: int) -> int:
        """Fill a piece, and start the next fetch from this thread: no other has to wake up."""
        started = time.perf_counter()
        length = piece.fetch(self._ranges)
        if length == LARGEST_READ_BYTES:
            self._concurrency.took(time.perf_counter() - started, at_once=at_once)
        with self._lock:
            self._under_way -= 1
        self._go_on()
        return length

    def _forget_ahead(self) -> None:
        """Drop what was fetched ahead; wait for what is under way, its memory is written to."""
        with self._lock:
            self._next = None
            dropped, self._ahead = self._ahead, deque()
            for ahead in dropped:
                ahead.piece.drop()
            fetched = [ahead.fetched for ahead in dropped if ahead.fetched is not None]
            waited_for = [one for one in fetched if not one.cancel()]
            self._under_way -= len(fetched) - len(waited_for)
        wait(waited_for)
        for ahead in dropped:
            ahead.piece.release()


def _copy(source: memoryview, target: memoryview) -> None:
    """Copy bytes, and let other threads run meanwhile."""
    np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8))
