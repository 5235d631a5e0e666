"""Count the index entries of active segments, in the executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from kafka_segments.engine.derived.first_look_only import is_known_by_first_look
from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.verbs.judge.roll.index_entries import BuiltIndexes, EntryCounts, count_entries

_COUNTS = row_fields("index_entries long, time_index_entries long, index_source string")
_BUILT = ("path", "base_offset", "size_bytes", "index_entries", "time_index_entries")
_INTERVALS = ("built_interval_bytes", "index_interval_bytes")
_IS_LOOKED_AT = "_is_looked_at"


def with_index_entries() -> Transform:
    """Replace the entries that a build counted by those that a broker would have.

    Needs: the key of a segment, path, size_bytes, index_entries, time_index_entries, next_offset,
        batch_count, built_interval_bytes (of the build, null: not known), index_interval_bytes (the
        topic's).
    Gives: the same with index_source, one of ``IndexSource``.
    """

    def transform(segments: DataFrame) -> DataFrame:
        columns = dict.fromkeys((*SEGMENT_KEYS, *_BUILT, *_INTERVALS))
        asked = collected_if_few(
            segments.select(*columns, is_known_by_first_look().alias(_IS_LOOKED_AT))
        )
        keys = [StructField(key, asked.schema[key].dataType) for key in SEGMENT_KEYS]
        counted = map_rows(asked, _count, StructType([*keys, *_COUNTS]), spread=True)
        kept = segments.drop("index_entries", "time_index_entries")
        return kept.join(counted, list(SEGMENT_KEYS), how="inner")

    return transform


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        counts = [_counted(row) for row in batch.to_pylist()]
        columns = {
            "index_entries": pa.array([count.offset_entries for count in counts], pa.int64()),
            "time_index_entries": pa.array([count.time_entries for count in counts], pa.int64()),
            "index_source": pa.array([count.source for count in counts], pa.string()),
        }
        yield pa.RecordBatch.from_pydict({**{key: batch[key] for key in SEGMENT_KEYS}, **columns})


def _counted(row: dict[str, Any]) -> EntryCounts:
    built = BuiltIndexes(
        path=row["path"],
        base_offset=row["base_offset"],
        size_bytes=row["size_bytes"],
        offset_entries=row["index_entries"],
        time_entries=row["time_index_entries"],
        interval_bytes=None if row[_IS_LOOKED_AT] else row["built_interval_bytes"],
        is_counted=not row[_IS_LOOKED_AT],
    )
    return count_entries(built, interval_bytes=row["index_interval_bytes"])
