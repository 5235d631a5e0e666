"""Metadata logs and snapshots written by hand: a few records of the first versions of each kind."""

import base64
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.logs.strategies import CONTROL, v2_batch

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
START_MS = 1_700_000_000_000
_NOTHING_TAGGED = b"\x00"


def uuid(number: int) -> bytes:
    """Make a uuid of a number."""
    return number.to_bytes(16, "big")


def uuid_text(number: int) -> str:
    """Write such a uuid as Kafka does."""
    return base64.urlsafe_b64encode(uuid(number)).decode().rstrip("=")


def topic(name: str, number: int) -> bytes:
    """Write a TopicRecord."""
    return _record(2, _text(name) + uuid(number))


def partition(
    topic_number: int,
    number: int,
    replicas: Sequence[int] = (1, 2),
    isr: Sequence[int] | None = None,
) -> bytes:
    """Write a PartitionRecord, led by its first replica; ``isr``: None: all are in sync."""
    lists = _ints(replicas) + _ints(replicas if isr is None else isr) + _ints([]) * 2
    return _record(
        3,
        struct.pack(">i", number)
        + uuid(topic_number)
        + lists
        + struct.pack(">iii", replicas[0], 0, 0),
    )


def leader(topic_number: int, number: int, to: int) -> bytes:
    """Write a PartitionChangeRecord with another leader."""
    return _record(
        5, struct.pack(">i", number) + uuid(topic_number), b"\x01\x01\x04" + struct.pack(">i", to)
    )


def config(resource: str, name: str, value: str | None, *, kind: int = 2) -> bytes:
    """Write a ConfigRecord."""
    text = b"\x00" if value is None else _text(value)
    return _record(4, struct.pack(">b", kind) + _text(resource) + _text(name) + text)


def remove_topic(number: int) -> bytes:
    """Write a RemoveTopicRecord."""
    return _record(9, uuid(number))


def feature(name: str, level: int) -> bytes:
    """Write a FeatureLevelRecord."""
    return _record(12, _text(name) + struct.pack(">h", level))


def no_op() -> bytes:
    """Write a NoOpRecord."""
    return _record(20, b"")


def log_bytes(records: Sequence[bytes], *, base_offset: int = 0, epoch: int = 1) -> bytes:
    """Write records as a log, a batch and a second each."""
    return b"".join(
        v2_batch(
            base_offset + number,
            [(START_MS + 1_000 * (base_offset + number), None, value)],
            leader_epoch=epoch,
        )
        for number, value in enumerate(records)
    )


def snapshot_bytes(records: Sequence[bytes], *, end_offset: int, epoch: int = 1) -> bytes:
    """Write a snapshot of the log before ``end_offset``: header, records, footer."""
    last_ms = START_MS + 1_000 * (end_offset - 1)
    header = struct.pack(">hq", 0, last_ms) + _NOTHING_TAGGED
    footer = struct.pack(">h", 0) + _NOTHING_TAGGED
    return b"".join(
        (
            _control(0, 3, header, epoch),
            v2_batch(1, [(last_ms, None, value) for value in records], leader_epoch=epoch),
            _control(1 + len(records), 4, footer, epoch),
        )
    )


def log_dir(
    folder: Path, files: dict[str, bytes], *, node: int = 1, cluster: str = CLUSTER
) -> Path:
    """Make a log directory with these files of the metadata log."""
    log = folder / "__cluster_metadata-0"
    log.mkdir(parents=True)
    properties = f"version=1\ncluster.id={cluster}\nnode.id={node}\n"
    (folder / "meta.properties").write_text(properties)
    for name, data in files.items():
        (log / name).write_bytes(data)
    return folder


def _control(offset: int, kind: int, value: bytes, epoch: int) -> bytes:
    key = struct.pack(">hh", 0, kind)
    return v2_batch(offset, [(START_MS, key, value)], flags=CONTROL, leader_epoch=epoch)


def _record(kind: int, body: bytes, tagged: bytes = _NOTHING_TAGGED) -> bytes:
    return bytes([1, kind, 0]) + body + tagged


def _text(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data) + 1]) + data


def _ints(numbers: Sequence[int]) -> bytes:
    return bytes([len(numbers) + 1]) + struct.pack(f">{len(numbers)}i", *numbers)


def row(values: Any, *names: str) -> tuple[Any, ...]:
    """Return some values of a row."""
    return tuple(values[name] for name in names)
