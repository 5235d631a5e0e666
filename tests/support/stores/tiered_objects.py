"""Writes segments as Aiven's plugin stores them, from its documentation alone."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cramjam

TOPIC_ID = "-WJ6FHTfRYy67jzwZdeqSQ"
SEGMENT_ID = "-qimKeZwStOEOwRzT3L5oQ"
OTHER_ID = "adh9f8BMS4anaUnD8KWfWg"
_PARTS = (
    ("offset", ".index"),
    ("timestamp", ".timeindex"),
    ("producerSnapshot", ".snapshot"),
    ("leaderEpoch", ".epochs"),
    ("transaction", ".txnindex"),
)
EMPTY_SNAPSHOT = bytes.fromhex("0001") + bytes.fromhex("48674bc7") + bytes(4)


def encode_chunk_sizes(sizes: Sequence[int]) -> bytes:
    """Write sizes as ChunkSizesBinaryCodec does: all but the last above the least, in few bytes."""
    out = len(sizes).to_bytes(4, "big")
    if len(sizes) > 1:
        base = min(sizes[:-1])
        width = max(1, -(-(max(sizes[:-1]) - base).bit_length() // 8))
        out += base.to_bytes(4, "big") + bytes([width])
        out += b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    return out + (sizes[-1].to_bytes(4, "big") if sizes else b"")


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


def chunk_index(log: bytes, chunk_bytes: int, stored: list[bytes], kind: str) -> dict[str, Any]:
    index: dict[str, Any] = {
        "type": kind,
        "originalChunkSize": chunk_bytes,
        "originalFileSize": len(log),
    }
    sizes = [len(chunk) for chunk in stored]
    if kind == "fixed":
        first = sizes[0] if len(sizes) > 1 else chunk_bytes
        last = sizes[-1] if sizes else 0
        index |= {"transformedChunkSize": first, "finalTransformedChunkSize": last}
    else:
        packed = _zstd(encode_chunk_sizes(sizes))
        index["transformedChunks"] = base64.b64encode(packed).decode()
    return index


def put_segment(
    root: Path,
    log: bytes,
    files: dict[str, bytes],
    *,
    end_offset: int,
    max_timestamp_ms: int,
    base_offset: int = 0,
    topic: str = "events",
    folder_topic: str | None = None,
    partition: int = 7,
    segment_id: str = SEGMENT_ID,
    epochs: dict[int, int] | None = None,
    event_ms: int = 1_700_000_000_000,
    chunk_bytes: int = 10_000,
    kind: str = "fixed",
    is_compressed: bool = False,
) -> Path:
    """Write log, indexes and manifest; gives the log's path. ``files``: by suffix."""
    folder = root / f"{folder_topic or topic}-{TOPIC_ID}" / str(partition)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{base_offset:020d}-{segment_id}"
    chunks = [log[start : start + chunk_bytes] for start in range(0, len(log), chunk_bytes)]
    stored = [_zstd(chunk) for chunk in chunks] if is_compressed else chunks
    epochs = {0: base_offset} if epochs is None else epochs
    checkpoint = "".join(f"{epoch} {start}\n" for epoch, start in epochs.items())
    held = {
        ".index": b"",
        ".timeindex": b"",
        ".snapshot": EMPTY_SNAPSHOT,
        ".epochs": f"0\n{len(epochs)}\n{checkpoint}".encode(),
        **files,
    }
    parts: dict[str, Any] = {}
    indexes = b""
    for name, suffix in _PARTS:
        data = held.get(suffix)
        parts[name] = None if data is None else {"position": len(indexes), "size": len(data)}
        indexes += data or b""
    manifest = {
        "version": "1",
        "chunkIndex": chunk_index(log, chunk_bytes, stored, kind),
        "segmentIndexes": parts,
        "compression": is_compressed,
        "remoteLogSegmentMetadata": {
            "remoteLogSegmentId": {
                "topicIdPartition": {
                    "topicId": TOPIC_ID,
                    "topicPartition": {"topic": topic, "partition": partition},
                },
                "id": segment_id,
            },
            "startOffset": base_offset,
            "endOffset": end_offset,
            "maxTimestampMs": max_timestamp_ms,
            "brokerId": 2,
            "eventTimestampMs": event_ms,
            "segmentLeaderEpochs": {str(epoch): start for epoch, start in epochs.items()},
        },
    }
    Path(f"{stem}.log").write_bytes(b"".join(stored))
    Path(f"{stem}.indexes").write_bytes(indexes)
    Path(f"{stem}.rsm-manifest").write_text(json.dumps(manifest))
    return Path(f"{stem}.log")


def put_log(root: Path, broker: Path, log: str, **options: Any) -> list[Path]:
    """Store a broker's log, its index files as it rebuilt them; gives the logs' paths.

    Every second segment is stored otherwise: compressed with a variable chunk index.
    """
    told = [json.loads(line) for line in (broker / "recovered.jsonl").read_text().splitlines()]
    paths = []
    for number, segment in enumerate(found for found in told if found["dir"] == log):
        base_offset = segment["baseOffset"]
        rebuilt = broker / "rebuilt" / log / f"{base_offset:020d}"
        files = {suffix: rebuilt.with_suffix(suffix) for _, suffix in _PARTS}
        files[".snapshot"] = rebuilt.with_name(f"{segment['nextOffset']:020d}.snapshot")
        given: dict[str, Any] = {
            "base_offset": base_offset,
            "end_offset": segment["nextOffset"] - 1,
            "max_timestamp_ms": segment["largestTimestamp"],
            "segment_id": f"-{number:021d}",
            "chunk_bytes": 100_000,
            "is_compressed": number % 2 == 1,
            "kind": "variable" if number % 2 else "fixed",
        }
        data = (broker / "logs" / log / f"{base_offset:020d}.log").read_bytes()
        held = {suffix: file.read_bytes() for suffix, file in files.items() if file.exists()}
        paths.append(put_segment(root, data, held, **given | options))
    return paths
