"""List the objects of tiered storage, and read what they say of their segments, in executors."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.errors import (
    CorruptTextError,
    FileChangedError,
    SourceError,
    is_answerless,
)
from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.storage.files import first_line, open_segment, place, read_manifest
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.tier.tiered_names import (
    LOG,
    TIERED_SUFFIXES,
    TieredName,
    parse_object_name,
    tiered_folder_of,
    tiered_log_of,
)
from kafka_segments.verbs.find.internals.tier.decide.object_facts import (
    HEADERS,
    NAMES,
    told_by_headers,
    told_by_manifest,
)

_READERS_A_TASK = 8  # on object stores most of the time is waiting
_ROWS_A_BATCH = 1_000
_EPOCHS = pa.list_(pa.struct([("epoch", pa.int32()), ("start_offset", pa.int64())]))
_FOUND = pa.struct(
    [
        ("source", pa.string()),
        ("start_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("size_bytes", pa.int64()),
        ("leader_epochs", _EPOCHS),
        ("event_ms", pa.int64()),
        ("broker_id", pa.int32()),
        ("is_txn_index_empty", pa.bool_()),
    ]
)
_OBJECTS = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("segment_id", pa.string()),
        ("base_offset", pa.int64()),
        ("objects", pa.int32()),
        ("stored_bytes", pa.int64()),
        ("log_bytes", pa.int64()),
        ("last_modified_ms", pa.int64()),
        ("path", pa.string()),
        ("missing", pa.list_(pa.string())),
        ("found", _FOUND),
        ("problem", pa.string()),
    ]
)
_Row = dict[str, Any]


def list_objects(folders: DataFrame, *, check: str, follow_into: tuple[str, ...] = ()) -> DataFrame:
    """List the objects of segments in partitions' folders of a tier; read what they say.

    ``check`` NAMES reads only names and sizes, MANIFESTS also the manifests that Aiven's plugin
    writes, and HEADERS the headers of all batches besides.

    Needs: source, relative_path, topic, partition, topic_id.
    Gives: topic, topic_id, partition, segment_id, base_offset, objects, stored_bytes, log_bytes
        (of the log's object), last_modified_ms, path (of the log, else of another object), missing
        (suffixes of objects that a whole segment has), found (what manifest, headers or names say:
        source, start_offset, end_offset, max_timestamp_ms, size_bytes, leader_epochs, event_ms,
        broker_id, is_txn_index_empty), problem (why one of them cannot be read).
    """
    row_type = from_arrow_schema(_OBJECTS)
    asked = folders.select("source", "relative_path", "topic", "partition", "topic_id")
    listed = map_rows(asked, partial(_list, follow_into=follow_into), row_type)
    if check == NAMES:
        return listed
    return map_rows(listed, partial(_read, check=check), row_type, spread=True)


def _list(
    batches: Iterable[pa.RecordBatch], *, follow_into: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for folder in batch.to_pylist():
            rows = list(_segments_in(folder, follow_into=follow_into))
            for first in range(0, len(rows), _ROWS_A_BATCH):
                yield pa.RecordBatch.from_pylist(rows[first : first + _ROWS_A_BATCH], _OBJECTS)


def _segments_in(folder: _Row, *, follow_into: tuple[str, ...]) -> Iterator[_Row]:
    source, below = folder["source"], folder["relative_path"]
    try:
        entries = entries_of(source, below, follow_into=follow_into)
    except SourceError as error:
        if is_answerless(error):
            raise
        return  # it has gone since it was listed
    uri = join_uri(source, below)
    needed = (LOG,) if tiered_folder_of(uri) is None else TIERED_SUFFIXES
    segments: dict[str, list[tuple[TieredName, FileEntry]]] = defaultdict(list)
    for entry in entries:
        name = parse_object_name(entry.name)
        if name is not None and not entry.is_folder and entry.oddity is None:
            segments[name.segment_id].append((name, entry))
    for segment_id, objects in segments.items():
        yield {
            **{key: folder[key] for key in ("topic", "topic_id", "partition")},
            "segment_id": segment_id,
            **_of_segment(uri, objects, needed),
        }


def _of_segment(
    folder: str, objects: list[tuple[TieredName, FileEntry]], needed: tuple[str, ...]
) -> _Row:
    by_suffix = {name.suffix: entry for name, entry in objects}
    log = by_suffix.get(LOG)
    base_offset = min(name.base_offset for name, _ in objects)
    log_bytes = None if log is None else log.size_bytes
    return {
        "base_offset": base_offset,
        "objects": len(objects),
        "stored_bytes": sum(entry.size_bytes for _, entry in objects),
        "log_bytes": log_bytes,
        "last_modified_ms": max(entry.mtime_ns for _, entry in objects) // 1_000_000,
        "path": f"{folder}/{(log or objects[0][1]).name}",
        "missing": [suffix for suffix in needed if suffix not in by_suffix],
        "found": {
            "source": NAMES,
            "start_offset": base_offset,
            "size_bytes": log_bytes if needed == (LOG,) else None,
        },
        "problem": None,
    }


def _read(batches: Iterable[pa.RecordBatch], *, check: str) -> Iterator[pa.RecordBatch]:
    recoverer = SegmentRecoverer(RecoveryOptions(check_crc=False))
    with ThreadPoolExecutor(_READERS_A_TASK) as pool:
        for batch in batches:
            rows = list(pool.map(_with_manifest, batch.to_pylist()))
            if check == HEADERS:  # one after another: the recoverer has one buffer
                rows = [_with_headers(row, recoverer) for row in rows]
            yield pa.RecordBatch.from_pylist(rows, _OBJECTS)


def _with_manifest(row: _Row) -> _Row:
    """Add what the manifest says, where the plugin writes one."""
    if tiered_log_of(row["path"]) is None or row["missing"]:
        return row
    try:
        manifest = read_manifest(place(row["path"]))
    except (CorruptTextError, OSError) as error:
        return row | {"problem": first_line(error)}
    return row | told_by_manifest(row, manifest)


def _with_headers(row: _Row, recoverer: SegmentRecoverer) -> _Row:
    """Add what the headers of the log's batches say."""
    if LOG in row["missing"] or row["problem"] is not None:
        return row
    try:
        with open_segment(place(row["path"])) as log:
            recovery = recoverer.recover(
                log.read_into, size_bytes=log.size_bytes, base_offset=row["base_offset"]
            )
            log.check_unchanged()
    except (OSError, FileChangedError) as error:
        return row | {"problem": first_line(error)}
    return row | told_by_headers(row, recovery, size_bytes=log.size_bytes)
