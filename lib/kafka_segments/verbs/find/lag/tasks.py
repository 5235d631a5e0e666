"""Read committed offsets from the records of ``__consumer_offsets``, in the executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.rows.table_reads import read_segments
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.kafka.messages.records import decode_commit
from kafka_segments.kafka.text.names import OFFSETS_TOPIC

_COLUMNS = (
    *("path", "partition", "offset", "timestamp_ms", "key", "value"),
    *("is_control", "producer_id", "error"),
)
_PARSED = StructType(
    row_fields(
        "group_id string, topic string, topic_partition int, committed_offset long,"
        " commit_timestamp_ms long, problem string"
    )
)
_NO_PRODUCER_ID = -1  # RecordBatch.NO_PRODUCER_ID
_VERSION_BYTES, _STRING_BYTES = 2, 2  # what a key begins with, and a text in it
_Parsed = tuple[str | None, str | None, int | None, int | None, int | None, str | None]
_NOTHING: _Parsed = (None, None, None, None, None, None)


def read_commits(segments: DataFrame) -> DataFrame:
    """Read the commits in segments of ``__consumer_offsets``.

    Records of other kinds are left out. What cannot be read is a row with ``problem``. Where its
    key is not known either, it has an empty group_id, and the partition of ``__consumer_offsets``
    as its topic and topic_partition.

    Needs: rows of ``segments``.
    Gives: path (of the segment), offsets_partition, position (offset of the record),
        record_timestamp_ms, producer_id (null: none, the commit needs no marker), control_type
        (of a marker: 0 abort, 1 commit; null: a commit), group_id, topic, topic_partition,
        committed_offset (null: a tombstone, or problem), commit_timestamp_ms, problem (null: none).
    """
    records = segments.transform(read_segments(rows="records", columns=_COLUMNS, check="full"))
    is_control = F.coalesce("is_control", F.lit(False))
    marked = records.select(
        "path",
        F.col("partition").alias("offsets_partition"),
        F.col("offset").alias("position"),
        F.col("timestamp_ms").alias("record_timestamp_ms"),
        _producer_id(),
        F.when(is_control, _control_type()).alias("control_type"),
        "key",
        "value",
        "error",
    )
    carried = marked.drop("key", "value", "error")
    row_type = StructType([*carried.schema.fields, *_PARSED.fields])

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow_schema, parsed_schema = to_arrow_schema(row_type), to_arrow_schema(_PARSED)
        for batch in batches:
            given = (batch.column(name).to_pylist() for name in _GIVEN)
            rows = [_parse(*values) for values in zip(*given, strict=True)]
            yield _with_parsed(batch, rows, arrow_schema, parsed_schema)

    parsed = map_rows(marked, on_task, row_type, most_in_driver=None)
    is_of_any_key = F.col("problem").isNotNull() & F.col("group_id").isNull()
    of_none = {
        "group_id": F.lit(""),
        "topic": F.lit(OFFSETS_TOPIC),
        "topic_partition": F.col("offsets_partition"),
    }
    return parsed.where(
        F.col("group_id").isNotNull() | F.col("control_type").isNotNull() | is_of_any_key
    ).withColumns(
        {name: F.when(is_of_any_key, of).otherwise(F.col(name)) for name, of in of_none.items()}
    )


def _control_type() -> Column:
    """Return the type of a marker by its key, behind an int16 of the key's version."""
    return F.conv(F.hex(F.substring("key", 3, 2)), 16, 10).cast("int")


def _producer_id() -> Column:
    """Return the producer whose marker a batch waits for; null: it needs no marker.

    A batch with a producer id waits, transactional or not (OffsetMetadataManager).
    """
    has_producer = F.col("producer_id") != _NO_PRODUCER_ID
    return F.when(has_producer, F.col("producer_id")).alias("producer_id")


def read_group(group: str) -> Transform:
    """Read what segments of ``__consumer_offsets`` hold about a group, and all markers.

    Needs: rows of ``segments``.
    Gives: path (of the segment), segment_base_offset, offset (null: in a row with error that has
        none), timestamp_ms, producer_id (null: none), control_type (of a marker; null: none), key,
        value, error (why something there cannot be read; null: it can).
    """
    name = group.encode("utf-8", "surrogateescape")
    named = len(name).to_bytes(_STRING_BYTES, "big") + name

    def transform(segments: DataFrame) -> DataFrame:
        columns = (*_COLUMNS, "segment_base_offset")
        records = segments.transform(read_segments(rows="records", columns=columns, check="full"))
        is_control = F.coalesce("is_control", F.lit(False))
        begins = F.substring("key", _VERSION_BYTES + 1, len(named)) == F.lit(bytearray(named))
        is_asked = is_control | F.coalesce(begins, F.lit(False)) | F.col("error").isNotNull()
        return records.where(is_asked).select(
            "path",
            "segment_base_offset",
            "offset",
            "timestamp_ms",
            _producer_id(),
            F.when(is_control, _control_type()).alias("control_type"),
            "key",
            "value",
            "error",
        )

    return transform


_GIVEN = ("key", "value", "control_type", "error")


def _parse(
    key: bytes | None, value: bytes | None, control_type: int | None, error: str | None
) -> _Parsed:
    if error is not None:
        return (*_NOTHING[:-1], error)
    if control_type is not None or key is None:
        return _NOTHING
    commit = decode_commit(key, value)
    if commit is None:
        return _NOTHING
    if commit.key is None:
        return (*_NOTHING[:-1], commit.problem)
    committed = commit.value or {}
    return (
        *(commit.key["group"], commit.key["topic"], commit.key["partition"]),
        *(committed.get("offset"), committed.get("commitTimestamp"), commit.problem),
    )


def _with_parsed(
    batch: pa.RecordBatch, rows: list[Any], arrow_schema: pa.Schema, parsed_schema: pa.Schema
) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(parsed_schema)
    parsed = dict(zip(parsed_schema.names, columns, strict=True))
    arrays = [
        pa.array(parsed[field.name], type=field.type)
        if field.name in parsed
        else batch.column(field.name)
        for field in arrow_schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema)
