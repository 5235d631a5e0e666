"""List folders and read files of any store; those that are no disks here through pyarrow.fs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kafka_segments.errors import (
    OUTAGE,
    CorruptTextError,
    FileReplacedError,
    NoFolderError,
    SourceError,
    UnreadableObjectError,
)
from kafka_segments.files.storage.local_file import Kind, LocalFile, local_kind
from kafka_segments.files.storage.local_folder import (
    NO_FILE,
    FileEntry,
    list_local_folder,
)
from kafka_segments.files.storage.outages import is_outage
from kafka_segments.files.storage.permissions import is_forbidden, permission_step
from kafka_segments.files.storage.range_concurrency import concurrency_of
from kafka_segments.files.storage.ranges_as_file import RangesAsFile
from kafka_segments.files.storage.read_ahead import ReadAhead, arrow_ranges, read_range
from kafka_segments.files.storage.stored_folder import list_stored_folder
from kafka_segments.files.storage.stores import (
    LOCAL,
    Store,
    checked_root,
    local_filesystem,
    open_store,
    read_errors,
    store_behind,
    store_of,
)
from kafka_segments.files.storage.tiered_log import CompressedLog, check_readable
from kafka_segments.kafka.tier.segment_manifest import (
    MOST_MANIFEST_BYTES,
    SegmentManifest,
    parse_manifest,
)
from kafka_segments.kafka.tier.tiered_names import MANIFEST, tiered_log_of
from kafka_segments.kafka.wire.reading import FetchedAt, FillViews, ReadInto

if TYPE_CHECKING:
    from pyarrow import NativeFile, fs


class Place(NamedTuple):
    """A folder or file: a file system of Arrow, None for the disks here, and a path in it."""

    remote: "fs.FileSystem | None"
    path: str

    @property
    def filesystem(self) -> "fs.FileSystem":
        """Return the file system of Arrow's in which it lies; for a disk here Arrow is imported."""
        return local_filesystem() if self.remote is None else self.remote

    @property
    def store(self) -> Store:
        """Return what the store of this place can do."""
        return LOCAL if self.remote is None else store_behind(self.remote)

    def kind(self) -> Kind:
        """Tell what lies there; of a symbolic link, what it leads to.

        Raises:
            OSError: it cannot be told.
        """
        if self.store.is_local:
            return local_kind(self.path)
        return Kind(self.filesystem.get_file_info(self.path).type.name)

    def child(self, *parts: str) -> "Place":
        """Return the place of a path below this one; empty parts are left out."""
        path = self.path
        for part in parts:
            path = f"{path}/{part}" if part else path
        return Place(self.remote, path)


