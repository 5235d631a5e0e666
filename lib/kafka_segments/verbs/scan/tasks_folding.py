"""Fold the summaries of each log's segments in the executors, and write what crosses segments.

The rows come sorted, one log after another, and are taken one at a time. A log of 10,000
segments is 10,000 small rows; its files are not read again.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from kafka_segments.engine.frames.driver_rows import by_keys
from kafka_segments.engine.frames.engines import collected_if_few
from kafka_segments.engine.frames.map_rows import map_rows
from kafka_segments.engine.tables.array_columns import from_nested
from kafka_segments.engine.tables.catalog import SEGMENTS
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS, Transform
from kafka_segments.files.changes.index_files import IndexPublisher
from kafka_segments.files.storage.uris import split_below
from kafka_segments.kafka.index.log.loading import RecoveryMode, SegmentVerdict
from kafka_segments.kafka.index.segment.producer_summary import ProducerSummary
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind, SegmentSummary
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.verbs.scan.decide.folding import fold_order
from kafka_segments.verbs.scan.folded_log import FoldedLog, FoldedSegment, FoldOptions

SUMMARY = (
    "path",
    "next_offset",
    "producer_end_offset",
    "valid_bytes",
    "truncated_bytes",
    "record_count",
    "leader_epochs",
    "damage",
    "producers",
    "transaction_steps",
)
FOLDED = (*SEGMENT_KEYS, *SUMMARY, "log_start_offset", "is_scanned")


def fold_logs(options: FoldOptions) -> Transform:
    """Fold the segments of every log and publish the files that depend on more than one segment.

    Needs: ``FOLDED``, with all segments of each log. ``is_scanned`` is true if this run read the
        segment and wrote its index files.
    Gives: the key, ``is_scanned``, ``txn_index_entries``, and ``log_damage``: the damage that
        only the whole log shows; null if the segment keeps its index files.
    """

    def transform(segments: DataFrame) -> DataFrame:
        order = fold_order(is_load=options.mode != RecoveryMode.SEGMENT)
        ordered = collected_if_few(by_keys(segments.select(*FOLDED), LOG_KEYS, order=order))
        row_type = StructType(
            [
                *(ordered.schema[key] for key in SEGMENT_KEYS),
                StructField("is_scanned", BooleanType()),
                StructField("txn_index_entries", LongType()),
                StructField("log_damage", SEGMENTS.schema["damage"].dataType),
            ]
        )

        def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            publisher = None if options.output is None else IndexPublisher(options.output)
            arrow_schema = to_arrow_schema(row_type)
            log = None
            for batch in batches:
                decided: list[tuple[FoldedSegment, SegmentVerdict]] = []
                for segment in _segments(batch, options.sources):
                    if log is None or segment.key[:-1] != log.key:
                        if log is not None:
                            decided += log.finish()
                        log = FoldedLog(options, publisher, segment)
                    decided += log.take(segment)
                yield _rows(decided, arrow_schema)
            if log is not None:
                yield _rows(log.finish(), arrow_schema)

        return map_rows(ordered, on_task, row_type)

    return transform


def _rows(
    decided: Iterable[tuple[FoldedSegment, SegmentVerdict]], arrow_schema: pa.Schema
) -> pa.RecordBatch:
    rows = [_row(segment, verdict) for segment, verdict in decided]
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema)


def _row(segment: FoldedSegment, verdict: SegmentVerdict) -> dict[str, Any]:
    damage = verdict.damage
    return {
        **dict(zip(SEGMENT_KEYS, segment.key, strict=True)),
        "is_scanned": segment.is_scanned,
        "txn_index_entries": len(verdict.aborted) if damage is None else None,
        "log_damage": None if damage is None else {**vars(damage), "kind": damage.kind.value},
    }


def _segments(batch: pa.RecordBatch, sources: tuple[str, ...]) -> Iterator[FoldedSegment]:
    nested = ("leader_epochs", "producers", "transaction_steps")
    tables = zip(*(from_nested(batch.column(name)) for name in nested), strict=True)
    plain = [name for name in batch.schema.names if name not in nested]
    rows = batch.select(plain).to_pylist()
    for row, (epochs, producers, steps) in zip(rows, tables, strict=True):
        base_offset = row["base_offset"]
        folder, _, file = row["path"].rpartition("/")
        source, relative_path = split_below(folder, sources)
        summary = SegmentSummary(
            base_offset=base_offset,
            next_offset=_known(row["next_offset"], base_offset),
            producer_end_offset=_known(row["producer_end_offset"], base_offset),
            valid_bytes=_known(row["valid_bytes"], 0),
            truncated_bytes=_known(row["truncated_bytes"], 0),
            damage_kind=None if row["damage"] is None else DamageKind(row["damage"]["kind"]),
            leader_epochs=[EpochStart(*entry) for entry in epochs.tolist()],
            producers=ProducerSummary(producers, steps),
            has_wrappers=row["record_count"] is None,
        )
        yield FoldedSegment(
            key=tuple(row[name] for name in SEGMENT_KEYS),
            source=source,
            relative_path=relative_path,
            name=file,
            log_start_offset=row["log_start_offset"] or 0,
            is_scanned=row["is_scanned"],
            summary=summary,
        )


def _known(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
