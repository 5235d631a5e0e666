"""Records of the topics in which a cluster keeps its own state, decoded by their topic.

``__cluster_metadata``, ``__remote_log_metadata``: no key, and a frame before the value::

    frame version   unsigned varint, 1
    type            unsigned varint
    version         unsigned varint

``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``: an int16 before the key
is the type of the record, one before the value is the version. A null value deletes what its key
had.

Control records of any of them have the type in their key, after an int16 of the key's version.

Source: AbstractApiMessageSerde, CoordinatorRecordSerde, TransactionLog, ControlRecordType,
ControlRecordUtils, EndTransactionMarker.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages import control, messages
from kafka_segments.kafka.messages.consumer_protocol import with_members_read
from kafka_segments.kafka.messages.decoder import Message, decode_from
from kafka_segments.kafka.messages.json_form import json_form, json_text, text_of_form
from kafka_segments.kafka.messages.layout import KeyedLayouts, Layout
from kafka_segments.kafka.messages.values import BadBytesError, read_unsigned_varint
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC

TRANSACTIONS_TOPIC = "__transaction_state"
SHARES_TOPIC = "__share_group_state"
REMOTE_LOG_TOPIC = "__remote_log_metadata"
UNKNOWN = "unknown"
COMMITS = ("LegacyOffsetCommit", "OffsetCommit")
"""Kinds of records of committed offsets; Kafka takes their keys for the same."""
GROUP_METADATA = messages.LAYOUTS["GroupMetadataValue"]
FRAMED = {METADATA_TOPIC: messages.METADATA, REMOTE_LOG_TOPIC: messages.REMOTE_LOG}
"""Topics whose records have a frame before the value, with the layouts of these."""
KEYED = {
    OFFSETS_TOPIC: messages.GROUPS,
    TRANSACTIONS_TOPIC: messages.TRANSACTIONS,
    SHARES_TOPIC: messages.SHARES,
}
"""Coordinators' topics, with the layouts of keys and values."""

_INT16 = struct.Struct(">h")
_COMMIT_TYPES = {_INT16.pack(messages.LAYOUTS[f"{kind}Key"].type_id) for kind in COMMITS}
_FRAME_VERSION = 1
_KEYS_KEPT = 4_096
_MAX_INT16 = 2**15 - 1
_MIN_INT16 = -(2**15)


class InternalRecord(NamedTuple):
    """What a record says.

    ``kind``: the name of its layout in Kafka, without ``Key``; ``unknown``: one that 4.3 has not.
    ``type_id``: Kafka's number for it; None: not readable. ``key_version``, ``value_version``: the
    int16 before the key (for a coordinator the type again), and the version the value has.
    ``key``, ``value``: the fields; None: there is none (a value of None is a tombstone), or it
    could not be read. ``problem``: what is wrong with the bytes; None: nothing. Records of the same
    key share its fields: they are not to be changed.
    """

    kind: str = UNKNOWN
    type_id: int | None = None
    key_version: int | None = None
    value_version: int | None = None
    key: Message | None = None
    value: Message | None = None
    problem: str | None = None
    key_text: str | None = None
    value_layout: Layout | None = None

    def key_json(self) -> str | None:
        """Return the key as Kafka's converter writes it; None where there is none."""
        return self.key_text

    def value_json(self) -> str | None:
        """Return the value as Kafka's converter writes it; None where there is none.

        What the members of a classic group of consumers wrote is read, as kafka-dump-log does.
        """
        if self.value is None or self.value_layout is None or self.value_version is None:
            return None
        form = json_form(self.value_layout, self.value_version, self.value)
        if self.value_layout is GROUP_METADATA:
            form = with_members_read(form, self.value)
        return text_of_form(form)


def decode_internal(
    topic: str, key: bytes | None, value: bytes | None, *, is_control: bool = False
) -> InternalRecord:
    """Read a record of one of ``INTERNAL_TOPICS``; bytes that cannot be read are a ``problem``.

    ``is_control``: whether it is a record of a control batch. In ``__cluster_metadata`` every
    record with a key is one.
    """
    if is_control or (topic == METADATA_TOPIC and key is not None):
        return _decode_control(key, value)
    return _DECODERS[topic](key, value)


def decode_commit(key: bytes, value: bytes | None) -> InternalRecord | None:
    """Read a committed offset of ``__consumer_offsets``.

    Return None where the key is of another kind of record, such as a group's: its value, which may
    be large, is not read.
    """
    if len(key) >= _INT16.size and key[: _INT16.size] not in _COMMIT_TYPES:
        return None
    return _DECODERS[OFFSETS_TOPIC](key, value)


def _decode_control(key: bytes | None, value: bytes | None) -> InternalRecord:
    record = InternalRecord()
    try:
        version = _int16(key, "the key's version", least=0)
        fields, text = _decode_key(control.TYPE_SCHEMA, key or b"")
    except CorruptMessageError as wrong:
        return record._replace(problem=str(wrong))
    type_id = fields["type"]
    record = record._replace(type_id=type_id, key_version=version, key=fields, key_text=text)
    layout = control.RECORDS.get(type_id)
    if layout is None:
        return record
    record = record._replace(kind=layout.name, value_layout=layout)
    try:
        version = _int16(value, "the value's version", least=0)
        at = 0  # the version is the first field of KRaft's messages, too
        if layout is control.END_TXN_MARKER:
            version, at = 0, 2  # later versions begin as this one
        message, _ = decode_from(layout, version, value or b"", at)
    except CorruptMessageError as wrong:
        return record._replace(problem=str(wrong))
    return record._replace(value_version=version, value=message)


