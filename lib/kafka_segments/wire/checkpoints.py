"""The text files that a broker keeps beside its segments.

A checkpoint has the version ``0`` in line 1, the number of entries in line 2, then one entry a
line, whose fields white space separates. An empty file has no entries. Sources: CheckpointFile,
OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile, MetaProperties.
"""

import re
from typing import NamedTuple

import javaproperties

from kafka_segments.errors import CorruptTextError

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER_OFFSET = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
_WHITE_SPACE = re.compile(r"\s+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?0*[0-9]{1,19}", re.ASCII)


class PartitionOffset(NamedTuple):
    """One line of an offset checkpoint."""

    topic: str
    partition: int
    offset: int


class EpochStart(NamedTuple):
    """One line of the leader epoch checkpoint: the epoch and its first offset."""

    epoch: int
    start_offset: int


class MetaProperties(NamedTuple):
    """What ``meta.properties`` says of a log directory; None where it says nothing."""

    version: int | None
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def _entries(name: str, text: str, fields: int) -> list[list[str]]:
    if not text:
        return []
    lines = text.splitlines()
    if lines[0] != "0":
        raise CorruptTextError(name, f"version is {lines[0]!r}, 0 expected (line 1)")
    if len(lines) == 1:
        return []
    count = _int32(name, lines[1], 2)
    rows = [_WHITE_SPACE.split(line.rstrip()) for line in lines[2:]]
    for number, row in enumerate(rows, start=3):
        if len(row) != fields:
            raise CorruptTextError(name, f"{len(row)} fields, {fields} expected (line {number})")
    if len(rows) != count:
        raise CorruptTextError(name, f"{len(rows)} entries, line 2 says {count}")
    return rows


def _int32(name: str, text: str, place: str | int) -> int:
    return _integer(name, text, place, bits=32)


def _int64(name: str, text: str, place: str | int) -> int:
    return _integer(name, text, place, bits=64)


def _integer(name: str, text: str, place: str | int, *, bits: int) -> int:
    """Read a decimal as Java does: no white space, no ``_``, and it must fit."""
    value = int(text) if _DECIMAL.fullmatch(text) else 2**bits
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        where = f"line {place}" if isinstance(place, int) else place
        raise CorruptTextError(name, f"{text!r} is no int{bits} ({where})")
    return value


def parse_offset_checkpoint(name: str, text: str) -> list[PartitionOffset]:
    """Read recovery points, log start offsets, high watermarks or cleaner offsets.

    Raises:
        CorruptTextError: the text is not a checkpoint; Kafka would not read it either.
    """
    return [
        PartitionOffset(topic, _int32(name, partition, line), _int64(name, offset, line))
        for line, (topic, partition, offset) in enumerate(_entries(name, text, 3), start=3)
    ]


def parse_leader_epochs(text: str) -> list[EpochStart]:
    """Read ``leader-epoch-checkpoint``.

    Raises:
        CorruptTextError: the text is not a checkpoint; Kafka would not read it either.
    """
    return [
        EpochStart(_int32(LEADER_EPOCHS, epoch, line), _int64(LEADER_EPOCHS, start, line))
        for line, (epoch, start) in enumerate(_entries(LEADER_EPOCHS, text, 2), start=3)
    ]


def parse_partition_metadata(text: str) -> str:
    """Read the topic id, 22 characters of URL-safe base64, from ``partition.metadata``.

    Raises:
        CorruptTextError: ``version: 0`` or ``topic_id`` is missing.
    """
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    topic_id = fields.get("topic_id")
    if fields.get("version") != "0" or not topic_id:
        raise CorruptTextError(PARTITION_METADATA, "version 0 and a topic_id expected")
    return topic_id


def parse_meta_properties(text: str) -> MetaProperties:
    """Read ``meta.properties`` of version 0 (broker.id) or 1 (node.id).

    Raises:
        CorruptTextError: the text is not Java properties, or an id is not a number.
    """
    try:
        properties = javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise CorruptTextError(META_PROPERTIES, str(error)) from None
    version, node = (
        properties.get("version"),
        properties.get("node.id", properties.get("broker.id")),
    )
    return MetaProperties(
        version=None if version is None else _int32(META_PROPERTIES, version, "version"),
        cluster_id=properties.get("cluster.id"),
        node_id=None if node is None else _int32(META_PROPERTIES, node, "node.id"),
        directory_id=properties.get("directory.id"),
    )
