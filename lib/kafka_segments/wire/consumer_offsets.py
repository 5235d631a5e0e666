"""Keys and values of ``__consumer_offsets``: what groups committed. Big-endian.

Key::

    version         int16   0, 1: a committed offset; 2: a group; above: other records
    group           string  int16 length, UTF-8
    topic           string
    partition       int32

Value::

    version         int16   0 to 4
    offset          int64   the next one to read
    leaderEpoch     int32   3 and later; -1: unknown
    metadata        string  4: compact, an unsigned varint of length + 1
    commitTimestamp int64   ms
    expireTimestamp int64   1 only; -1: none
    tagged fields           4 only: count, then tag, size, bytes; tag 0: topic id, 16 bytes

A null value deletes what its key had. Bytes after the last field are passed over, as Kafka does.

Source: OffsetCommitKey, OffsetCommitValue, GroupCoordinatorRecordSerde.
"""

import struct
from typing import NamedTuple

from kafka_segments.errors import KafkaSegmentsError

_OFFSET_COMMIT_KEYS = (0, 1)
_NEWEST_VALUE = 4
_TOPIC_ID_TAG = 0
_TOPIC_ID_BYTES = 16
_MOST_VARINT_BYTES = 5


class CorruptCommitError(KafkaSegmentsError):
    """Bytes that are not a key or value of ``__consumer_offsets``."""


class CommitKey(NamedTuple):
    """Whose offset a record holds, and of which partition."""

    group: str
    topic: str
    partition: int


class CommitValue(NamedTuple):
    """A committed offset: the next to read; ``expire_timestamp_ms`` is -1 where none is set."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes | None


class _Fields:
    """Reads one field after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str, name: str) -> int:
        piece = self.take(struct.calcsize(f">{form}"), name)
        value: int = struct.unpack(f">{form}", piece)[0]
        return value

    def take(self, size: int, name: str) -> bytes:
        left = len(self._data) - self._at
        if not 0 <= size <= left:
            raise CorruptCommitError(f"{name} says {size} bytes, {left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def string(self, name: str) -> str:
        return self._text(self.number("h", name), name)

    def compact_string(self, name: str) -> str:
        return self._text(self.unsigned_varint(name) - 1, name)

    def _text(self, size: int, name: str) -> str:
        return self.take(size, name).decode("utf-8", "replace")

    def unsigned_varint(self, name: str) -> int:
        value = 0
        for count in range(_MOST_VARINT_BYTES):
            byte = self.take(1, name)[0]
            value |= (byte & 0x7F) << 7 * count
            if byte < 0x80:
                return value
        raise CorruptCommitError(f"{name} is a varint of more than {_MOST_VARINT_BYTES} bytes")


def parse_commit_key(data: bytes) -> CommitKey | None:
    """Read a key; return None where it is the key of another kind of record, such as a group's.

    Raises:
        CorruptCommitError: the key is cut off, or a length in it is impossible.
    """
    fields = _Fields(data)
    if fields.number("h", "version") not in _OFFSET_COMMIT_KEYS:
        return None
    return CommitKey(
        fields.string("group"), fields.string("topic"), fields.number("i", "partition")
    )


def parse_commit_value(data: bytes) -> CommitValue:
    """Read the value of a committed offset.

    Raises:
        CorruptCommitError: the version is unknown, the value is cut off, or a length in it is
            impossible.
    """
    fields = _Fields(data)
    version = fields.number("h", "version")
    if not 0 <= version <= _NEWEST_VALUE:
        raise CorruptCommitError(f"value version is {version}, 0 to {_NEWEST_VALUE} are known")
    is_flexible = version == _NEWEST_VALUE
    return CommitValue(
        offset=fields.number("q", "offset"),
        leader_epoch=fields.number("i", "leaderEpoch") if version >= 3 else -1,
        metadata=fields.compact_string("metadata") if is_flexible else fields.string("metadata"),
        commit_timestamp_ms=fields.number("q", "commitTimestamp"),
        expire_timestamp_ms=fields.number("q", "expireTimestamp") if version == 1 else -1,
        topic_id=_topic_id(fields) if is_flexible else None,
    )


def _topic_id(fields: _Fields) -> bytes | None:
    topic_id = None
    for _ in range(fields.unsigned_varint("count of tagged fields")):
        tag = fields.unsigned_varint("tag")
        field = fields.take(fields.unsigned_varint("size of a tagged field"), "tagged field")
        if tag == _TOPIC_ID_TAG:
            if len(field) != _TOPIC_ID_BYTES:
                raise CorruptCommitError(f"topic id has {len(field)} bytes, 16 expected")
            topic_id = field
    return topic_id
