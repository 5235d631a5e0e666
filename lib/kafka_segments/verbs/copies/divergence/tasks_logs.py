"""Compare the copies of each log, in the executors."""

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    StructType,
)

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import FileChangedError
from kafka_segments.files.storage.files import first_line
from kafka_segments.kafka.text.names import METADATA_TOPIC
from kafka_segments.verbs.copies.divergence.decide.copies import (
    Copy,
    CopyDamage,
    CopyDamageKind,
    CopyPiece,
    DifferenceKind,
    Divergence,
    HeldEpoch,
    of_other_clusters,
    with_quorum_end,
)
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from kafka_segments.verbs.copies.divergence.log_reading.keyed_records import KeyedLogs
from kafka_segments.verbs.copies.divergence.log_reading.log_files import CopyFiles, WholeSegment
from kafka_segments.verbs.copies.divergence.tasks_by_log import map_logs

COMPARED = StructType(
    row_fields(
        "topic string, partition int, row int, kind string, is_finding boolean,"
        " from_offset long, until_offset long, copies array<string>,"
        " right_copies array<string>, epoch int, detail string, held_by array<string>,"
        " bytes_read long"
    )
)


def compare_logs(parts: DataFrame, *, check_crc: bool, check_keys: bool = False) -> Transform:
    """Compare the copies of each log; batches and records are read where digests differ.

    If a log has several topic ids, its copies are of several clusters, and leader epochs do not
    count. If a file can no longer be read, the whole log is a row of kind ``UNREAD``.

    Needs: rows of ``decide.frames.described`` with has_many_ids and segments (rows of
        ``decide.frames.segments_of_copies``); ``parts``: rows of ``decide.frames.unequal_parts``.
    Gives: ``COMPARED``, a row for each range of offsets; bytes_read is that of the log, in its
        first row, 0 in others.
    """

    def compare(
        known: Sequence[dict[str, Any]], ranges: Sequence[dict[str, CopyPiece]]
    ) -> list[dict[str, Any]]:
        described = sorted(map(copy_of, known))
        are_apart = any(row["has_many_ids"] for row in known)
        files = CopyFiles(check_crc=check_crc, are_apart=are_apart)
        keys = keyed_logs(known, check_crc=check_crc)
        if known[0]["topic"] == METADATA_TOPIC:
            described = with_quorum_end(described)
        if are_apart:
            described = of_other_clusters(described)
        held_by = tuple(copy.name for copy in described)
        if are_apart:
            ranges = [
                {name: piece.without_epochs() for name, piece in one.items()} for one in ranges
            ]
        try:
            rows = compare_log(described, ranges, files, keys, check_keys=check_keys)
        except (OSError, FileChangedError) as error:
            start, end = min(c.start for c in described), max(c.end for c in described)
            detail = f"{first_line(error)}: a file has changed since it was listed, run it again"
            rows = [Divergence(DifferenceKind.UNREAD, True, start, end, held_by, detail=detail)]
        bytes_read = files.bytes_read + keys.bytes_read
        return [
            {
                "held_by": held_by,
                "row": number,
                "bytes_read": 0 if number else bytes_read,
                **_row(row),
            }
            for number, row in enumerate(rows)
        ]

    return map_logs(parts, compare, COMPARED)


def copy_of(row: dict[str, Any]) -> Copy:
    """Return what a row of ``decide.frames.described`` says of a copy."""
    return Copy(
        row["copy"],
        row["start"],
        row["end"],
        row["high_watermark"],
        tuple(sorted((one["epoch"], one["start_offset"]) for one in row["leader_epochs"] or ())),
        row["cleaner_offset"],
        row["gaps"],
        tuple(
            CopyDamage(**{**damage, "kind": CopyDamageKind(damage["kind"])})
            for damage in sorted(row["damages"], key=lambda one: (one["offset"], one["position"]))
        ),
        row["is_tiered"],
        tuple(HeldEpoch(**one) for one in row["held_epochs"] or ()),
        row["is_start_noted"],
        row["has_cleaner_checkpoint"],
        row["is_compact"],
    )


def keyed_logs(rows: Iterable[dict[str, Any]], *, check_crc: bool = True) -> KeyedLogs:
    """Return what reads keys of copies: rows of ``decide.frames.segments_of_copies``."""
    segments = {row["copy"]: [WholeSegment(**one) for one in row["segments"] or ()] for row in rows}
    return KeyedLogs(segments, check_crc=check_crc)


def _row(found: Divergence) -> dict[str, Any]:
    values = found._asdict()
    values["right_copies"] = values.pop("right")
    return values
