"""Read a file of an object store in a few large pieces, and fetch the next ones meanwhile."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain
from threading import Condition, Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyarrow import NativeFile

from kafka_segments.storage.pace import (
    LARGEST_READ_BYTES,
    MOST_ASKED_BYTES,
    MOST_AT_ONCE,
    MOST_BYTES,
    Pace,
)
from kafka_segments.wire.reading import FRONT_BYTES, Fetched, FillViews

_SMALLEST_READ_BYTES = 256 * 1024
_FIRST_OF_ALL_BYTES = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024  # what is given to a reader, and taken from it, at once
_KEPT = 4  # chunks: readers go back to where the last batch began
_PAUSES_SECONDS = (0.2, 1.0, 5.0)
_MOST_CHUNKS = MOST_BYTES // _CHUNK_BYTES
_MOST_CHUNKS_ASKED = MOST_ASKED_BYTES // _CHUNK_BYTES
_Memory = npt.NDArray[np.uint8]
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


def arrow_ranges(file: NativeFile) -> FillViews:
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
    """This process's memory for what is read: so many chunks, which are used again.

    A piece asks for its chunks in its turn. The chunk that was given back last is used first: it
    is in the processor's cache.
    """

    def __init__(self) -> None:
        self._free: list[_Memory] = []
        self._waiting: deque[_Piece] = deque()
        self._held = 0
        self._asked = 0  # held, and waited for
        self._lock = Lock()

    def ask_now(self, piece: "_Piece") -> None:
        """Let a piece have its chunks, whatever others have: a reader waits for it."""
        with self._lock:
            if piece in self._waiting:
                self._waiting.remove(piece)
            elif piece.is_granted:
                return
            else:
                self._asked += piece.chunks
            self._grant(piece)

    def ask_if_room(self, piece: "_Piece") -> bool:
        """Let a piece have its chunks when there is room; tell whether it may wait for that."""
        with self._lock:
            if self._asked + piece.chunks > _MOST_CHUNKS_ASKED:
                return False
            self._asked += piece.chunks
            self._waiting.append(piece)
            self._grant_waiting()
            return True

    def chunk(self) -> _Memory:
        """Return the memory of one of a piece's chunks."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return np.empty(FRONT_BYTES + _CHUNK_BYTES, dtype=np.uint8)

    def give_back(self, chunks: int, memory: list[_Memory]) -> None:
        """Take back so many of a piece's chunks; ``memory``: of those that were made."""
        with self._lock:
            self._held -= chunks
            self._asked -= chunks
            self._free += memory[: max(0, _MOST_CHUNKS - len(self._free))]
            self._grant_waiting()

    def forget(self, piece: "_Piece") -> bool:
        """Let a piece wait no longer; tell whether it did."""
        with self._lock:
            if piece not in self._waiting:
                return False
            self._waiting.remove(piece)
            self._asked -= piece.chunks
            return True

    def _grant_waiting(self) -> None:
        while self._waiting and self._held + self._waiting[0].chunks <= _MOST_CHUNKS:
            self._grant(self._waiting.popleft())

    def _grant(self, piece: "_Piece") -> None:
        self._held += piece.chunks
        piece.grant()


_ROOM = _Room()


