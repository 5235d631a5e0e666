"""One log built by a build's own steps, scan, fold and publish, without Spark between them."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher
from kafka_segments.files.folders.kinds import SEGMENT
from kafka_segments.files.folders.source_folder import list_source_folder
from kafka_segments.kafka.index.log.loading import DEFAULT_EXPIRATION_MS, RecoveryMode
from kafka_segments.kafka.index.segment.recovered_segment import (
    Damage,
    DamageKind,
    SegmentRecovery,
    unread_segment,
)
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.folded_log import FoldedLog, FoldedSegment, FoldOptions
from kafka_segments.verbs.scan.scanner import ScanOptions, SegmentScanner


class Row(NamedTuple):
    """What table ``segments`` says of a segment."""

    recovery: SegmentRecovery
    damage: Damage | None


class Built(NamedTuple):
    """The rows by base offset, and the files that are left, by name."""

    rows: dict[int, Row]
    files: dict[str, bytes]


def build_alone(
    partition: Path,
    target: Path,
    mode: RecoveryMode,
    *,
    now_ms: int,
    recovery: RecoveryOptions | None = None,
    log_start_offset: int = 0,
) -> Built:
    """Build one partition's folder into ``target``, an empty or missing folder."""
    recovery = replace(
        recovery or RecoveryOptions(),
        is_load=mode != RecoveryMode.SEGMENT,
        finds_indexes=mode == RecoveryMode.LOADER_UNCLEAN,
    )
    output = IndexOutput(str(target / "indexes"), str(target / "set_aside"), {str(partition): ""})
    scanner = SegmentScanner(ScanOptions(recovery, output))
    options = FoldOptions(mode, now_ms, DEFAULT_EXPIRATION_MS, (str(partition),), recovery, output)
    rows = {}
    segments = []
    listed = list_source_folder(str(partition), "", finishes_swaps=recovery.is_load)
    for log in (row for row in listed if row.kind == SEGMENT):
        base_offset, size_bytes = log.base_offset, log.size_bytes
        assert base_offset is not None and size_bytes is not None
        scanned = scanner.begin(str(partition), "", log.name, base_offset)()
        found = scanned.recovery
        if found is None:
            assert scanned.damage is not None
            found = unread_segment(
                size_bytes=size_bytes, base_offset=base_offset, damage=scanned.damage
            )
        rows[base_offset] = Row(found, scanned.damage)
        segments.append(
            FoldedSegment(
                ("", -1, "", "", 0, base_offset),
                str(partition),
                "",
                log.name,
                log_start_offset,
                True,
                found.summary(base_offset),
            )
        )
    for segment, verdict in _folded(options, segments):
        base_offset = segment.summary.base_offset
        row = rows[base_offset]
        rows[base_offset] = row._replace(damage=verdict.damage or row.damage)
    folder = target / "indexes"
    files = folder.iterdir() if folder.exists() else ()
    return Built(rows, {file.name: file.read_bytes() for file in files})


def _folded(options: FoldOptions, segments: list[FoldedSegment]):
    """Fold in the order of ``fold_logs``."""
    if not segments:
        return
    is_load = options.mode != RecoveryMode.SEGMENT

    def order(segment: FoldedSegment) -> tuple[bool, int]:
        overflows = segment.summary.damage_kind == DamageKind.OFFSET_OVERFLOW
        return is_load and not overflows, segment.summary.base_offset

    segments.sort(key=order)
    log = FoldedLog(options, IndexPublisher(options.output), segments[0])
    for segment in segments:
        yield from log.take(segment)
    yield from log.finish()
