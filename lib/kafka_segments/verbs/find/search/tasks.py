"""Read single records of logs, where the indexes point, in the executors."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.errors import (
    CorruptIndexError,
    FileChangedError,
    OtherFileError,
    UnreadableBatchError,
)
from kafka_segments.files.segments.known_batch import refuse_later_batch, refuse_other_file
from kafka_segments.files.storage.files import OpenSegment, first_line, open_segment, place
from kafka_segments.files.storage.ranged_files import CountedRanges
from kafka_segments.kafka.broker_rules.checked_lookup import CheckedLookup
from kafka_segments.kafka.broker_rules.record_lookups import RecordLookup
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.verbs.find.search.first_record import FirstRecordFinder

_FOUND = StructType(
    row_fields(
        "found_offset long, found_timestamp_ms long, found_leader_epoch int,"
        " found_position long, found_batch_offset long, bytes_read long not null,"
        " problem string"
    )
)
_NOT_FOUND = (None,) * 5


class RecordSearch(NamedTuple):
    """What is looked for, of a row that has a path and both bounds.

    ``start_position`` null: the index files tell it. ``valid_bytes`` null: not readable.
    ``start_offset``: the last offset of the batch there, ``max_timestamp_ms``: the greatest
    timestamp of all batches of the segment; null: not known.
    """

    path: str
    base_offset: int
    start_position: int | None
    valid_bytes: int | None
    least_timestamp_ms: int
    least_offset: int
    cluster: str = ""
    broker_id: int = -1
    topic: str = ""
    start_offset: int | None = None
    first_batch_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None


class _SearchedSegment:
    """An open segment. Its index files are read once something is looked up in them."""

    def __init__(
        self, path: str, base_offset: int, files: ExitStack, log_ranges: CountedRanges
    ) -> None:
        folder, _, name = path.rpartition("/")
        self.path = path
        self._base_offset = base_offset
        self._log = place(folder).child(name)
        self._log_ranges = log_ranges
        self.open: OpenSegment = files.enter_context(open_segment(self._log))

    def start(self, *, least_timestamp_ms: int, least_offset: int) -> int:
        """Return where a read begins by the index files; 0 if these lie, or are not there."""
        with suppress(CorruptIndexError):
            if self._lookup is not None:
                return self._lookup.start(
                    least_timestamp_ms=least_timestamp_ms, least_offset=least_offset
                )
        return 0

    @cached_property
    def _lookup(self) -> CheckedLookup | None:
        with ExitStack() as files, suppress(CorruptIndexError):
            return CheckedLookup(
                self._log_ranges.log(self.open),
                CountedRanges().index_files(self._log, self.open, files),
                base_offset=self._base_offset,
            )
        return None


class LogReads:
    """Answers searches one after another; a segment stays open while its searches follow."""

    def __init__(self, lookup: RecordLookup | None = None) -> None:
        """Read batches as brokers of a release do; by default as a whole."""
        self._lookup = lookup or RecordLookup()
        self._finder = FirstRecordFinder()
        self._log_ranges = CountedRanges()
        self._files = ExitStack()
        self._segment: _SearchedSegment | None = None
        self._last: tuple[RecordSearch, tuple[Any, ...]] | None = None

    def close(self) -> None:
        """Close the segment that is open."""
        self._files.close()

    def answer(self, search: RecordSearch) -> tuple[Any, ...]:
        """Return the values of the found columns; what cannot be read is a ``problem``."""
        if self._last is not None and self._last[0] == search:
            return (*self._last[1][:-2], 0, self._last[1][-1])
        if None in (search.path, search.least_timestamp_ms, search.least_offset):
            return (*_NOT_FOUND, 0, None)
        before = self._bytes_read()
        found, problem = None, None
        try:
            found = self._find(search)
        except FileNotFoundError:
            problem = "the segment is gone since the build: run `kafka-segments build` again"
        except FileChangedError as error:
            problem = f"{error}, the tables expect more: run `kafka-segments build` again"
        except OtherFileError as error:
            problem = f"not known: {error}: run `kafka-segments build` again"
        except DecompressionError as error:
            problem = f"a batch that may hold the record cannot be decoded: {error}"
        except UnreadableBatchError as error:
            problem = (
                f"{error}; what follows was not searched: run `kafka-segments build` to read all"
            )
        except OSError as error:
            problem = first_line(error)
        bytes_read = self._bytes_read() - before
        answer = (*(found or _NOT_FOUND), bytes_read, problem and f"{search.path}: {problem}")
        self._last = (search, answer)
        return answer

    def _bytes_read(self) -> int:
        """Return the bytes of logs that were read so far; index files are not counted."""
        return self._finder.bytes_read + self._log_ranges.bytes_read

    def _find(self, search: RecordSearch) -> tuple[int, ...] | None:
        if search.valid_bytes is None:
            raise OSError("the build could not read this segment: column damage of table segments")
        segment, start = self._opened(search), search.start_position
        least = {
            "least_timestamp_ms": search.least_timestamp_ms,
            "least_offset": search.least_offset,
        }
        before = self._bytes_read()
        try:
            if start is None:
                start = segment.start(**least)
            else:
                self._refuse_other_file(segment.open, search, start)
            found = self._finder.find(
                segment.open.read_into, start=start, end=search.valid_bytes, **least
            )
            greatest_ms = search.max_timestamp_ms
            if found is not None and search.start_position is not None and greatest_ms is not None:
                refuse_later_batch(self._finder.found_batch, max_timestamp_ms=greatest_ms)
            return found
        finally:  # what was read of a file that has changed is no answer, nor is an error of it
            if self._bytes_read() > before:
                segment.open.check_unchanged()

    def _refuse_other_file(self, opened: OpenSegment, search: RecordSearch, start: int) -> None:
        """Refuse a file that is no longer the one of which the tables tell, by its first batch."""
        first_ms = None if start else search.first_batch_timestamp_ms
        if (search.start_offset, first_ms) != (None, None):
            found = self._finder.first_batch(
                opened.read_into, position=start, end=search.valid_bytes or 0
            )
            refuse_other_file(
                found, start, last_offset=search.start_offset, max_timestamp_ms=first_ms
            )

    def _opened(self, search: RecordSearch) -> _SearchedSegment:
        if self._segment is None or self._segment.path != search.path:
            self._files.close()
            self._segment = None
            own = self._lookup.of_log(search.cluster, search.broker_id, search.topic)
            self._finder.forget(own)
            self._segment = _SearchedSegment(
                search.path, search.base_offset, self._files, self._log_ranges
            )
        return self._segment


def find_first_records(located: DataFrame, lookup: RecordLookup | None = None) -> DataFrame:
    """Find the first record of each search; the log is read from the position in the indexes on.

    ``lookup``: how much of a batch is read; None: all of it.

    Needs: the key of a segment, path (null: nothing to search), start_position (null: the index
        files where the segment lies tell it), start_offset, first_batch_timestamp_ms,
        max_timestamp_ms (see ``RecordSearch``), valid_bytes (null: not readable),
        least_timestamp_ms, least_offset (long); any other columns.
    Gives: all of these and found_offset, found_timestamp_ms, found_leader_epoch, found_position,
        found_batch_offset (its batch's first offset), all null where this segment has no such
        record; bytes_read, problem (null: none).
    """
    by_file = reversed(SEGMENT_KEYS)  # as they come of ``locate``: paths are longer to compare
    ordered = collected_if_few(
        located.sortWithinPartitions(*by_file, "start_position", "least_timestamp_ms")
    )
    row_type = StructType([*ordered.schema.fields, *_FOUND.fields])

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(row_type, timezone="UTC")
        found_schema = to_arrow_schema(_FOUND)
        reads = LogReads(lookup)
        try:
            for batch in batches:
                asked = (batch.column(name).to_pylist() for name in RecordSearch._fields)
                rows = [reads.answer(RecordSearch(*search)) for search in zip(*asked, strict=True)]
                columns = list(zip(*rows, strict=True)) if rows else [()] * len(found_schema)
                found = [
                    pa.array(values, type=field.type)
                    for values, field in zip(columns, found_schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays([*batch.columns, *found], schema=arrow_schema)
        finally:
            reads.close()

    return collected_if_few(map_rows(ordered, on_task, row_type))