class _Chunk(NamedTuple):
    start: int
    data: memoryview
    memory: _Memory

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class _Piece:
    """A range of a file: a thread fetches it chunk by chunk, and a reader takes these."""

    def __init__(self, start: int, end: int) -> None:
        """Prepare; nothing is filled before ``grant``."""
        self.start, self.end = start, end
        self.chunks = -(-(end - start) // _CHUNK_BYTES)
        self._taken, self._taken_to = 0, start
        self._filled_to = start
        self._filling: _Memory | None = None
        self._changed = Condition()
        # What both threads change:
        self._filled: deque[_Chunk] = deque()
        self.is_granted = self._is_dropped = self._is_done = False
        self._error: Exception | None = None

    def holds(self, position: int) -> bool:
        """Tell whether a position is in what was not taken yet."""
        return self._taken_to <= position < self.end

    def is_taken(self) -> bool:
        """Tell whether all of it was taken."""
        return self._taken_to == self.end

    def grant(self) -> None:
        """Let it be filled: there is room."""
        with self._changed:
            self.is_granted = True
            self._changed.notify_all()

    def drop(self) -> None:
        """Let no more of it be filled than the chunk that is written to."""
        with self._changed:
            self._is_dropped = True
            self._changed.notify_all()

    def fetch(self, ranges: FillViews) -> int:
        """Fill it; return the bytes that came. What went wrong is for who takes it."""
        try:
            length = ranges(self.start, self.end - self.start, self._views())
        except Exception as error:  # noqa: BLE001 - any: ``take`` raises it again
            length, self._error = 0, error
        with self._changed:
            if self._filling is not None and self.start + length > self._filled_to:
                self._put(self.start + length)
            if self._error is None:
                self.end = self.start + length
            self._is_done = True
            self._changed.notify_all()
        return length

    def take(self) -> _Chunk | None:
        """Wait for the next chunk; None: no more came.

        Raises:
            OSError: the store did not give the bytes.
            FileReplacedError: another object took this one's place.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._filled or self._is_done)
            if self._filled:
                chunk = self._filled.popleft()
                self._taken, self._taken_to = self._taken + 1, chunk.end
                return chunk
            if self._error is not None:
                raise self._error
            return None

    def release(self) -> None:
        """Give up what was not taken; no thread writes to it any more."""
        if not _ROOM.forget(self):
            unused = [] if self._filling is None else [self._filling]
            unused += [chunk.memory for chunk in self._filled]
            _ROOM.give_back(self.chunks - self._taken, unused)

    def _views(self) -> Iterator[memoryview]:
        """Give the memory of one chunk after another, as soon as there is room."""
        while self._filled_to < self.end and self._may_go_on():
            self._filling = _ROOM.chunk()
            view = _bytes_of(self._filling, self.end - self._filled_to)
            yield view
            with self._changed:
                self._put(self._filled_to + len(view))
                self._changed.notify_all()

    def _may_go_on(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self.is_granted or self._is_dropped)
            return not self._is_dropped

    def _put(self, end: int) -> None:
        if self._filling is not None:
            data = _bytes_of(self._filling, end - self._filled_to)
            self._filled.append(_Chunk(self._filled_to, data, self._filling))
            self._filled_to, self._filling = end, None


class _Ahead(NamedTuple):
    piece: _Piece
    fetched: Future[int] | None  # None: it was, by the reader


class ReadAhead:
    """Serves reads from pieces of a file.

    At most ``MOST_BYTES`` of pieces are in memory, those of a process's other readers included; a
    reader that finds no room has what it waits for all the same. More than these may be asked for:
    an answer that comes sooner than there is room is left in its connection.

    1. A first read from the file's start that is large is one of all: pieces of
       ``LARGEST_READ_BYTES`` are fetched, as many at once as ``Pace`` says.
    2. Any other first read fetches what is asked for, so that a look at a few bytes stays small.
       Each read that goes on from there fetches twice as much, up to ``LARGEST_READ_BYTES``; from
       then on several are fetched at once, too.
    3. A jump starts at 2 again.
    """

    def __init__(
        self,
        ranges: FillViews,
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
        self._kept: deque[_Chunk] = deque()
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
            chunk = self._chunk_at(here, len(view) - filled)
            if chunk is None:
                break
            given = chunk.data[here - chunk.start :][: len(view) - filled]
            _copy(given, view[filled : filled + len(given)])
            filled += len(given)
        return filled

    def fetched_at(self, position: int) -> Fetched | None:
        """Return the chunk that begins at a position; None: none does, or the file ended before.

        It stays as it is until ``_KEPT`` others were read.

        Raises:
            OSError: the store did not give the bytes.
            FileReplacedError: another object took this one's place.
        """
        if position >= self._size_bytes:
            return None
        chunk = self._chunk_at(position, _CHUNK_BYTES)
        if chunk is None or chunk.start != position:
            return None
        return Fetched(chunk.memory, len(chunk.data))

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
        if self._pool is not None:
            self._pool.shutdown()
        while self._kept:
            _ROOM.give_back(1, [self._kept.pop().memory])

    def _chunk_at(self, position: int, wanted: int) -> _Chunk | None:
        """Return the chunk that holds a position; None: the file ended before."""
        for chunk in self._kept:
            if chunk.start <= position < chunk.end:
                return chunk
        piece = self._piece_at(position, wanted)
        while True:
            self._go_on()
            try:
                taken = piece.take()
            except Exception:
                self._forget_first()
                raise
            if taken is None:
                if position == piece.start:
                    return None
                piece = self._piece_at(position, wanted)  # the store gave less than was asked for
                continue
            self._keep(taken)
            if position < taken.end:
                return taken

    def _keep(self, chunk: _Chunk) -> None:
        """Keep a chunk that was taken, and give up the oldest."""
        self._kept.append(chunk)
        if len(self._kept) > _KEPT:
            _ROOM.give_back(1, [self._kept.popleft().memory])

    def _piece_at(self, position: int, wanted: int) -> _Piece:
        piece = self._piece_ahead(position)
        if piece is not None:
            if not piece.is_granted:
                _ROOM.ask_now(piece)
            return piece
        self._forget_ahead()
        self._window = self._next_window(position, wanted)
        is_last = position + self._window >= self._size_bytes
        is_first_of_many = self._window == LARGEST_READ_BYTES and (self._kept or not position)
        if is_last:
            self._at_end()
        if is_last or not is_first_of_many:
            piece = _Piece(position, min(position + self._window, self._size_bytes))
            _ROOM.ask_now(piece)
            self._ahead.append(_Ahead(piece, None))
            piece.fetch(self._ranges)
            return piece
        with self._lock:
            self._next = position
            piece = self._next_piece()
            _ROOM.ask_now(piece)
            self._fetch(piece)
        return piece

    def _piece_ahead(self, position: int) -> _Piece | None:
        """Return the piece ahead that has a position still; the one before it is done with."""
        with self._lock:
            before = None
            if self._ahead and self._ahead[0].piece.is_taken():
                before = self._ahead.popleft()
            piece = self._ahead[0].piece if self._ahead else None
        if before is not None:
            before.piece.release()
        return piece if piece is not None and piece.holds(position) else None

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
            if self._under_way >= self._pace.at_once:
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
        self._pool = self._pool or ThreadPoolExecutor(MOST_AT_ONCE)
        self._ahead.append(_Ahead(piece, self._pool.submit(self._fill, piece, self._under_way)))

    def _fill(self, piece: _Piece, at_once: int) -> int:
        """Fill a piece, and let the next one be fetched at once: nobody has to wake up for it."""
        started = time.perf_counter()
        length = piece.fetch(self._ranges)
        if length == LARGEST_READ_BYTES:
            self._pace.took(time.perf_counter() - started, at_once=at_once)
        with self._lock:
            self._under_way -= 1
        self._go_on()
        return length

    def _forget_first(self) -> None:
        """Drop the piece that a reader waited for in vain."""
        with self._lock:
            first = self._ahead.popleft()
        first.piece.release()

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


def _bytes_of(memory: _Memory, length: int) -> memoryview:
    return memoryview(memory)[FRONT_BYTES : FRONT_BYTES + length]


def _copy(source: memoryview, target: memoryview) -> None:
    """Copy bytes, and let other threads run meanwhile."""
    np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8))
