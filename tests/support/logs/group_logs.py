"""Logs of ``__consumer_offsets`` written by hand, sound and such as not every release reads."""

from __future__ import annotations

import struct
from pathlib import Path

from support.logs.strategies import CONTROL, TRANSACTIONAL, Record, v2_batch

START_MS = 1_700_000_000_000
NO_PRODUCER = -1
ABORT, COMMIT = 0, 1
_NO_FIELDS = b"\x00"


def text(value: str) -> bytes:
    """Write a string of a message that is not flexible."""
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def commit_key(group: str, partition: int = 0, *, kind: int = 1) -> bytes:
    """Write the key of a commit of a partition of topic ``t``."""
    return struct.pack(">h", kind) + text(group) + text("t") + struct.pack(">i", partition)


def commit_value(offset: int, version: int = 3) -> bytes:
    """Write the value of a commit, of version 0, 3 or 4."""
    head = struct.pack(">hq", version, offset)
    if version == 0:
        return head + text("") + struct.pack(">q", START_MS)
    if version == 3:
        return head + struct.pack(">i", 7) + text("") + struct.pack(">q", START_MS)
    return head + struct.pack(">i", 7) + b"\x01" + struct.pack(">q", START_MS) + _NO_FIELDS


def group_key(group: str, kind: int = 2) -> bytes:
    """Write the key of a record of a group as a whole."""
    return struct.pack(">h", kind) + text(group)


def empty_classic_group(version: int = 3) -> bytes:
    """Write the value of a classic group without members."""
    nothing = struct.pack(">hh", -1, -1)
    state = struct.pack(">q", START_MS) if version >= 2 else b""
    fields = text("consumer") + struct.pack(">i", 3) + nothing + state + struct.pack(">i", 0)
    return struct.pack(">h", version) + fields


def consumer_group(epoch: int, version: int = 0) -> bytes:
    """Write the value of a group of the newer protocol."""
    return struct.pack(">hi", version, epoch) + _NO_FIELDS


def batch(
    offset: int,
    *records: tuple[bytes | None, bytes | None],
    producer_id: int = NO_PRODUCER,
    flags: int = 0,
) -> bytes:
    """Write a batch of keys and values."""
    given: list[Record] = [(START_MS + offset, key, value) for key, value in records]
    return v2_batch(offset, given, leader_epoch=0, producer_id=producer_id, flags=flags)


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    """Write the marker that ends a transaction."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
    return batch(offset, (key, value), producer_id=producer_id, flags=CONTROL | TRANSACTIONAL)


def strange_marker(offset: int) -> bytes:
    """Write a control record of no type that is known."""
    return batch(offset, (struct.pack(">hh", 0, 77), struct.pack(">hi", 0, 0)), flags=CONTROL)


def write_log(log_dir: Path, partition: int, *segments: tuple[int, list[bytes]]) -> Path:
    """Write a partition's segments, each a base offset and its batches."""
    folder = log_dir / f"__consumer_offsets-{partition}"
    folder.mkdir(parents=True)
    for base, batches in segments:
        (folder / f"{base:020d}.log").write_bytes(b"".join(batches))
    return folder
