"""What members of a classic group wrote into their bytes: subscription and assignment.

An int16 before each is its version. Only groups of consumers are sure to write these; Kafka Connect
and others have protocols of their own.

Source: ConsumerProtocolSubscription, ConsumerProtocolAssignment (messages of clients, Kafka 4.3.1);
DumpLogSegments.OffsetsMessageParser.
"""

import struct
from typing import Any

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages.decoder import Message, decode_from
from kafka_segments.kafka.messages.json_form import json_form
from kafka_segments.kafka.messages.layout import Layout, versions_of
from kafka_segments.kafka.messages.messages import LAYOUTS

_INT16 = struct.Struct(">h")
_CONSUMERS = "consumer"
_PARTITIONS = ("ownedPartitions", "assignedPartitions")
OF_MEMBERS = {
    "subscription": LAYOUTS["ConsumerProtocolSubscription"],
    "assignment": LAYOUTS["ConsumerProtocolAssignment"],
}


def with_members_read(form: dict[str, Any], group: Message) -> dict[str, Any]:
    """Return the JSON of a GroupMetadataValue with what its members' bytes say in their place.

    Bytes that are no such message stay as they are, and so do those of a group that is not of
    consumers. ``form``: the JSON of ``group`` as Kafka's converter makes it.
    """
    if group["protocolType"] != _CONSUMERS:
        return form
    pairs = zip(form["members"], group["members"], strict=True)
    members = [{**told, **_read(member)} for told, member in pairs]
    return form | {"members": members}


def _read(member: Message) -> dict[str, Any]:
    forms = ((name, _form(layout, member[name])) for name, layout in OF_MEMBERS.items())
    return {name: form for name, form in forms if form is not None}


def _form(layout: Layout, data: bytes) -> dict[str, Any] | None:
    """Return the JSON of a message behind its version; None: the bytes are none.

    A version that Kafka 4.3.1 does not have is read as the nearest that it has; but of a newer one
    its reader refuses partitions.
    """
    if len(data) < _INT16.size:
        return None
    known = versions_of(layout.versions)
    written: int = _INT16.unpack_from(data)[0]
    version = min(max(written, known[0]), known[-1])
    try:
        message, _ = decode_from(layout, version, data, _INT16.size)
    except CorruptMessageError:
        return None
    if written > known[-1] and any(message.get(name) for name in _PARTITIONS):
        return None
    return json_form(layout, version, message)
