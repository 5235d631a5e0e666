"""What members of classic groups wrote into their bytes, as kafka-dump-log tells it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages.decoder import decode_from
from kafka_segments.kafka.messages.encoder import encode
from kafka_segments.kafka.messages.json_form import json_text
from kafka_segments.kafka.messages.layout import Layout
from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.kafka.messages.records import decode_internal
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from support.kafka.kafka_referee import Referee
from support.logs.spoiled_bytes import spoil
from support.logs.strategies import v2_batch

DRAWN = 200
OF_SUBSCRIPTION = LAYOUTS["ConsumerProtocolSubscription"]
OF_ASSIGNMENT = LAYOUTS["ConsumerProtocolAssignment"]
OWNED = [{"topic": "a", "partitions": [1, 2]}, {"topic": "b", "partitions": []}]
SUBSCRIPTION = {
    **{"topics": ["a", "é"], "userData": b"x", "ownedPartitions": OWNED},
    **{"generationId": 7, "rackId": None},
}
ASSIGNMENT = {"assignedPartitions": OWNED, "userData": None}
GROUP_KEY = b"\0\2\0\1g"


def _member(subscription: bytes, assignment: bytes) -> dict[str, Any]:
    return {
        **{"memberId": "m", "groupInstanceId": None, "clientId": "c", "clientHost": "/h"},
        **{"rebalanceTimeout": 1, "sessionTimeout": 2},
        **{"subscription": subscription, "assignment": assignment},
    }


def _group(*members: tuple[bytes, bytes], protocol_type: str = "consumer") -> bytes:
    said = {
        **{"protocolType": protocol_type, "generation": 1, "protocol": "range", "leader": "m"},
        **{"currentStateTimestamp": 5, "members": [_member(*member) for member in members]},
    }
    return b"\0\4" + encode(LAYOUTS["GroupMetadataValue"], 4, said)


def _written(layout: Layout, message: dict[str, Any], version: int, *, known: int = 3) -> bytes:
    body = encode(layout, min(max(version, 0), known), message)
    return version.to_bytes(2, "big", signed=True) + body


def _members(value: bytes) -> list[tuple[Any, Any]]:
    told = json.loads(decode_internal(OFFSETS_TOPIC, GROUP_KEY, value).value_json() or "")
    return [(one["subscription"], one["assignment"]) for one in told["members"]]


def test_subscription_and_assignment_are_read_by_their_version() -> None:
    written = [
        (
            _written(OF_SUBSCRIPTION, SUBSCRIPTION, version),
            _written(OF_ASSIGNMENT, ASSIGNMENT, version),
        )
        for version in (0, 1, 2, 3, -1)
    ]

    found = _members(_group(*written))

    told = {"topics": ["a", "é"], "userData": "eA=="}
    owned = told | {"ownedPartitions": OWNED}
    third = owned | {"generationId": 7}
    assert [one for one, _ in found] == [told, owned, third, third | {"rackId": None}, told]
    assert [one for _, one in found] == [ASSIGNMENT] * 5


def test_of_a_newer_version_no_partitions_are_read() -> None:
    without = SUBSCRIPTION | {"ownedPartitions": []}
    subscriptions = [_written(OF_SUBSCRIPTION, one, 9) for one in (without, SUBSCRIPTION)]

    (read, _), (kept, _) = _members(_group(*((one, b"") for one in subscriptions)))

    assert read == without | {"userData": "eA=="}
    assert isinstance(kept, str)


def test_bytes_that_are_no_message_and_those_of_other_protocols_stay() -> None:
    sound = _written(OF_ASSIGNMENT, ASSIGNMENT, 3)

    assert _members(_group((b"", b"\0"), (b"\0\3\0\0\0\5", sound))) == [
        ("", "AA=="),
        ("AAMAAAAF", ASSIGNMENT),
    ]
    (kept,) = _members(_group((b"", sound), protocol_type="connect"))
    assert isinstance(kept[1], str)


@pytest.mark.referee
def test_messages_and_spoiled_ones_are_read_or_refused_as_kafka_does(
    referee: Referee, seed: int
) -> None:
    choice = random.Random(f"{seed} consumer protocol")
    sound = [
        (layout, version, encode(layout, version, message))
        for layout, message in (
            (OF_SUBSCRIPTION, SUBSCRIPTION),
            (OF_ASSIGNMENT, ASSIGNMENT),
        )
        for version in range(4)
    ]
    bodies = [data for _, _, data in sound]
    drawn = [
        (layout, version, spoil(choice, data, bodies))
        for layout, version, data in choice.choices(sound, k=DRAWN)
    ]
    asked = sound + drawn

    answers = referee.read_messages((layout.name, version, data) for layout, version, data in asked)

    for (layout, version, data), kafkas in zip(asked, answers, strict=True):
        try:
            message, _ = decode_from(layout, version, data, 0)
        except CorruptMessageError:
            assert "error" in kafkas, (layout.name, version, data.hex())
        else:
            assert json.loads(json_text(layout, version, message)) == json.loads(kafkas["json"])
    assert not any("error" in kafkas for kafkas in answers[: len(sound)])


@pytest.mark.referee
def test_groups_are_told_as_kafka_dump_log_does(
    referee: Referee, tmp_path: Path, seed: int
) -> None:
    choice = random.Random(f"{seed} classic groups")
    sound = [
        _written(layout, message, version)
        for layout, message in (
            (OF_SUBSCRIPTION, SUBSCRIPTION),
            (OF_ASSIGNMENT, ASSIGNMENT),
        )
        for version in (0, 1, 2, 3, 9, -1)
    ]
    pairs = [(choice.choice(sound), choice.choice(sound)) for _ in range(DRAWN)]
    spoiled = [(spoil(choice, one, sound), spoil(choice, two, sound)) for one, two in pairs]
    values = [_group(*choice.choices(pairs + spoiled, k=3)) for _ in range(DRAWN)]
    values.append(_group(pairs[0], protocol_type="connect"))
    log, target = tmp_path / f"{0:020d}.log", tmp_path / "lines"
    log.write_bytes(v2_batch(0, [(5, GROUP_KEY, value) for value in values]))

    referee.internal_records(OFFSETS_TOPIC, log, target)

    for value, line in zip(values, target.read_text().splitlines(), strict=True):
        told = json.loads(line)["value"]["members"]
        kafkas = [(one["subscription"], one["assignment"]) for one in told]
        for ours, theirs in zip(_members(value), kafkas, strict=True):
            assert ours == theirs
