"""Decide what a tier's objects say of a segment: its names, its manifest, its batches' headers."""

from collections.abc import Mapping
from typing import Any

from kafka_segments.kafka.index.segment.recovered_segment import SegmentRecovery
from kafka_segments.kafka.text.names import TXN_INDEX_SUFFIX
from kafka_segments.kafka.tier.segment_manifest import SegmentManifest

NAMES, MANIFESTS, HEADERS = "names", "manifests", "headers"
"""How far objects are read, and by what is known what they say."""


def told_by_manifest(row: Mapping[str, Any], manifest: SegmentManifest) -> dict[str, Any]:
    """Return what the manifest says of a segment; ``row``: one of ``list_objects``, by names.

    A log of another size than its manifest says is a problem. A manifest may tell of sizes alone.

    Gives: found, problem.
    """
    found = row["found"] | {"source": MANIFESTS, "size_bytes": manifest.chunks.log_bytes}
    stored, announced = manifest.chunks.stored_bytes, manifest.segment
    problem = None
    if stored != row["log_bytes"]:
        problem = f"its log has {row['log_bytes']} bytes in the tier, {stored} says its manifest"
    if announced is not None:
        found |= {
            "start_offset": announced.start_offset,
            "end_offset": announced.end_offset,
            "max_timestamp_ms": announced.max_timestamp_ms,
            "leader_epochs": [epoch._asdict() for epoch in announced.leader_epochs],
            "event_ms": announced.event_timestamp_ms,
            "broker_id": announced.broker_id,
            "is_txn_index_empty": TXN_INDEX_SUFFIX not in manifest.parts,
        }
    return {"found": found, "problem": problem}


def told_by_headers(
    row: Mapping[str, Any], recovery: SegmentRecovery, *, size_bytes: int
) -> dict[str, Any]:
    """Return what the headers of its batches say of a segment, in the place of what others said.

    ``row``: one of ``list_objects``, by names or by the manifest. Damage is a problem, and then the
    headers say nothing.

    Gives: problem, or found.
    """
    if recovery.damage is not None:
        return {"problem": f"byte {recovery.damage.position}: {recovery.damage.message}"}
    headers = {
        "source": HEADERS,
        "start_offset": row["base_offset"],
        "end_offset": recovery.next_offset - 1,
        "max_timestamp_ms": recovery.max_timestamp,
        "size_bytes": size_bytes,
        "leader_epochs": [
            {"epoch": epoch, "start_offset": start}
            for epoch, start in recovery.leader_epochs.tolist()
        ],
    }
    return {"found": row["found"] | headers}
