"""Take first looks at segments where they lie: ranges of the log and of its index files."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from threading import local
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_segments.errors import CorruptIndexError, FileChangedError
from kafka_segments.index.first_look import MOST_WHOLE_BYTES, FirstLook, FirstLooker, IndexFiles
from kafka_segments.index.index_ends import RangedFile
from kafka_segments.index.recovery_options import RecoveryOptions
from kafka_segments.storage.files import OpenSegment, Place, first_line, open_segment, place
from kafka_segments.storage.links import look_at
from kafka_segments.storage.local_file import LocalFile
from kafka_segments.storage.read_ahead import read_range
from kafka_segments.wire.names import INDEX_SUFFIXES, LOG_SUFFIX
from kafka_segments.wire.segment_manifest import IndexPart, RemoteSegment, SegmentManifest
from kafka_segments.wire.tiered_names import INDEXES

LOOKS_AT_ONCE = 24
"""Of a task: the store is waited for, and its client keeps about as many connections."""


class Looked(NamedTuple):
    """A first look that was taken, and what it took.

    ``found`` is None if the segment must be read as a whole: ``doubt`` says why, None that it is
    small. ``size_bytes`` is that of the log in an object of tiered storage; None: the file's size.
    """

    found: FirstLook | None
    doubt: str | None = None
    size_bytes: int | None = None
    bytes_read: int = 0


class FirstLooks:
    """Looks at one segment after another.

    Index files are those beside a segment, or in tiered storage the parts of its object of indexes.
    """

    def __init__(self, options: RecoveryOptions) -> None:
        self._looker = FirstLooker(options)
        self._bytes_read = 0

    def take(self, source: str, log: Place, base_offset: int, *, is_active: bool) -> Looked:
        """Look at a segment; what contradicts its index files is a ``doubt``.

        Raises:
            FileChangedError: the log changed meanwhile.
            OSError: the log cannot be read.
        """
        with open_segment(log, reads_ahead=False) as segment:
            if segment.size_bytes <= MOST_WHOLE_BYTES:
                return Looked(None)
            before = self._bytes_read
            try:
                found = self._look(log, segment, source, base_offset, is_active=is_active)
            except CorruptIndexError as error:
                return Looked(None, str(error))
            segment.check_unchanged()
        is_tiered = segment.manifest is not None
        size_bytes = segment.size_bytes if is_tiered else None
        return Looked(found, None, size_bytes, self._bytes_read - before)

    def _look(
        self, log: Place, segment: OpenSegment, source: str, base_offset: int, *, is_active: bool
    ) -> FirstLook:
        def read_log(position: int, length: int) -> bytes:
            data = np.empty(length, dtype=np.uint8)
            read = segment.read_into(position, memoryview(data)) if length else 0
            if read < length:
                raise FileChangedError(position + read, segment.size_bytes)
            return data.tobytes()

        with ExitStack() as files:
            if segment.manifest is None:
                indexes = self._beside(log, source, files)
            else:
                indexes = self._of_upload(log, segment.manifest, files)
            found = self._looker.look(
                self._counted(segment.size_bytes, read_log),
                indexes,
                base_offset=base_offset,
                is_active=is_active,
            )
        remote = None if segment.manifest is None else segment.manifest.segment
        return found if remote is None else _as_announced(found, remote)

    def _beside(self, log: Place, source: str, files: ExitStack) -> IndexFiles:
        stem = log.path.removesuffix(LOG_SUFFIX)
        return IndexFiles(
            *(
                self._opened(log._replace(path=stem + suffix), source, files)
                for suffix in INDEX_SUFFIXES
            )
        )

    def _of_upload(self, log: Place, manifest: SegmentManifest, files: ExitStack) -> IndexFiles:
        """Return the parts of the object that holds a segment's indexes, as its manifest says."""
        path = log.path.removesuffix(LOG_SUFFIX) + INDEXES
        whole = self._opened(log._replace(path=path), "", files)
        parts = (manifest.parts.get(suffix) for suffix in INDEX_SUFFIXES)
        return IndexFiles(*(_part(whole, part) for part in parts))

    def _opened(self, file: Place, source: str, files: ExitStack) -> RangedFile | None:
        """Open a file for ranges; None if it does not exist."""
        name = file.path.rpartition("/")[2]
        try:
            size_bytes, read_ranges = files.enter_context(_opened_for_ranges(file))
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            odd = look_at(file, source=source)
            reason = odd.reason if odd is not None else f"cannot be read: {first_line(error)}"
            raise CorruptIndexError(f"{name}: {reason}") from None

        def read(position: int, length: int) -> bytes:
            try:
                data = read_ranges(position, length)
            except (OSError, pa.ArrowException) as error:
                raise CorruptIndexError(f"{name} cannot be read: {first_line(error)}") from None
            if len(data) < length:
                raise CorruptIndexError(f"{name} became shorter while it was read")
            return data

        return self._counted(size_bytes, read)

    def _counted(self, size_bytes: int, read: Callable[[int, int], bytes]) -> RangedFile:
        def counted(position: int, length: int) -> bytes:
            self._bytes_read += length
            return read(position, length)

        return RangedFile(size_bytes, counted)