@lru_cache(maxsize=64)
def place(uri: str) -> Place:
    """Return the place that a URI names; ``uri`` is as ``typed_uris.absolute_uri`` gives it.

    Raises:
        UsageError: there is no file system for its scheme.
    """
    if store_of(uri).is_local:
        return Place(None, uri)
    root, path = checked_root(uri)
    filesystem, root_path = open_store(root)
    return Place(filesystem, f"{root_path}/{path}".rstrip("/"))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type where it has none.

    Where this user may not read what it names, also whose it is, and how it can be read; where it
    does not answer for now, that it is to be asked again.
    """
    text = str(error).strip()
    line = text.splitlines()[0] if text else type(error).__name__
    if is_outage(error):
        return f"{line}; {OUTAGE}"
    return f"{line}; {permission_step(error)}" if is_forbidden(error) else line


def list_folder(folder: Place, *, without: tuple[str, ...] = ()) -> list[FileEntry]:
    """Return the entries of a folder, sorted by name.

    ``without``: on a local disk plain files of segments with these suffixes may be left out, which
    is quicker.

    Raises:
        NoFolderError: the folder does not exist.
        SourceError: it is no folder, or may not be read.
    """
    try:
        if folder.store.is_local:
            return sorted(list_local_folder(folder.path, without=without))
        is_deep = not folder.store.lists_folders
        return sorted(list_stored_folder(folder.filesystem, folder.path, is_deep=is_deep))
    except read_errors() as error:
        kind = NoFolderError if isinstance(error, FileNotFoundError) else SourceError
        raise kind(folder.path, first_line(error)) from None


def read_whole(file: Place, *, most_bytes: int, is_plain: bool = False) -> bytes:
    """Return the bytes of a small file; ``is_plain``: see ``LocalFile``.

    Raises:
        OSError: it has more than ``most_bytes``, or cannot be read.
    """
    if file.store.is_local:
        with closing(LocalFile(file.path, is_plain=is_plain)) as opened:
            return opened.read(0, _checked_size(opened.size_bytes, most_bytes))
    with file.filesystem.open_input_file(file.path) as stream:
        return read_range(stream, _checked_size(stream.size(), most_bytes), 0)


@contextmanager
def opened_for_arrow(file: Place) -> "Iterator[NativeFile]":
    """Open a file for readers of Arrow's, as those of Parquet; a range that fails is tried again.

    Raises:
        OSError: it cannot be opened; from reads, that the store did not give the bytes.
    """
    with file.filesystem.open_input_file(file.path) as stream:
        if file.store.is_local:
            yield stream
            return
        from pyarrow import PythonFile  # noqa: PLC0415

        ranges = RangesAsFile(
            stream.size(), lambda position, length: read_range(stream, length, position)
        )
        with PythonFile(ranges, mode="r") as asked:
            yield asked


def _checked_size(size_bytes: int, most_bytes: int) -> int:
    if size_bytes > most_bytes:
        raise OSError(f"{size_bytes} bytes, at most {most_bytes} expected")
    return size_bytes


def read_if_there(file: Place, *, most_bytes: int) -> bytes | None:
    """Return the bytes of a small file, None if it does not exist.

    Raises:
        OSError: it is no file (a pipe is not waited for), has more than ``most_bytes``, or cannot
            be read.
    """
    found = file.kind()
    if found is Kind.NOTHING:
        return None
    if found is not Kind.FILE:
        raise OSError("a folder" if found is Kind.FOLDER else NO_FILE)
    return read_whole(file, most_bytes=most_bytes)


def _nothing() -> None:
    """Do nothing: a local file needs no check, as it gives short reads once it is shorter."""


def _nothing_to_start() -> bool:
    """Tell that nothing is left to fetch: a local file is read when it is asked for."""
    return True


class OpenSegment(NamedTuple):
    """An open file.

    Attributes:
        read_into: Fills a view from a position; returns the bytes read.
        size_bytes: Of the file when it was opened; of a compressed log, what it decompresses to.
        check_unchanged: Raises FileReplacedError if another object took this one's place. Call it
            when all is read: Arrow fills up the bytes that a shorter object lacks.
        tiered_timestamp_ms: The largest timestamp that a broker goes by, where a manifest has it.
        manifest: Of a log in Aiven's layout.
        start: Fetches the first pieces of a file that will be read as a whole, as far as there is
            room; returns whether all of it is under way. Call it before anything is read.
        fetched_at: Gives bytes that were fetched where they are; None: they are copied.
        written_bytes: Where the last byte ends that was ever written, zeros follow it; None: not
            known.
    """

    read_into: ReadInto
    size_bytes: int
    check_unchanged: Callable[[], None] = _nothing
    tiered_timestamp_ms: int | None = None
    manifest: SegmentManifest | None = None
    start: Callable[[], bool] = _nothing_to_start
    fetched_at: FetchedAt | None = None
    written_bytes: int | None = None


def open_segment(
    file: Place, *, reads_ahead: bool = True, at_end: Callable[[], None] = _nothing
) -> AbstractContextManager[OpenSegment]:
    """Open a file for reads of ranges.

    The file may change while it is open: then a read is short, or ``check_unchanged`` raises. A log
    in Aiven's layout is read as its manifest says, decompressed if it is compressed. Without
    ``reads_ahead`` no more is fetched of an object than a read asks for; else ``at_end`` is called
    at reads from when all of it is under way.

    Raises:
        OSError: the file does not exist or cannot be read.
        UnreadableObjectError: the manifest of a tiered log does not allow to read it.
    """
    if tiered_log_of(file.path) is None:
        return _open_stored(file, reads_ahead, at_end)
    return _open_tiered(file, reads_ahead, at_end)


@contextmanager
def _open_tiered(
    file: Place, reads_ahead: bool, at_end: Callable[[], None]
) -> Iterator[OpenSegment]:
    try:
        manifest = read_manifest(file)
    except CorruptTextError as error:
        raise UnreadableObjectError(str(error)) from None
    check_readable(manifest)
    remote = manifest.segment
    with _open_stored(file, reads_ahead, at_end) as stored:
        read = stored
        if manifest.is_compressed:
            log = CompressedLog(stored.read_into, stored.size_bytes, manifest.chunks)
            size_bytes = manifest.chunks.log_bytes
            read = stored._replace(read_into=log.read_into, size_bytes=size_bytes, fetched_at=None)
        yield read._replace(
            tiered_timestamp_ms=None if remote is None else remote.max_timestamp_ms,
            manifest=manifest,
        )


def read_manifest(log: Place) -> SegmentManifest:
    """Return the manifest beside a log in Aiven's layout.

    Raises:
        CorruptTextError: the manifest cannot be parsed.
        UnreadableObjectError: there is no manifest.
        OSError: the manifest cannot be read.
    """
    path = log.path.removesuffix(".log") + MANIFEST
    name = path.rpartition("/")[2]
    data = read_if_there(log._replace(path=path), most_bytes=MOST_MANIFEST_BYTES)
    if data is None:
        raise UnreadableObjectError(f"an incomplete upload: there is no {name}")
    return parse_manifest(name, data)


def _open_stored(
    file: Place, reads_ahead: bool, at_end: Callable[[], None]
) -> AbstractContextManager[OpenSegment]:
    if file.store.is_local:
        return _open_local(file.path)
    return _open_remote(file, reads_ahead, at_end)


@contextmanager
def _open_local(path: str) -> Iterator[OpenSegment]:
    opened = LocalFile(path)
    try:
        written = opened.written_bytes()
        yield OpenSegment(opened.read_into, opened.size_bytes, written_bytes=written)
    finally:
        opened.close()


@contextmanager
def _open_remote(
    file: Place, reads_ahead: bool, at_end: Callable[[], None]
) -> Iterator[OpenSegment]:
    before = file.filesystem.get_file_info(file.path)
    if before.type.name == Kind.NOTHING.value:
        raise FileNotFoundError(f"{file.path}: not there")

    def check_unchanged() -> None:
        after = file.filesystem.get_file_info(file.path)
        if (after.size, after.mtime_ns) != (before.size, before.mtime_ns):
            raise FileReplacedError(after.size or 0, before.size or 0)

    with _ranges(file, before.size or 0) as (ranges, size_bytes):
        if reads_ahead:
            concurrency = concurrency_of(
                f"{file.filesystem.type_name} {file.path.partition('/')[0]}"
            )
            with closing(ReadAhead(ranges, size_bytes, concurrency, at_end=at_end)) as ahead:
                yield OpenSegment(
                    ahead.read_into,
                    size_bytes,
                    check_unchanged,
                    start=ahead.start,
                    fetched_at=ahead.fetched_at,
                )
            return

        def read_into(position: int, view: memoryview) -> int:
            length = max(0, min(len(view), size_bytes - position))
            return ranges(position, length, iter([view[:length]])) if length else 0

        yield OpenSegment(read_into, size_bytes, check_unchanged)


@contextmanager
def _ranges(file: Place, size_bytes: int) -> Iterator[tuple[FillViews, int]]:
    """Open a file for reads of ranges by several threads; yield its size as well."""
    open_ranges = file.store.ranges
    if open_ranges is not None:
        yield open_ranges(file.filesystem, file.path, size_bytes).fill, size_bytes
        return
    with file.filesystem.open_input_file(file.path) as stream:
        yield arrow_ranges(stream), stream.size()
