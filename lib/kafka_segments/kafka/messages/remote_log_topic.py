"""Write records of ``__remote_log_metadata``, and choose their partition, as brokers do.

Source: RemoteLogMetadataSerde, RemoteLogMetadataTopicPartitioner, Utils.murmur2.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from kafka_segments.kafka.messages.encoder import encode, write_unsigned_varint
from kafka_segments.kafka.messages.layout import Layout

_FRAME_VERSION, _VERSION = 1, 0
_MASK, _SEED, _FACTOR = 0xFFFFFFFF, 0x9747B28C, 0x5BD1E995


def encode_record(layout: Layout, message: Mapping[str, Any]) -> bytes:
    """Write the value of a record: its frame, and the message in version 0.

    Raises:
        CorruptMessageError: a value that its field cannot hold.
    """
    frame = (_FRAME_VERSION, layout.type_id or 0, _VERSION)
    return b"".join(map(write_unsigned_varint, frame)) + encode(layout, _VERSION, message)


def metadata_partition(topic_id: str, partition: int, partitions: int) -> int:
    """Return which of the topic's partitions has the records of a partition of a topic."""
    number = urlsafe_b64decode(topic_id + "==")
    most, least = (int.from_bytes(half, "big") for half in (number[:8], number[8:]))
    hashed = 1
    for value in (least ^ least >> 32, most ^ most >> 32, partition):
        hashed = 31 * hashed + value & _MASK
    return (_murmur2(hashed.to_bytes(4, "big")) & 0x7FFFFFFF) % partitions


def _murmur2(four: bytes) -> int:
    """Return Kafka's hash of four bytes."""
    hashed = _SEED ^ len(four)
    word = int.from_bytes(four, "little") * _FACTOR & _MASK
    word = (word ^ word >> 24) * _FACTOR & _MASK
    hashed = (hashed * _FACTOR & _MASK) ^ word
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _MASK
    return hashed ^ hashed >> 15