class LooksAtOnce:
    """Looks at many segments of a store at once, which is waited for more than it is read.

    Segments on a local disk are left out: there is nothing to wait for. Its threads, and the
    buffers of each, are kept until it is closed.
    """

    def __init__(self, options: RecoveryOptions) -> None:
        self._options = options
        self._of_thread = local()
        self._pool = ThreadPoolExecutor(LOOKS_AT_ONCE)

    def begin(self, rows: Sequence[dict[str, Any]]) -> Iterator[Looked | None]:
        """Begin looks; return what waits for each. None: not taken, or not come to an end.

        Needs: source, relative_path, name, base_offset, is_active of each row.
        """
        begun = [self._begin(row) for row in rows]
        return (None if one is None else one.result() for one in begun)

    def close(self) -> None:
        """Give up what was begun and has not come to its turn."""
        self._pool.shutdown(cancel_futures=True)

    def _begin(self, row: dict[str, Any]) -> Future[Looked | None] | None:
        if place(row["source"]).store.is_local:
            return None
        return self._pool.submit(self._take, row)

    def _take(self, row: dict[str, Any]) -> Looked | None:
        if not hasattr(self._of_thread, "looks"):
            self._of_thread.looks = FirstLooks(self._options)
        looks: FirstLooks = self._of_thread.looks
        log = place(row["source"]).child(row["relative_path"], row["name"])
        try:
            return looks.take(row["source"], log, row["base_offset"], is_active=row["is_active"])
        except (OSError, FileChangedError):  # whoever looks again gets it, and says so
            return None


@contextmanager
def _opened_for_ranges(file: Place) -> Iterator[tuple[int, Callable[[int, int], bytes]]]:
    """Open a file; yield its size, and what returns a range of it by position and length."""
    if file.store.is_local:
        with closing(LocalFile(file.path, is_plain=True)) as opened:
            yield opened.size_bytes, opened.read
        return
    with file.filesystem.open_input_file(file.path) as stream:
        yield stream.size(), lambda position, length: read_range(stream, length, position)


def _part(whole: RangedFile | None, part: IndexPart | None) -> RangedFile | None:
    if whole is None or part is None:
        return None
    start = part.position
    if start + part.size > whole.size_bytes:
        raise CorruptIndexError(
            f"the manifest has an index at bytes {start} to {start + part.size} of an object of"
            f" {whole.size_bytes}"
        )
    return RangedFile(part.size, lambda position, length: whole.read(start + position, length))


def _as_announced(found: FirstLook, remote: RemoteSegment) -> FirstLook:
    """Check what was found by what a broker announced at the upload; add its leader epochs."""
    announced = (remote.end_offset, remote.max_timestamp_ms)
    here = (found.next_offset - 1, found.max_timestamp)
    if announced != here:
        raise CorruptIndexError(
            f"the manifest announces last offset {announced[0]} and timestamp {announced[1]}, the"
            f" log and its indexes have {here[0]} and {here[1]}"
        )
    epochs = remote.leader_epochs
    starts = [*(epoch.start_offset for epoch in epochs), found.next_offset]
    are_sound = all(start < after for start, after in pairwise(starts))
    is_seen = epochs and (epochs[0], epochs[-1].epoch) == (found.first_epoch, found.last_epoch)
    if not (is_seen and are_sound):
        return found
    return replace(found, leader_epochs=np.array(epochs, dtype=np.int64))
