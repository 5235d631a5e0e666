"""Recover segments in the executors: paths in, index files written, rows out."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kafka_segments.build.entry_files import EntryFiles
from kafka_segments.errors import FileChangedError
from kafka_segments.index.formats import FormatOptions, IndexFormat
from kafka_segments.index.minute_index import MINUTE_INDEX_SUFFIX
from kafka_segments.index.recovery import (
    Damage,
    DamageKind,
    RecoveryOptions,
    SegmentRecoverer,
    SegmentRecovery,
)
from kafka_segments.segments.format_files import Around, Files, FormatFiles
from kafka_segments.storage.files import first_line, open_segment, place
from kafka_segments.storage.index_files import IndexOutput, IndexPublisher
from kafka_segments.tables.keys import SEGMENT_KEYS
from kafka_segments.tables.nested import to_nested
from kafka_segments.tables.schemas import schema
from kafka_segments.wire.tiered_names import tiered_log_of

CODECS = dict(
    enumerate(("none", "gzip", "snappy", "lz4", "zstd", "unknown-5", "unknown-6", "unknown-7"))
)
TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
_OPENED_BY = ("source", "relative_path", "name", "base_offset")
_AROUND = ("size_bytes", "mtime_ns", "next_base_offset", "index_format_before")
_NS_A_MS = 1_000_000
_MOST_MS = (2**63 - 1) // _NS_A_MS
_MEASURED = (
    "valid_bytes",
    "truncated_bytes",
    "next_offset",
    "producer_end_offset",
    "batch_count",
    "record_count",
    "first_batch_timestamp_ms",
    "min_timestamp_ms",
    "max_timestamp_ms",
    "offset_of_max_timestamp",
    "producer_count",
    "control_batch_count",
    "transactional_batch_count",
    "index_entries",
    "time_index_entries",
)
_OF_THE_LOG = ("size_bytes", "mtime_ns")
_NESTED = ("leader_epochs", "producers", "transaction_steps")
_DAMAGE = StructType(
    [
        StructField("kind", StringType(), False),
        StructField("position", LongType(), False),
        StructField("message", StringType(), False),
    ]
)


CARRIED = (
    *SEGMENT_KEYS,
    "source",
    "relative_path",
    "name",
    "size_bytes",
    "mtime_ns",
    "is_active",
    "next_base_offset",
    "index_format_before",
    "fingerprint",
)
SCANNED_COLUMNS = (
    *(StructField(name, LongType()) for name in _MEASURED),
    StructField("magics", ArrayType(IntegerType(), False)),
    StructField("codecs", ArrayType(StringType(), False)),
    StructField("timestamp_types", ArrayType(StringType(), False)),
    *(StructField(name, schema("segments.v2")[name].dataType) for name in _NESTED),
    StructField("damage", _DAMAGE),
    StructField("entry_part", StringType()),
)
_ROWS_A_BATCH = 2_000


class ScanOptions(NamedTuple):
    """What a scan needs to know; crosses to the executors."""

    recovery: RecoveryOptions
    output: IndexOutput | None
    index_format: FormatOptions = FormatOptions()
    entries: str | None = None
    """Folder that the index entries go to, as ``entry_files`` says; None: nowhere."""


class Scanned(NamedTuple):
    """A scanned segment; ``recovery`` is None where it could not be read.

    ``size_bytes``: of the log that was read; None: the file's. ``fallback_ms``: what a broker takes
    for the largest timestamp of a log that has none; None: the file's mtime.
    """

    recovery: SegmentRecovery | None
    damage: Damage | None
    size_bytes: int | None = None
    fallback_ms: int | None = None


class SegmentScanner:
    """Scans segments one after another; what it needs is made once a task."""

    def __init__(self, options: ScanOptions) -> None:
        self._recoverer = SegmentRecoverer(options.recovery)
        self._publisher = None if options.output is None else IndexPublisher(options.output)
        self._format = FormatFiles(options.index_format)

    def scan(
        self,
        source: str,
        relative_path: str,
        name: str,
        base_offset: int,
        *,
        around: Around | None = None,
        gone: Sequence[str] = (),
    ) -> Scanned:
        """Recover one segment and publish its index files; bad files are rows, not exceptions.

        ``gone``: suffixes of index files of another format, which are removed.
        """
        file = place(source).child(relative_path, name)
        try:
            with open_segment(file) as segment:
                recovery = self._recoverer.recover(
                    segment.read_into, size_bytes=segment.size_bytes, base_offset=base_offset
                )
                files: Files = {}
                damage = recovery.damage
                if self._publisher is not None:
                    files, damage = self._format.make(
                        recovery,
                        segment.read_into,
                        base_offset=base_offset,
                        around=_around(around or Around(), segment.tiered_timestamp_ms),
                    )
                segment.check_unchanged()
        except FileNotFoundError:
            damage = Damage(DamageKind.VANISHED, 0, "listed, but gone when it was to be read")
            return Scanned(None, damage)
        except FileChangedError as error:
            damage = Damage(DamageKind.CHANGED, error.position, str(error))
            return Scanned(None, damage)
        except OSError as error:
            damage = Damage(DamageKind.UNREADABLE, 0, first_line(error))
            return Scanned(None, damage)
        publisher = self._publisher
        if publisher is not None and not publisher.leaves_alone(
            truncated_bytes=recovery.truncated_bytes
        ):
            removed: Files = dict.fromkeys(gone)
            if not recovery.producers.has_transactions():  # else the fold over its log decides
                removed[".txnindex"] = None
            publisher.publish(source, relative_path, base_offset, removed | files)
        unread = damage is not None and damage.kind == DamageKind.TOO_LARGE
        return Scanned(
            None if unread else recovery,
            damage,
            size_bytes=segment.size_bytes if tiered_log_of(file.path) else None,
            fallback_ms=segment.tiered_timestamp_ms,
        )


def _around(around: Around, tiered_timestamp_ms: int | None) -> Around:
    """Take an object's time, which is its upload's, for the one that a broker goes by."""
    if tiered_timestamp_ms is None:
        return around
    return around._replace(last_modified_ms=tiered_timestamp_ms)


def _measured(scanned: Scanned) -> tuple[int | None, ...]:
    found = scanned.recovery
    if found is None:
        return (None,) * len(_MEASURED)
    offsets, times = found.offset_entries, found.time_entries
    return (
        found.valid_bytes,
        found.truncated_bytes,
        found.next_offset,
        found.producer_end_offset,
        found.batch_count,
        found.record_count,
        found.first_batch_timestamp,
        found.min_timestamp,
        found.max_timestamp,
        found.offset_of_max_timestamp,
        found.producer_count,
        found.control_batch_count,
        found.transactional_batch_count,
        None if offsets is None else len(offsets),
        None if times is None else len(times),
    )


def _names(values: tuple[int, ...] | None, names: Mapping[int, str]) -> list[str] | None:
    return None if values is None else [names[value] for value in values]


def _of_the_log(scanned: Scanned, size_bytes: int, mtime_ns: int) -> tuple[int, int]:
    """Give ``_OF_THE_LOG``: the file's, in tiered storage those of the log that it holds."""
    found, fallback_ms = scanned.recovery, scanned.fallback_ms
    if found is None:
        return size_bytes, mtime_ns
    if fallback_ms is not None and 0 <= fallback_ms <= _MOST_MS and found.max_timestamp < 0:
        mtime_ns = fallback_ms * _NS_A_MS
    return size_bytes if scanned.size_bytes is None else scanned.size_bytes, mtime_ns


