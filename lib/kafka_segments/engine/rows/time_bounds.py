"""Leave out segments that rebuilt index files prove to be older than what is asked for."""

from concurrent.futures import ThreadPoolExecutor

from kafka_segments.engine.rows.freshness import covers_end_of_log
from kafka_segments.errors import CorruptIndexError, FileChangedError
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.storage.files import Place, open_segment, place, read_whole
from kafka_segments.kafka.index.segment.offset_index import check_offset_index, decode_offset_index
from kafka_segments.kafka.index.segment.time_index import check_time_index, decode_time_index
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from kafka_segments.kafka.wire.header_layout import NO_TIMESTAMP

_MOST_INDEX_BYTES = 2**31 - 1
_MOST_TAIL_BYTES = 4 * 1024 * 1024
_READERS = 16


def without_older(
    segments: list[ListedSegment], output: IndexOutput, low_timestamp: int
) -> list[ListedSegment]:
    """Leave out segments without a timestamp from ``low_timestamp`` (ms) on.

    A segment is left out only if its index files in ``output`` prove that it is older. It stays
    if it has no index files, or if they do not fit the .log.
    """
    if low_timestamp <= NO_TIMESTAMP:
        return segments

    def may_hold(segment: ListedSegment) -> bool:
        greatest = proven_greatest_timestamp(segment, output)
        return greatest is None or greatest >= low_timestamp

    with ThreadPoolExecutor(_READERS) as pool:
        kept = pool.map(may_hold, segments)
        return [segment for segment, keep in zip(segments, kept, strict=True) if keep]


def proven_greatest_timestamp(segment: ListedSegment, output: IndexOutput) -> int | None:
    """Return the last timestamp (ms) of a segment's time index; None if it may not be the greatest.

    It is proven to be the greatest if both index files pass Kafka's sanity check, if the batch of
    the last .index entry lies in the .log where the entry says, and if no batch from there to
    the end has a greater timestamp.
    """
    folder = place(output.folder(segment.source, segment.relative_path))
    try:
        offset_data = _index_file(folder, segment.base_offset, OFFSET_INDEX_SUFFIX)
        time_data = _index_file(folder, segment.base_offset, TIME_INDEX_SUFFIX)
        check_offset_index(offset_data, base_offset=segment.base_offset)
        check_time_index(time_data, base_offset=segment.base_offset)
        offsets = decode_offset_index(offset_data, base_offset=segment.base_offset)
        times = decode_time_index(time_data, base_offset=segment.base_offset)
        position = int(offsets[-1, 1]) if len(offsets) else 0
        tail = _tail(place(segment.source).child(segment.relative_path, segment.name), position)
    except (OSError, CorruptIndexError, FileChangedError):
        return None
    greatest = int(times[-1, 0]) if len(times) else NO_TIMESTAMP
    last_offset = int(offsets[-1, 0]) if len(offsets) else None
    if tail is None or not covers_end_of_log(
        tail, last_offset=last_offset, greatest_timestamp=greatest
    ):
        return None
    return greatest


def _index_file(folder: Place, base_offset: int, suffix: str) -> bytes:
    return read_whole(folder.child(file_name(base_offset, suffix)), most_bytes=_MOST_INDEX_BYTES)


def _tail(log: Place, position: int) -> bytes | None:
    """Read a file from ``position`` to its end; None if that is more than a tail may have."""
    with open_segment(log) as file:
        length = file.size_bytes - position
        if not 0 <= length <= _MOST_TAIL_BYTES:
            return None
        tail = bytearray(length)
        filled = file.read_into(position, memoryview(tail))
        file.check_unchanged()
        return bytes(tail[:filled])
