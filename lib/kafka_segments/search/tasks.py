"""Read single records of logs, where the indexes point, in the executors."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from kafka_segments.errors import FileChangedError, UnreadableBatchError
from kafka_segments.search.first_record import FirstRecordFinder
from kafka_segments.spark.few_rows import map_few
from kafka_segments.spark.held import held_if_few
from kafka_segments.storage.files import OpenSegment, first_line, open_segment, place
from kafka_segments.tables.keys import SEGMENT_KEYS
from kafka_segments.wire.codecs import DecompressionError

_FOUND = StructType(
    [
        StructField("found_offset", LongType()),
        StructField("found_timestamp_ms", LongType()),
        StructField("found_leader_epoch", IntegerType()),
        StructField("found_position", LongType()),
        StructField("found_batch_offset", LongType()),
        StructField("bytes_read", LongType(), False),
        StructField("problem", StringType()),
    ]
)
_SEARCH = ("path", "start_position", "valid_bytes", "least_timestamp_ms", "least_offset")
_NOT_FOUND = (None,) * 5
_Search = tuple[str | None, int, int | None, int | None, int | None]


class LogReads:
    """Answers searches one after another; a segment stays open while its searches follow."""

    def __init__(self) -> None:
        self._finder = FirstRecordFinder()
        self._files = ExitStack()
        self._path: str | None = None
        self._segment: OpenSegment | None = None
        self._last: tuple[_Search, tuple[Any, ...]] | None = None

    def close(self) -> None:
        """Close the segment that is open."""
        self._files.close()

    def answer(self, search: _Search) -> tuple[Any, ...]:
        """Return the values of the found columns; what cannot be read is a ``problem``."""
        if self._last is not None and self._last[0] == search:
            return (*self._last[1][:-2], 0, self._last[1][-1])
        path, start, end, least_timestamp_ms, least_offset = search
        if path is None or least_timestamp_ms is None or least_offset is None:
            return (*_NOT_FOUND, 0, None)
        before = self._finder.bytes_read
        found, problem = None, None
        try:
            found = self._find(path, start, end, least_timestamp_ms, least_offset)
        except FileNotFoundError:
            problem = "the segment is gone since the build: run `kafka-segments build` again"
        except FileChangedError as error:
            problem = f"{error}, the tables expect more: run `kafka-segments build` again"
        except DecompressionError as error:
            problem = f"a batch that may hold the record cannot be decoded: {error}"
        except UnreadableBatchError as error:
            problem = (
                f"{error}; what follows was not searched: run `kafka-segments build` to read all"
            )
        except OSError as error:
            problem = first_line(error)
        bytes_read = self._finder.bytes_read - before
        answer = (*(found or _NOT_FOUND), bytes_read, problem and f"{path}: {problem}")
        self._last = (search, answer)
        return answer

    def _find(
        self, path: str, start: int, end: int | None, least_timestamp_ms: int, least_offset: int
    ) -> tuple[int, ...] | None:
        if end is None:
            raise OSError("the build could not read this segment: column damage of table segments")
        segment, bytes_read = self._open(path), self._finder.bytes_read
        try:
            return self._finder.find(
                segment.read_into,
                start=start,
                end=end,
                least_timestamp_ms=least_timestamp_ms,
                least_offset=least_offset,
            )
        finally:  # what was read of a file that has changed is no answer, nor is an error of it
            if self._finder.bytes_read > bytes_read:
                segment.check_unchanged()

    def _open(self, path: str) -> OpenSegment:
        if self._segment is None or self._path != path:
            self._files.close()
            self._segment = None
            self._finder.forget()
            folder, _, name = path.rpartition("/")
            self._segment = self._files.enter_context(open_segment(place(folder).child(name)))
            self._path = path
        return self._segment


def find_first_records(located: DataFrame) -> DataFrame:
    """Find the first record of each search; the log is read from the position in the indexes on.

    Needs: the key of a segment, path (null: nothing to search), start_position, valid_bytes (null:
        not readable), least_timestamp_ms, least_offset (long); any other columns.
    Gives: all of these and found_offset, found_timestamp_ms, found_leader_epoch, found_position,
        found_batch_offset (its batch's first offset), all null where this segment has no such
        record; bytes_read, problem (null: none).
    """
    by_file = reversed(SEGMENT_KEYS)  # as they come of ``locate``: paths are longer to compare
    ordered = held_if_few(
        located.sortWithinPartitions(*by_file, "start_position", "least_timestamp_ms")
    )
    row_type = StructType([*ordered.schema.fields, *_FOUND.fields])

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema = to_arrow_schema(row_type, timezone="UTC")
        found_schema = to_arrow_schema(_FOUND)
        reads = LogReads()
        try:
            for batch in batches:
                searches = zip(*(batch.column(name).to_pylist() for name in _SEARCH), strict=True)
                rows = [reads.answer(search) for search in searches]
                columns = list(zip(*rows, strict=True)) if rows else [()] * len(found_schema)
                found = [
                    pa.array(values, type=field.type)
                    for values, field in zip(columns, found_schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays([*batch.columns, *found], schema=arrow_schema)
        finally:
            reads.close()

    return map_few(ordered, on_task, row_type)