def _framed(records: tuple[Layout, ...]) -> Callable[[bytes | None, bytes | None], InternalRecord]:
    """Make the decoder of a topic whose values have a frame, and whose keys say nothing."""
    layouts = {layout.type_id: layout for layout in records}

    def decode_framed(key: bytes | None, value: bytes | None) -> InternalRecord:
        if value is None:
            nothing = "the record has neither key nor value" if key is None else None
            return InternalRecord(problem=nothing)
        try:
            type_id, version, at = _read_frame(value)
        except CorruptMessageError as wrong:
            return InternalRecord(problem=str(wrong))
        layout = layouts.get(type_id)
        if layout is None:
            return InternalRecord(UNKNOWN, type_id, None, version)
        message = problem = None
        try:
            message = _decode_all(layout, version, value, at)
        except CorruptMessageError as wrong:
            problem = str(wrong)
        return InternalRecord(
            layout.name, type_id, None, version, None, message, problem, None, layout
        )

    return decode_framed


def _read_frame(value: bytes) -> tuple[int, int, int]:
    """Return a record's type, its version and the place after the frame."""
    frame, at = _unsigned_int16(value, 0, "the frame's version")
    if frame != _FRAME_VERSION:
        reason = f"is {frame}, {_FRAME_VERSION} expected"
        raise CorruptMessageError("the frame's version", reason, 0)
    type_id, at = _unsigned_int16(value, at, "the record's type")
    version, at = _unsigned_int16(value, at, "the record's version")
    return type_id, version, at


def _decode_all(layout: Layout, version: int, value: bytes, at: int) -> Message:
    message, end = decode_from(layout, version, value, at)
    if end < len(value):
        raise CorruptMessageError(layout.name, f"is followed by {len(value) - end} bytes", end)
    return message


def _keyed(
    records: tuple[KeyedLayouts, ...],
) -> Callable[[bytes | None, bytes | None], InternalRecord]:
    """Make the decoder of a coordinator's topic."""
    known = {layouts.key.type_id: (layouts.kind, *layouts) for layouts in records}

    def decode_keyed(key: bytes | None, value: bytes | None) -> InternalRecord:
        kind, type_id, version = UNKNOWN, None, None
        value_layout = fields = text = message = None
        try:
            type_id = _int16(key, "the key's version")
            if type_id not in known:
                return InternalRecord(UNKNOWN, type_id, type_id, _version_of(value))
            kind, key_layout, value_layout = known[type_id]
            fields, text = _decode_key(key_layout, key or b"")
            if value is not None:
                version = _int16(value, "the value's version")
                message, _ = decode_from(value_layout, version, value, 2)
        except CorruptMessageError as wrong:
            problem = str(wrong)
            return InternalRecord(
                kind, type_id, type_id, version, fields, None, problem, text, value_layout
            )
        return InternalRecord(
            kind, type_id, type_id, version, fields, message, None, text, value_layout
        )

    return decode_keyed


@lru_cache(maxsize=_KEYS_KEPT)
def _decode_key(layout: Layout, key: bytes) -> tuple[Message, str]:
    """Return the fields of a key behind its first int16, and their JSON.

    A coordinator writes the same few keys again and again.
    """
    fields, _ = decode_from(layout, 0, key, 2)
    return fields, json_text(layout, 0, fields)


def _version_of(value: bytes | None) -> int | None:
    return None if value is None or len(value) < _INT16.size else _INT16.unpack_from(value)[0]


def _int16(data: bytes | None, name: str, *, least: int = _MIN_INT16) -> int:
    if data is None or len(data) < _INT16.size:
        found = "it is null" if data is None else f"{len(data)} bytes are there"
        raise CorruptMessageError(name, f"needs 2 bytes, {found}", 0)
    number: int = _INT16.unpack_from(data)[0]
    if number < least:
        raise CorruptMessageError(name, f"is {number}, {least} or more expected", 0)
    return number


def _unsigned_int16(data: bytes, at: int, name: str) -> tuple[int, int]:
    try:
        number, end = read_unsigned_varint(data, at)
    except IndexError:
        raise CorruptMessageError(name, "is cut off", at) from None
    except BadBytesError as wrong:
        raise CorruptMessageError(name, wrong.reason, wrong.position) from None
    if not 0 <= number <= _MAX_INT16:
        raise CorruptMessageError(name, f"is {number}, 0 to {_MAX_INT16} expected", at)
    return number, end


_DECODERS = {
    **{topic: _framed(records) for topic, records in FRAMED.items()},
    **{topic: _keyed(records) for topic, records in KEYED.items()},
}
INTERNAL_TOPICS = frozenset(_DECODERS)
