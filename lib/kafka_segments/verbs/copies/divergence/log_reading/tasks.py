"""Read segments of copies into digests of ranges, in the executors."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    StructType,
)

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import FileChangedError
from kafka_segments.files.storage.files import first_line
from kafka_segments.verbs.copies.divergence.decide.copies import (
    UNBOUNDED,
    CopyDamage,
    CopyDamageKind,
)
from kafka_segments.verbs.copies.divergence.log_reading.log_files import (
    counted,
    is_of_tier,
    open_sized,
)
from kafka_segments.verbs.copies.divergence.log_reading.segment_ranges import SegmentRangeReader
from kafka_segments.verbs.copies.divergence.log_reading.sound_batches import Stretch

LOG_COLUMNS = ("copy", "topic", "partition")
_RANGES_A_BATCH = 1024  # of a few large segments, or of hundreds of small ones
RANGES = StructType(
    row_fields(
        "range long, digest long, batches long, bytes long, base_offset long, last_offset long,"
        " first_epoch long, last_epoch long, position long, end_position long, thinned long"
    )
)
DAMAGE = StructType(
    row_fields("kind string, offset long, until long, position long, reason string, segment string")
)
READ = StructType(
    row_fields(
        "copy string, topic string, partition int, path string, segment_base long, next_base long,"
        " gaps long, bytes_read long",
        ranges=ArrayType(RANGES),
        damages=ArrayType(DAMAGE),
    )
)


def read_segments(*, check_crc: bool) -> Transform:
    """Read each segment into digests of its ranges.

    If a file cannot be read, all its offsets are damaged. In tiered storage a newer leader's
    segment can begin inside an older one: what the older one holds from there on does not count.

    Needs: copy, topic, partition, path, segment_base, next_base (null: it is the last), size_bytes.
    Gives: the first six, gaps (places in it where offsets are missing), bytes_read, ranges (the
        columns of ``index.offset_ranges``), damages.
    """
    on_task = partial(digest_segments, check_crc=check_crc)
    needed = (*LOG_COLUMNS, "path", "segment_base", "next_base", "size_bytes")
    return lambda segments: segments.select(*needed).mapInArrow(on_task, READ)


def digest_segments(
    batches: Iterable[pa.RecordBatch], *, check_crc: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``read_segments``, those of many small segments in one batch."""
    arrow_schema = to_arrow_schema(READ)
    reader = SegmentRangeReader(check_crc=check_crc)
    held: list[dict[str, Any]] = []
    ranges = 0
    for segment in (segment for batch in batches for segment in batch.to_pylist()):
        held.append(_read(reader, segment))
        ranges += 1 + len(held[-1]["ranges"])
        if ranges >= _RANGES_A_BATCH:
            yield pa.RecordBatch.from_pylist(held, schema=arrow_schema)
            held, ranges = [], 0
    yield pa.RecordBatch.from_pylist(held, schema=arrow_schema)


def _read(reader: SegmentRangeReader, segment: dict[str, Any]) -> dict[str, Any]:
    path, base, next_base = segment["path"], segment["segment_base"], segment["next_base"]
    limit = UNBOUNDED if next_base is None else next_base
    total = [0]
    rows: list[dict[str, int]] = []
    try:
        with open_sized(path, segment["size_bytes"]) as (read_into, size_bytes):
            stretch = Stretch(0, size_bytes, base, limit, is_last=next_base is None)
            found = reader.read(counted(read_into, total), stretch)
        names = RANGES.fieldNames()
        rows = [dict(zip(names, column, strict=True)) for column in found.columns.T.tolist()]
        damages = [
            damage._replace(segment=path)
            for damage in found.damages
            if not (is_of_tier(path) and damage.offset >= limit)
        ]
    except (OSError, FileChangedError) as error:
        damages = [CopyDamage(CopyDamageKind.UNREAD, base, limit, 0, first_line(error), path)]
    return {
        **{name: segment[name] for name in (*LOG_COLUMNS, "path", "segment_base", "next_base")},
        "gaps": sum(row["thinned"] for row in rows),
        "bytes_read": total[0],
        "ranges": rows,
        "damages": [damage._asdict() for damage in damages],
    }
