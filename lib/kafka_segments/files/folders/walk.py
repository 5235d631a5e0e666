"""Find every segment below a source, in the driver."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple

from kafka_segments.errors import SourceError
from kafka_segments.files.folders.kinds import (
    FOLDER,
    LEFT_OVER,
    LOG_DIR,
    NOT_FOLLOWED,
    SEGMENT,
    UNLISTED,
    UNRECOGNIZED,
)
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.folders.source_folder import list_source_folder
from kafka_segments.files.storage.links import is_folder_outside, links_into
from kafka_segments.files.storage.stores import REQUESTS_AT_ONCE, store_of
from kafka_segments.files.storage.threads import Watch
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.names import (
    FolderState,
    parse_other_form,
    parse_partition_folder,
    parse_segment_name,
)

# Folders listed at a time; on object stores most of it is waiting. A task is one of many.
_LISTERS = REQUESTS_AT_ONCE
_LISTERS_A_TASK = 8
_CHUNKS_IN_THREADS = 8


class ListedSegment(NamedTuple):
    """A segment as its folder lists it.

    ``next_base_offset`` is the next segment's in the same folder, None for the last one.
    """

    source: str
    relative_path: str
    name: str
    topic: str
    partition: int
    base_offset: int
    next_base_offset: int | None
    size_bytes: int

    @property
    def path(self) -> str:
        """Where the .log lies, as a path or URI."""
        return join_uri(self.source, self.relative_path, self.name)


class UnlistedFolder(NamedTuple):
    """A folder that could not be listed, or a place whose records are not among those found.

    That is a link to a segment or folder that was not followed, what lies in place of a segment of
    a log that a broker serves, or the folder of such a log that lost all its segments.
    """

    path: str
    topic: str | None
    partition: int | None
    reason: str


class FoundSegments(NamedTuple):
    """What a walk found, sorted by folder and base offset.

    ``left_out``: rows of files that hold, or may hold, records that no broker serves: in marked
    folders, or marked themselves; each says why. ``log_dirs``: rows of log directories.
    """

    segments: list[ListedSegment]
    unlisted: list[UnlistedFolder]
    left_out: list[Listed]
    log_dirs: list[Listed]


def find_segments(sources: Iterable[str], *, follow_links: bool = False) -> FoundSegments:
    """Return the segments of all partitions' folders below the sources.

    Folders marked -delete and -stray are left out, because a broker does not serve them. Folders
    marked -future, which are second copies of live partitions, are left out unless they are a
    source themselves.

    Args:
        sources: paths or URIs, as ``absolute_uri`` gives them.
        follow_links: whether symbolic links are followed, to what lies below the sources.

    Raises:
        SourceError: a source itself cannot be listed.
    """
    named = tuple(sources)
    follow_into = links_into(named, follow=follow_links)
    walked = walk_folders(((source, "") for source in named), follow_into=follow_into)
    found = FoundSegments([], [], [], [])
    for rows in walked.folders:
        found.segments.extend(_segments(rows))
        found.left_out.extend(_left_out(rows))
        found.unlisted.extend(_unseen(rows, named))
        found.log_dirs.extend(row for row in rows if row.kind == LOG_DIR)
    found.segments.sort()
    return found


class WalkedFolders(NamedTuple):
    """Rows of the folders that a walk listed, and the folders that it left."""

    folders: list[list[Listed]]
    left: list[Listed]


def walk_folders(
    folders: Iterable[tuple[str, str]],
    *,
    most_rows: float = float("inf"),
    follow_into: tuple[str, ...] = (),
    finishes_swaps: bool = False,
) -> WalkedFolders:
    """List folders, given as (source, relative path), and all folders below, nearest first.

    The walk ends when it has found ``most_rows`` rows, or a few more. Only the folders left have
    rows of kind ``folder``. ``follow_into``: see ``walk_on``. ``finishes_swaps``: as of
    ``list_log``.
    """
    waiting = deque(folders)
    listed = list(
        walk_on(
            waiting,
            most_rows=most_rows,
            follow_into=follow_into,
            finishes_swaps=finishes_swaps,
        )
    )
    return WalkedFolders(listed, left_of(waiting))


def walk_on(
    waiting: deque[tuple[str, str]],
    *,
    most_rows: float,
    follow_into: tuple[str, ...] = (),
    finishes_swaps: bool = False,
) -> Iterator[list[Listed]]:
    """Yield the rows of each folder that a walk lists, as ``walk_folders`` does.

    ``waiting`` has the folders to begin with; at the end, those that the walk left. With links
    that are followed (``links_into``) none are left, and what links and sources lead to more than
    once is listed once, below the first of the sources.
    """
    count, seen = 0, set[tuple[str, str]]()
    with _Listers(_LISTERS, follow_into=follow_into, finishes_swaps=finishes_swaps) as listers:
        while waiting and (follow_into or count < most_rows):
            chunk = _next_of_one_source(waiting, seen) if follow_into else _next(waiting)
            for listed in listers.list(chunk):
                below = [(row.source, row.relative_path) for row in listed if row.kind == FOLDER]
                if follow_into:
                    waiting.extendleft(reversed(below))
                else:
                    waiting.extend(below)
                rows = [row for row in listed if row.kind != FOLDER]
                count += len(rows)
                yield rows


def _next(waiting: deque[tuple[str, str]]) -> list[tuple[str, str]]:
    return [waiting.popleft() for _ in range(min(len(waiting), _LISTERS))]


def _next_of_one_source(
    waiting: deque[tuple[str, str]], seen: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Take the next folders of a source, but for those that were seen by another path.

    Two names of partitions for one folder are two logs, to a broker too.
    """
    chunk: list[tuple[str, str]] = []
    source = waiting[0][0]
    while waiting and len(chunk) < _LISTERS and waiting[0][0] == source:
        folder = waiting.popleft()
        path = join_uri(*folder)
        name = path.rpartition("/")[2]
        is_log = parse_partition_folder(name) is not None
        key = (os.path.realpath(path), name if is_log else "")
        if key not in seen:
            seen |= {key, (key[0], "")}  # what was read as a log is no stray folder besides
            chunk.append(folder)
    return chunk


