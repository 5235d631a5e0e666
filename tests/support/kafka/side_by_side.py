"""A partition's segments recovered by us and by Kafka's classes, in the same terms."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_segments.kafka.index.log.loading import LoadOptions, RecoveryMode
from kafka_segments.kafka.index.log.recovery import fold_of
from kafka_segments.kafka.index.log.snapshots import decode_snapshot
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.index.segment.transaction_index import encode_transaction_index
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from support.kafka.kafka_referee import Referee, RefereeError
from support.logs.built_alone import build_alone

AT_EPOCH = LoadOptions(now_ms=0)  # no producer has expired


def _recover(recoverer: SegmentRecoverer, log: Path) -> SegmentRecovery:
    with log.open("rb", buffering=0) as stream:
        return recoverer.recover(
            lambda position, view: os.preadv(stream.fileno(), [view], position),
            size_bytes=log.stat().st_size,
            base_offset=int(log.name[:20]),
        )


def recovered_by_us(folder: Path, options: RecoveryOptions) -> dict[int, dict[str, Any]]:
    recoverer = SegmentRecoverer(options)
    fold = fold_of(RecoveryMode.SEGMENT, LoadOptions(now_ms=0))
    found = {}
    for log in sorted(folder.glob("*.log")):
        base_offset = int(log.name[:20])
        mine = _recover(recoverer, log)
        verdict = fold.take(mine.summary(base_offset))
        if verdict.damage or mine.offset_entries is None or mine.time_entries is None:
            found[base_offset] = {"threw": True}
            continue
        found[base_offset] = {
            "validBytes": mine.valid_bytes,
            "nextOffset": mine.next_offset,
            "largestTimestamp": mine.max_timestamp,
            "offsetOfLargestTimestamp": mine.offset_of_max_timestamp,
            "firstBatchTimestamp": mine.first_batch_timestamp,
            "index": encode_offset_index(mine.offset_entries, base_offset=base_offset),
            "timeindex": encode_time_index(mine.time_entries, base_offset=base_offset),
            "txnindex": encode_transaction_index(verdict.aborted) or b"",
        }
    return found


def recovered_by_kafka(
    referee: Referee, folder: Path, options: RecoveryOptions
) -> dict[int, dict[str, Any]]:
    rows = referee.recover(
        folder,
        index_interval_bytes=options.index_interval_bytes,
        segment_index_bytes=options.segment_index_bytes,
    )
    found = {}
    for row in rows:
        if "threw" in row:
            found[row["baseOffset"]] = {"threw": True}
            continue
        stem = folder / f"{row['baseOffset']:020d}"
        aborted = stem.with_suffix(".txnindex")
        found[row["baseOffset"]] = {
            "validBytes": row["validBytes"],
            "nextOffset": row["nextOffset"],
            "largestTimestamp": row["largestTimestamp"],
            "offsetOfLargestTimestamp": row["offsetOfLargestTimestamp"],
            "firstBatchTimestamp": row["firstBatchTimestamp"],
            "index": stem.with_suffix(".index").read_bytes(),
            "timeindex": stem.with_suffix(".timeindex").read_bytes(),
            "txnindex": aborted.read_bytes() if aborted.exists() else b"",
        }
    return found


def loaded_by_us(
    folder: Path, mode: RecoveryMode, options: LoadOptions = AT_EPOCH
) -> dict[str, object]:
    """Give the files that a load leaves, by name; empty where the log does not load."""
    with tempfile.TemporaryDirectory() as target:
        files = build_alone(
            folder,
            Path(target),
            mode,
            now_ms=options.now_ms,
            log_start_offset=options.log_start_offset,
        ).files
    return _comparable(files) if LEADER_EPOCHS in files else {}


def loaded_by_kafka(
    referee: Referee, folder: Path, mode: RecoveryMode, options: LoadOptions = AT_EPOCH
) -> dict[str, object]:
    """Load a log in place with Kafka's classes; else as ``loaded_by_us``."""
    if mode == RecoveryMode.LOADER_UNCLEAN:
        for log in folder.glob("*.log"):
            log.with_suffix(".index").touch()
            log.with_suffix(".timeindex").touch()
    try:
        bases = referee.load_log(
            folder,
            is_clean=False,
            log_start_offset=options.log_start_offset,
            now_ms=options.now_ms,
        )["base_offsets"]
    except RefereeError:
        return {}
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".log"}
    gone = {
        name
        for name in files
        if name.endswith(".deleted")
        or (
            name[:20].isdecimal() and not name.endswith(".snapshot") and int(name[:20]) not in bases
        )
    }
    return _comparable({name: data for name, data in files.items() if name not in gone})


def _comparable(files: Mapping[str, bytes | None]) -> dict[str, object]:
    """Snapshots by content; an empty ``.txnindex`` is none."""
    return {
        name: decode_snapshot(data) if name.endswith(".snapshot") else data
        for name, data in files.items()
        if data is not None and (data or not name.endswith(".txnindex"))
    }
