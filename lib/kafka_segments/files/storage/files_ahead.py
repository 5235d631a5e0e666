"""Open files one after another: those of a store while the ones before them are read."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import RLock
from typing import NamedTuple

from kafka_segments.files.storage.files import OpenSegment, Place, open_segment

_MOST_OPEN = 8


class _Opened(NamedTuple):
    """An open file, and what closes it."""

    stack: ExitStack
    segment: OpenSegment


class FilesInTurn:
    """Opens files as ``open_segment`` does; files of a store that were announced are opened ahead.

    A store answers after a while, and a file takes several answers. So the next files are opened,
    and once all of a file is under way the first pieces of the next ones are fetched, as far as
    there is room for them (see ``ReadAhead``).
    """

    def __init__(self) -> None:
        self._announced: deque[Place] = deque()
        self._opening: deque[tuple[Place, Future[_Opened]]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._lock = RLock()  # threads that fetch one file start the next one

    def announce(self, files: Iterable[Place]) -> None:
        """Say which files are opened next, in this order, and read from start to end."""
        self._announced.extend(file for file in files if not file.store.is_local)
        self._open_next()

    def open(self, file: Place) -> AbstractContextManager[OpenSegment]:
        """Open a file; those announced before it are not opened any more.

        Raises:
            OSError: the file does not exist or cannot be read.
            UnreadableObjectError: the manifest of a tiered log does not allow to read it.
        """
        return open_segment(file) if file.store.is_local else self._open_stored(file)

    @contextmanager
    def _open_stored(self, file: Place) -> Iterator[OpenSegment]:
        opened = self._awaited(file)
        self._open_next()
        with opened.stack:
            yield opened.segment

    def begin_check(self, segment: OpenSegment) -> Callable[[], None]:
        """Begin to ask whether a file that was read is unchanged, while the next one is read.

        Returns what waits for the answer and raises FileReplacedError; where no file follows, it
        asks then.
        """
        if self._pool is None or not self._opening:
            return segment.check_unchanged
        return self._pool.submit(segment.check_unchanged).result

    def close(self) -> None:
        """Close what was opened for nothing."""
        while self._opening:
            self._drop()
        if self._pool is not None:
            self._pool.shutdown()

    def _awaited(self, file: Place) -> _Opened:
        if all(file != opening for opening, _ in self._opening):
            return self._open(file)
        while self._opening[0][0] != file:
            self._drop()
        return self._taken()[1].result()

    def _taken(self) -> tuple[Place, "Future[_Opened]"]:
        with self._lock:
            return self._opening.popleft()

    def _open_next(self) -> None:
        with self._lock:
            while self._announced and len(self._opening) < _MOST_OPEN:
                self._pool = self._pool or ThreadPoolExecutor(_MOST_OPEN)
                file = self._announced.popleft()
                self._opening.append((file, self._pool.submit(self._open, file)))

    def _open(self, file: Place) -> _Opened:
        with ExitStack() as stack:
            segment = stack.enter_context(open_segment(file, at_end=self._start_next))
            return _Opened(stack.pop_all(), segment)

    def _start_next(self) -> None:
        """Let the next files be fetched while there is room, in order."""
        with self._lock:
            for _, opening in self._opening:
                if not opening.done() or opening.exception() is not None:
                    return
                if not opening.result().segment.start():
                    return

    def _drop(self) -> None:
        _, opening = self._taken()
        if not opening.cancel() and opening.exception() is None:
            opening.result().stack.close()