def left_of(waiting: Iterable[tuple[str, str]]) -> list[Listed]:
    """Return the rows of folders that a walk left."""
    return [Listed(FOLDER, source, path) for source, path in waiting]


def list_folders(
    folders: Iterable[tuple[str, str]], *, finishes_swaps: bool = False
) -> Iterator[Listed]:
    """Yield the rows of folders, given as (source, relative path); folders below are not listed."""
    waiting = iter(folders)
    with _Listers(_LISTERS_A_TASK, finishes_swaps=finishes_swaps) as listers:
        while chunk := list(islice(waiting, _LISTERS_A_TASK)):
            for rows in listers.list(chunk):
                yield from rows


class _Listers:
    """Lists folders: many at a time where that is mostly waiting, else one after another.

    Stores are waited for. What a local disk has in memory is not: there threads would only keep
    each other from Python's lock, which takes three times as long. A network's disk, or one whose
    folders are not in memory, shows by a folder that is listed alone; another one is, some chunks
    later.
    """

    def __init__(
        self, threads: int, *, follow_into: tuple[str, ...] = (), finishes_swaps: bool
    ) -> None:
        self._pool = ThreadPoolExecutor(threads)
        self._list_rows = partial(
            _list_rows, follow_into=follow_into, finishes_swaps=finishes_swaps
        )
        self._chunks_in_threads = 0

    def __enter__(self) -> "_Listers":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def list(self, folders: Sequence[tuple[str, str]]) -> Iterator[list[Listed]]:
        """Yield the rows of each folder, in the order given."""
        here = 0
        if all(store_of(source).is_local for source, _ in folders):
            watch = Watch()
            while here < len(folders) and not self._chunks_in_threads:
                rows = self._list_rows(folders[here])
                if watch.was_waiting():
                    self._chunks_in_threads = _CHUNKS_IN_THREADS
                here += 1
                yield rows
            self._chunks_in_threads = max(0, self._chunks_in_threads - 1)
        yield from self._pool.map(self._list_rows, folders[here:])


