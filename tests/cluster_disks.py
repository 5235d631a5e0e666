"""What lies on a cluster's disks: the files of its internal topics, read by plain Python."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kafka_referee import Answer, Referee
from plain_decoder import plain_records

METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = (
    METADATA_TOPIC,
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__remote_log_metadata",
)
_ATTRIBUTES_AT, _CONTROL = 21, 0x20


class PlainBytes(NamedTuple):
    """A record's place and bytes."""

    offset: int
    timestamp_ms: int
    is_control: bool
    key: bytes | None
    value: bytes | None


def internal_files(disks: Path) -> Iterator[tuple[str, Path]]:
    """Give topic and path of every segment and snapshot of internal topics, in order."""
    for folder in sorted(disks.glob("node-*/*/__*-*")):
        topic = folder.name.rpartition("-")[0]
        for file in sorted(folder.iterdir()):
            if topic in INTERNAL_TOPICS and file.suffix in (".log", ".checkpoint"):
                yield topic, file


def plain_bytes(file: Path) -> list[PlainBytes]:
    """Read every record of a file that is sound."""
    log = file.read_bytes()
    return [
        PlainBytes(
            record.offset,
            record.timestamp,
            bool(
                struct.unpack_from(">h", log, record.batch_position + _ATTRIBUTES_AT)[0] & _CONTROL
            ),
            record.key,
            record.value,
        )
        for record in plain_records(log)
    ]


def kafka_lines(referee: Referee, topic: str, file: Path, scratch: Path) -> list[Answer]:
    """Let Kafka read every record of a file."""
    target = scratch / "records.jsonl"
    referee.internal_records(topic, file, target)
    return [json.loads(line) for line in target.read_text().splitlines()]


def kafka_images(
    referee: Referee, folder: Path, offsets: list[int], scratch: Path, snapshot: str | None = None
) -> list[dict[str, Any]]:
    """Let Kafka make the image as of each offset."""
    target = scratch / "images.jsonl"
    referee.metadata_images(folder, offsets, target, snapshot=snapshot)
    return [json.loads(line) for line in target.read_text().splitlines()]
