"""Read segments and their index files by ranges where they lie: on a disk, a store, or a tier."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import numpy as np

from kafka_segments.errors import CorruptIndexError, FileChangedError
from kafka_segments.files.storage.files import OpenSegment, Place, first_line
from kafka_segments.files.storage.links import look_at
from kafka_segments.files.storage.local_file import LocalFile
from kafka_segments.files.storage.read_ahead import read_range
from kafka_segments.files.storage.stores import RangedObject, read_errors
from kafka_segments.kafka.index.segment.index_ends import PIECE_BYTES, IndexFiles, RangedFile
from kafka_segments.kafka.text.names import INDEX_SUFFIXES, LOG_SUFFIX
from kafka_segments.kafka.tier.segment_manifest import IndexPart, SegmentManifest
from kafka_segments.kafka.tier.tiered_names import INDEXES


class CountedRanges:
    """Gives files that are read by ranges; ``bytes_read`` counts the bytes of all these reads.

    What cannot be read of an index file raises ``CorruptIndexError``.
    """

    def __init__(self) -> None:
        self.bytes_read = 0

    def log(self, segment: OpenSegment) -> RangedFile:
        """Return an open log; its reads raise ``FileChangedError`` where it has become shorter."""

        def read(position: int, length: int) -> bytes:
            data = np.empty(length, dtype=np.uint8)
            found = segment.read_into(position, memoryview(data)) if length else 0
            if found < length:
                raise FileChangedError(position + found, segment.size_bytes)
            return data.tobytes()

        return self._counted(segment.size_bytes, read)

    def index_files(
        self, log: Place, segment: OpenSegment, files: ExitStack, *, source: str = ""
    ) -> IndexFiles:
        """Open a segment's index files: those beside it, or in tiered storage those of its upload.

        ``files`` closes them. ``source`` is the folder that odd links are told from.

        Raises:
            CorruptIndexError: one of them is no file, or cannot be read; the text has the reason.
        """
        if segment.manifest is not None:
            return self._of_upload(log, segment.manifest, files)
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
        except read_errors() as error:
            odd = look_at(file, source=source)
            reason = odd.reason if odd is not None else f"cannot be read: {first_line(error)}"
            raise CorruptIndexError(f"{name}: {reason}") from None

        def read(position: int, length: int) -> bytes:
            try:
                data = read_ranges(position, length)
            except read_errors() as error:
                raise CorruptIndexError(f"{name} cannot be read: {first_line(error)}") from None
            if len(data) < length:
                raise CorruptIndexError(f"{name} became shorter while it was read")
            return data

        return self._counted(size_bytes, read)

    def _counted(self, size_bytes: int, read: Callable[[int, int], bytes]) -> RangedFile:
        def counted(position: int, length: int) -> bytes:
            self.bytes_read += length
            return read(position, length)

        return RangedFile(size_bytes, counted)


@contextmanager
def _opened_for_ranges(file: Place) -> Iterator[tuple[int, Callable[[int, int], bytes]]]:
    """Open a file; yield its size, and what returns a range of it by position and length."""
    if file.store.is_local:
        with closing(LocalFile(file.path, is_plain=True)) as opened:
            yield opened.size_bytes, opened.read
        return
    if file.store.ranges is not None:
        yield _of_object(file.store.ranges(file.filesystem, file.path, None))
        return
    with file.filesystem.open_input_file(file.path) as stream:
        yield stream.size(), lambda position, length: read_range(stream, length, position)


def _of_object(file: RangedObject) -> tuple[int, Callable[[int, int], bytes]]:
    """Read the last bytes of an object, which its size comes with; they are not asked for again."""
    last = file.end(PIECE_BYTES)
    size_bytes = file.size_bytes or 0
    start = size_bytes - len(last)

    def read(position: int, length: int) -> bytes:
        if position >= start:
            return last[position - start :][:length]
        data = bytearray(length)
        filled = file.fill(position, length, iter([memoryview(data)]))
        return bytes(data[:filled])

    return size_bytes, read


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