def _list_rows(
    folder: tuple[str, str], *, follow_into: tuple[str, ...], finishes_swaps: bool
) -> list[Listed]:
    listed = list_source_folder(*folder, follow_into=follow_into, finishes_swaps=finishes_swaps)
    return list(listed)


def _is_second_copy(row: Listed) -> bool:
    return row.folder_state == FolderState.FUTURE and bool(row.relative_path)


def _left_out(rows: list[Listed]) -> Iterator[Listed]:
    """Yield the rows of files with records that no broker serves."""
    for row in rows:
        if row.kind == SEGMENT and _is_second_copy(row):
            yield row._replace(reason="the folder is marked -future, a copy of a log that is moved")
        elif _may_have_records(row) and not _is_missed(row):
            yield row


def _may_have_records(row: Listed) -> bool:
    is_segment = parse_segment_name(row.name) is not None
    is_named = is_segment or parse_other_form(row.name) is not None
    return is_named and row.kind in (UNRECOGNIZED, LEFT_OVER)


def _is_missed(row: Listed) -> bool:
    """Tell whether a log that a broker serves may lack the records of what is no segment."""
    folder = parse_partition_folder(join_uri(row.source, row.relative_path).rpartition("/")[2])
    is_served = folder is not None and folder.state == FolderState.LIVE
    return is_served and row.kind == UNRECOGNIZED and (not row.name or _may_have_records(row))


def _segments(rows: list[Listed]) -> list[ListedSegment]:
    rows = [row for row in rows if row.kind == SEGMENT]
    if not rows or _is_second_copy(rows[0]):
        return []
    next_base_offsets = [*(row.base_offset for row in rows[1:]), None]
    return [
        ListedSegment(
            row.source,
            row.relative_path,
            row.name,
            row.topic or "",
            row.partition or 0,
            row.base_offset or 0,
            next_base_offset,
            row.size_bytes or 0,
        )
        for row, next_base_offset in zip(rows, next_base_offsets, strict=True)
    ]


def _unseen(rows: list[Listed], sources: tuple[str, ...]) -> Iterator[UnlistedFolder]:
    """Yield the folders that could not be listed, links, and what stands in place of segments.

    A link to a folder may stand in the place of a log directory, unless it leads into a source.
    """
    for row in rows:
        if row.kind == UNLISTED:
            yield _unlisted(row)
        elif row.kind == NOT_FOLLOWED:
            path = join_uri(row.source, row.relative_path, row.name)
            is_segment = parse_segment_name(row.name) is not None
            folder = parse_partition_folder(path.split("/")[-2 if is_segment else -1])
            reason = row.reason or "not followed"
            if folder is not None:
                yield UnlistedFolder(path, folder.topic, folder.partition, reason)
            elif is_folder_outside(path, sources):
                yield UnlistedFolder(path, None, None, reason)
        elif _is_missed(row):
            yield _missed(row)


def _missed(row: Listed) -> UnlistedFolder:
    folder = join_uri(row.source, row.relative_path)
    log = parse_partition_folder(folder.rpartition("/")[2])
    topic, partition = (log.topic, log.partition) if log else (None, None)
    return UnlistedFolder(join_uri(folder, row.name), topic, partition, row.reason or "not read")


def _unlisted(row: Listed) -> UnlistedFolder:
    reason = row.reason or "unknown reason"
    if not row.relative_path:
        raise SourceError(row.source, reason)
    path = join_uri(row.source, row.relative_path)
    folder = parse_partition_folder(path.rpartition("/")[2])
    topic, partition = (folder.topic, folder.partition) if folder else (None, None)
    return UnlistedFolder(path, topic, partition, f"cannot list the folder: {reason}")
