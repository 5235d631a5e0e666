"""A partition's segments recovered by us and by Kafka's classes, in the same terms."""

import os
from pathlib import Path
from typing import Any

from kafka_referee import Referee
from kafka_segments.index.log_recovery import LoadOptions, RecoveryMode, fold_of
from kafka_segments.index.offset_index import encode_offset_index
from kafka_segments.index.recovery import RecoveryOptions, SegmentRecoverer
from kafka_segments.index.time_index import encode_time_index
from kafka_segments.index.transactions import encode_transaction_index


def recovered_by_us(folder: Path, options: RecoveryOptions) -> dict[int, dict[str, Any]]:
    recoverer = SegmentRecoverer(options)
    fold = fold_of(RecoveryMode.SEGMENT, LoadOptions(now_ms=0))
    found = {}
    for log in sorted(folder.glob("*.log")):
        base_offset = int(log.name[:20])
        with log.open("rb", buffering=0) as stream:

            def read_into(
                position: int, view: memoryview, descriptor: int = stream.fileno()
            ) -> int:
                return os.preadv(descriptor, [view], position)

            mine = recoverer.recover(
                read_into, size_bytes=log.stat().st_size, base_offset=base_offset
            )
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