def _values(scanned: Scanned, entry_part: str | None) -> tuple[Any, ...]:
    """Give the values of ``SCANNED_COLUMNS``; tables as they are, numpy arrays."""
    found, damage = scanned.recovery, scanned.damage
    return (
        *_measured(scanned),
        found and found.magics,
        found and _names(found.codecs, CODECS),
        found and _names(found.timestamp_types, TIMESTAMP_TYPES),
        found and found.leader_epochs,
        found and found.producers.producers,
        found and found.producers.steps,
        damage and {**vars(damage), "kind": damage.kind.value},
        entry_part,
    )


def _to_batch(
    carried: pa.RecordBatch, rows: list[tuple[Any, ...]], arrow_schema: pa.Schema
) -> pa.RecordBatch:
    names = [*_OF_THE_LOG, *(field.name for field in SCANNED_COLUMNS)]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    arrays = [
        carried.column(field.name)
        if field.name not in columns
        else to_nested(columns[field.name], field.type)
        if field.name in _NESTED
        else pa.array(columns[field.name], type=field.type)
        for field in arrow_schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema)


def scan_segments(options: ScanOptions) -> Callable[[DataFrame], DataFrame]:
    """Recover every segment of a DataFrame and publish its index files.

    Needs: cluster, broker_id, source, relative_path, name, log_dir, topic, partition,
        base_offset, size_bytes, mtime_ns, is_active, next_base_offset, index_format_before,
        fingerprint.
    Gives: the same, what ``SegmentRecovery`` measured, and in ``entry_part`` which of the
        ``entry_files`` hold the entries of both indexes.
    """

    def transform(segments: DataFrame) -> DataFrame:
        carried = segments.select(*CARRIED)
        row_type = StructType([*carried.schema.fields, *SCANNED_COLUMNS])

        def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            arrow_schema = to_arrow_schema(row_type)
            scanner = SegmentScanner(options)
            gc.freeze()  # Spark collects after each task: what is imported need not be searched
            with _entry_files(options.entries) as entries:
                for batch in batches:
                    for first in range(0, batch.num_rows, _ROWS_A_BATCH):
                        rows = batch.slice(first, _ROWS_A_BATCH)
                        yield _scan_batch(scanner, entries, rows, arrow_schema)

        return carried.mapInArrow(on_task, row_type)

    return transform


def _entry_files(folder: str | None) -> AbstractContextManager[EntryFiles | None]:
    return nullcontext() if folder is None else EntryFiles(folder)


def _scan_batch(
    scanner: SegmentScanner,
    entries: EntryFiles | None,
    batch: pa.RecordBatch,
    arrow_schema: pa.Schema,
) -> pa.RecordBatch:
    keys = zip(*(batch.column(name).to_pylist() for name in SEGMENT_KEYS), strict=True)
    files = zip(*(batch.column(name).to_pylist() for name in _OPENED_BY), strict=True)
    facts = zip(*(batch.column(name).to_pylist() for name in _AROUND), strict=True)
    rows = []
    for key, file, (size_bytes, mtime_ns, next_base, format_before) in zip(
        keys, files, facts, strict=True
    ):
        source, relative_path, name, base_offset = file
        around = Around(next_base, mtime_ns // _NS_A_MS)
        gone = (MINUTE_INDEX_SUFFIX,) if format_before == IndexFormat.MINUTE else ()
        scanned = scanner.scan(source, relative_path, name, base_offset, around=around, gone=gone)
        found, part = scanned.recovery, None
        if entries is not None and found is not None:
            part = entries.add(key, found.offset_entries, found.time_entries)
        rows.append((*_of_the_log(scanned, size_bytes, mtime_ns), *_values(scanned, part)))
    return _to_batch(batch, rows, arrow_schema)
