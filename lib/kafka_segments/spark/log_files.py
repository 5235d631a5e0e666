"""Fold the summaries of each log's segments in the executors, and write what crosses segments.

The rows come sorted, one log after another, and go through one at a time: a log of 10,000
segments is 10,000 small rows, none of its files is read again.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from kafka_segments.decide.build_plan import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.errors import FileChangedError
from kafka_segments.index.log_recovery import LoadOptions, RecoveryMode, Verdict, fold_of
from kafka_segments.index.minute_index import MINUTE_INDEX_SUFFIX
from kafka_segments.index.offset_index import encode_offset_index
from kafka_segments.index.producer_summary import ProducerSummary
from kafka_segments.index.recovery import (
    DamageKind,
    RecoveryOptions,
    SegmentRecoverer,
    SegmentSummary,
)
from kafka_segments.index.splitting import Piece, split_overflowed
from kafka_segments.index.time_index import encode_time_index
from kafka_segments.index.transactions import encode_transaction_index
from kafka_segments.spark.nested_tables import from_nested
from kafka_segments.spark.schemas import schema
from kafka_segments.storage.files import open_segment, place
from kafka_segments.storage.index_files import IndexOutput, IndexPublisher
from kafka_segments.wire.checkpoints import LEADER_EPOCHS, EpochStart
from kafka_segments.wire.names import SNAPSHOT_SUFFIX, file_name

SUMMARY = (
    "path",
    "next_offset",
    "producer_end_offset",
    "truncated_bytes",
    "leader_epochs",
    "damage",
    "producers",
    "transaction_steps",
)
FOLDED = (*SEGMENT_KEYS, *SUMMARY, "log_start_offset", "is_scanned")
_INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex", MINUTE_INDEX_SUFFIX)


class FoldOptions(NamedTuple):
    """How logs are recovered; crosses to the executors. ``output`` None: no files."""

    mode: RecoveryMode
    now_ms: int
    expiration_ms: int
    sources: tuple[str, ...]
    recovery: RecoveryOptions
    output: IndexOutput | None


class _Segment(NamedTuple):
    source: str
    relative_path: str
    name: str
    log_start_offset: int
    is_scanned: bool
    summary: SegmentSummary


class _Log:
    """One log under the fold."""

    def __init__(self, options: FoldOptions, publisher: IndexPublisher | None, first: _Segment):
        load = LoadOptions(
            now_ms=options.now_ms,
            expiration_ms=options.expiration_ms,
            log_start_offset=first.log_start_offset,
        )
        self._fold = fold_of(options.mode, load)
        self._is_load = options.mode != RecoveryMode.SEGMENT
        self._recovery = options.recovery
        self._publisher = publisher
        self._folder = (first.source, first.relative_path)
        self._snapshots: set[str] = set()

    def take(self, segment: _Segment) -> Verdict:
        if self._is_load and segment.summary.damage_kind == DamageKind.OFFSET_OVERFLOW:
            pieces = self._split(segment)
            if pieces:
                return self._take_pieces(pieces)
        base_offset = segment.summary.base_offset
        verdict = self._fold.take(segment.summary)
        if self._publisher is None:
            return verdict
        if verdict.damage is not None:
            self._publisher.withdraw(
                *self._folder, base_offset, _INDEX_SUFFIXES, is_new=segment.is_scanned
            )
        else:
            aborted = encode_transaction_index(verdict.aborted)
            self._publisher.publish(*self._folder, base_offset, {".txnindex": aborted})
        if verdict.snapshot is not None:
            self._snapshot(base_offset, verdict.snapshot)
        return verdict

    def _split(self, segment: _Segment) -> list[Piece] | None:
        """Split a segment that does not fit its base offset: the only one that is read again."""
        folder = place(segment.source).child(segment.relative_path)
        try:
            with open_segment(folder.child(segment.name)) as file:
                return split_overflowed(
                    SegmentRecoverer(self._recovery), file.read_into, size_bytes=file.size_bytes
                )
        except (OSError, FileChangedError):
            return None

    def _take_pieces(self, pieces: list[Piece]) -> Verdict:
        """Take the pieces of a split segment one after another, and publish their files."""
        verdicts = [self._fold.take(found.summary(base)) for base, found in pieces]
        for (base, found), verdict in zip(pieces, verdicts, strict=True):
            offsets, times = found.offset_entries, found.time_entries
            if self._publisher is None or offsets is None or times is None or verdict.damage:
                continue
            files = {
                ".index": encode_offset_index(offsets, base_offset=base),
                ".timeindex": encode_time_index(times, base_offset=base),
                ".txnindex": encode_transaction_index(verdict.aborted),
            }
            self._publisher.publish(*self._folder, base, files)
            if verdict.snapshot is not None:
                self._snapshot(base, verdict.snapshot)
        refused = next((verdict for verdict in verdicts if verdict.damage), None)
        return refused or Verdict([entry for verdict in verdicts for entry in verdict.aborted])

    def _snapshot(self, offset: int, data: bytes) -> None:
        name = file_name(offset, SNAPSHOT_SUFFIX)
        self._snapshots.add(name)
        if self._publisher is not None:
            self._publisher.publish_named(*self._folder, {name: data})

    def finish(self) -> None:
        files = self._fold.finish()
        if self._publisher is None or not self._is_load:
            return
        for offset, data in files.snapshots.items():
            self._snapshot(offset, data)
        self._publisher.publish_named(*self._folder, {LEADER_EPOCHS: files.leader_epochs})
        self._publisher.remove_others(*self._folder, SNAPSHOT_SUFFIX, keep=self._snapshots)


def fold_logs(options: FoldOptions) -> Callable[[DataFrame], DataFrame]:
    """Fold the segments of every log and publish the files that depend on more than one.

    Needs: ``FOLDED``; of each log all segments. ``is_scanned`` says that this run read the
        segment and wrote its index files.
    Gives: the key, ``is_scanned``, ``txn_index_entries``, and ``log_damage``: what only the log
        shows, null where the segment keeps its index files.
    """

    def transform(segments: DataFrame) -> DataFrame:
        ordered = (
            segments.select(*FOLDED)
            .repartition(*LOG_KEYS)
            .sortWithinPartitions(*LOG_KEYS, "base_offset")
        )
        damage = schema("segments.v1")["damage"].dataType
        row_type = StructType(
            [
                *ordered.select(*SEGMENT_KEYS).schema.fields,
                StructField("is_scanned", BooleanType()),
                StructField("txn_index_entries", LongType()),
                StructField("log_damage", damage),
            ]
        )

        def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            publisher = None if options.output is None else IndexPublisher(options.output)
            arrow_schema = to_arrow_schema(row_type)
            log, key_of_log = None, None
            for batch in batches:
                rows = []
                for key, segment in _segments(batch, options.sources):
                    if log is None or key[:-1] != key_of_log:
                        if log is not None:
                            log.finish()
                        log, key_of_log = _Log(options, publisher, segment), key[:-1]
                    rows.append((*key, segment.is_scanned, *_values(log.take(segment))))
                columns = zip(*rows, strict=True) if rows else [()] * len(arrow_schema)
                arrays = [
                    pa.array(values, type=field.type)
                    for values, field in zip(columns, arrow_schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema)
            if log is not None:
                log.finish()

        return ordered.mapInArrow(on_task, row_type)

    return transform


def _values(verdict: Verdict) -> tuple[int | None, dict[str, Any] | None]:
    damage = verdict.damage
    if damage is not None:
        return None, {**vars(damage), "kind": damage.kind.value}
    return len(verdict.aborted), None


def _segments(
    batch: pa.RecordBatch, sources: tuple[str, ...]
) -> Iterator[tuple[tuple[Any, ...], _Segment]]:
    nested = ("leader_epochs", "producers", "transaction_steps")
    tables = zip(*(from_nested(batch.column(name)) for name in nested), strict=True)
    plain = [name for name in batch.schema.names if name not in nested]
    rows = batch.select(plain).to_pylist()
    for row, (epochs, producers, steps) in zip(rows, tables, strict=True):
        base_offset = row["base_offset"]
        source, relative_path, name = _file(row["path"], sources)
        summary = SegmentSummary(
            base_offset=base_offset,
            next_offset=_known(row["next_offset"], base_offset),
            producer_end_offset=_known(row["producer_end_offset"], base_offset),
            truncated_bytes=_known(row["truncated_bytes"], 0),
            damage_kind=None if row["damage"] is None else DamageKind(row["damage"]["kind"]),
            leader_epochs=[EpochStart(*entry) for entry in epochs.tolist()],
            producers=ProducerSummary(producers, steps),
        )
        segment = _Segment(
            source, relative_path, name, row["log_start_offset"] or 0, row["is_scanned"], summary
        )
        yield tuple(row[name] for name in SEGMENT_KEYS), segment


def _known(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _file(path: str, sources: tuple[str, ...]) -> tuple[str, str, str]:
    """Give the source that a segment lies in, its folder from there, and its name."""
    folder, _, name = path.rpartition("/")
    for source in sources:
        root = source.rstrip("/")
        if folder == root or folder.startswith(root + "/"):
            return source, folder[len(root) + 1 :], name
    raise ValueError(f"{path} lies in none of {', '.join(sources)}")
