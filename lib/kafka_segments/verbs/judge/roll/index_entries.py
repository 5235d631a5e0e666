"""Count the entries of a segment's indexes: in the files beside it, or anew from its log."""

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.files.storage.files import Place, open_segment, place
from kafka_segments.files.storage.read_ahead import read_range
from kafka_segments.kafka.index.segment.index_ends import RangedFile, count_filled
from kafka_segments.kafka.index.segment.recovered_segment import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
)
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafka_segments.verbs.judge.roll.decide.rules import IndexSource

_NEVER_FULL = 2**31 - 1


class EntryCounts(NamedTuple):
    """The number of entries of a segment's indexes; None: a broker does not load the segment."""

    offset_entries: int | None
    time_entries: int | None
    source: IndexSource


class BuiltIndexes(NamedTuple):
    """What the tables know of an active segment; ``interval_bytes`` of the build, None: unknown.

    ``is_counted``: the build has counted entries, and has none where a broker does not load it.
    """

    path: str
    base_offset: int
    size_bytes: int
    offset_entries: int | None
    time_entries: int | None
    interval_bytes: int | None
    is_counted: bool = True


def count_entries(built: BuiltIndexes, *, interval_bytes: int) -> EntryCounts:
    """Count the entries of a segment's indexes as a broker that has it would.

    1. If both index files lie beside it, and the log is not shorter than when it was read, the
       entries in these files count. Zeros at the end of a file are none: a broker preallocates
       the files of an active segment.
    2. Otherwise those of the tables count, if they were built with ``interval_bytes``.
    3. Otherwise they are counted anew from the log's headers with that interval, as recovery does.
    4. If the log cannot be read, those of the tables count, though built with another interval.
    """
    own = EntryCounts(built.offset_entries, built.time_entries, IndexSource.BUILT)
    if built.offset_entries is None and built.is_counted:
        return own
    try:
        log = place(built.path)
        if _size(log) >= built.size_bytes:
            offsets = _entries(log, OFFSET_INDEX_SUFFIX, OFFSET_ENTRY_BYTES)
            times = _entries(log, TIME_INDEX_SUFFIX, TIME_ENTRY_BYTES)
            if offsets is not None and times is not None:
                return EntryCounts(offsets, times, IndexSource.BESIDE)
        if built.interval_bytes == interval_bytes:
            return own
        return _recount(log, built, interval_bytes)
    except (OSError, pa.ArrowException, KafkaSegmentsError):
        if built.interval_bytes == interval_bytes:
            return own
        return own._replace(source=IndexSource.BUILT_OTHERWISE)


def _size(file: Place) -> int:
    found = file.filesystem.get_file_info(file.path)
    return found.size if found.type == fs.FileType.File else -1


def _entries(log: Place, suffix: str, width: int) -> int | None:
    """Count the entries of an index file up to its preallocated zeros.

    None: there is no such file, or its size is no multiple of an entry's, so that a broker
    rebuilds it.
    """
    file = log._replace(path=log.path.removesuffix(LOG_SUFFIX) + suffix)
    size = _size(file)
    if size < 0 or size % width:
        return None
    opened: AbstractContextManager[pa.NativeFile] = file.filesystem.open_input_file(file.path)
    with opened as stream:
        ranges = RangedFile(size, lambda position, length: read_range(stream, length, position))
        return count_filled(ranges, width)


@lru_cache(maxsize=4)
def _recoverer(interval_bytes: int) -> SegmentRecoverer:
    return SegmentRecoverer(RecoveryOptions(interval_bytes, _NEVER_FULL, check_crc=False))


def _recount(log: Place, built: BuiltIndexes, interval_bytes: int) -> EntryCounts:
    with open_segment(log) as opened:
        recovery = _recoverer(interval_bytes).recover(
            opened.read_into, size_bytes=built.size_bytes, base_offset=built.base_offset
        )
    if recovery.offset_entries is None or recovery.time_entries is None:
        return EntryCounts(None, None, IndexSource.RECOUNTED)
    return EntryCounts(
        len(recovery.offset_entries), len(recovery.time_entries), IndexSource.RECOUNTED
    )
