"""Every message that Kafka 4.3.1 writes to a log, against Kafka's own classes and JSON."""

import json
import random
from itertools import product
from typing import Any

import pytest

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages import control, messages
from kafka_segments.kafka.messages.decoder import decode_from
from kafka_segments.kafka.messages.encoder import encode
from kafka_segments.kafka.messages.json_form import json_text
from kafka_segments.kafka.messages.layout import Layout, versions_of
from kafka_segments.kafka.messages.records import (
    INTERNAL_TOPICS,
    REMOTE_LOG_TOPIC,
    SHARES_TOPIC,
    TRANSACTIONS_TOPIC,
    decode_internal,
)
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC
from support.kafka.kafka_referee import Answer, Referee
from support.logs.spoiled_bytes import spoil

ROUNDS = 40
SPOILED_ROUNDS = 20
# Bytes inside of a classic group's member, and a file beside a log: no records.
NO_RECORDS = {"ConsumerProtocolAssignment", "ConsumerProtocolSubscription", "ProducerSnapshot"}
KEYED = {
    OFFSETS_TOPIC: messages.GROUPS,
    TRANSACTIONS_TOPIC: messages.TRANSACTIONS,
    SHARES_TOPIC: messages.SHARES,
}
LAYOUTS: dict[str | None, list[Layout]] = {
    METADATA_TOPIC: list(messages.METADATA),
    REMOTE_LOG_TOPIC: list(messages.REMOTE_LOG),
    **{topic: [layout for pair in pairs for layout in pair] for topic, pairs in KEYED.items()},
    None: [control.TYPE_SCHEMA, *set(control.RECORDS.values())],
}
BY_NAME = {layout.name: layout for layouts in LAYOUTS.values() for layout in layouts}
FRAME_BYTES = {METADATA_TOPIC: 3, REMOTE_LOG_TOPIC: 3, **dict.fromkeys(KEYED, 2)}


@pytest.fixture(scope="module")
def drawn(referee: Referee, seed: int) -> list[Answer]:
    """Records of every type in every version."""
    return referee.draw_messages(seed, ROUNDS)


def in_order(text: str | None) -> Any:
    """Read JSON; objects are lists of pairs, so that their order counts."""
    return None if text is None else json.loads(text, object_pairs_hook=list)


def unhexed(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def message_of(record: Answer) -> tuple[Layout, int, bytes]:
    """Give layout, version and bytes of a drawn record's value, without what comes before them."""
    layout = BY_NAME.get(record["kind"] + "Value") or BY_NAME[record["kind"]]
    before = FRAME_BYTES[record["topic"]] if layout.type_id is not None else 0
    before = 2 if layout is control.END_TXN_MARKER else before
    return layout, record["version"], bytes.fromhex(record["value"])[before:]


def test_no_message_of_kafka_and_no_version_is_missing(referee: Referee) -> None:
    ours = {
        (topic, layout.name, layout.type_id, versions_of(layout.versions))
        for topic, layouts in LAYOUTS.items()
        for layout in layouts
    }

    kafkas = {
        (kind["topic"], kind["name"], kind["type_id"], range(kind["lowest"], kind["highest"] + 1))
        for kind in referee.message_types()
        if kind["name"] not in NO_RECORDS
    }

    assert ours == kafkas
    assert set(LAYOUTS) - {None} == set(INTERNAL_TOPICS)


def test_drawn_records_cover_every_type_and_version(drawn: list[Answer]) -> None:
    with_values = [record for record in drawn if record["value"] is not None]

    assert {(record["kind"], record["version"]) for record in with_values} == {
        (layout.name.removesuffix("Value"), version)
        for layout in BY_NAME.values()
        if not layout.name.endswith(("Key", "Schema"))
        for version in versions_of(layout.versions)
    }
    assert len(drawn) > 2_000


def test_every_record_is_the_json_that_kafka_makes_of_it(drawn: list[Answer]) -> None:
    for record in drawn:
        ours = decode_internal(record["topic"], unhexed(record["key"]), unhexed(record["value"]))

        assert (ours.kind, ours.type_id, ours.value_version, ours.problem) == (
            record["kind"],
            record["type_id"],
            record["version"],
            None,
        )
        assert in_order(ours.key_json()) == in_order(record["key_json"])
        assert in_order(ours.value_json()) == in_order(record["value_json"])


def test_every_message_is_written_again_as_kafka_wrote_it(drawn: list[Answer]) -> None:
    for record in drawn:
        if record["value"] is None:
            continue
        layout, version, data = message_of(record)
        if layout is not control.END_TXN_MARKER or version == 0:  # others are read as version 0
            assert encode(layout, version, decode_from(layout, version, data, 0)[0]) == data, record


def test_spoiled_messages_are_read_or_refused_as_kafka_does(
    referee: Referee, drawn: list[Answer], seed: int
) -> None:
    choice = random.Random(f"{seed} messages")
    sound = [message_of(record) for record in drawn if record["value"] is not None]
    bodies = [data for _, _, data in sound if len(data) < 2_000]
    asked = [
        (layout, version, spoil(choice, data[:2_000], bodies))
        for layout, version, data in sound[: SPOILED_ROUNDS * len(sound) // ROUNDS]
    ]

    answers = referee.read_messages((layout.name, version, data) for layout, version, data in asked)

    for (layout, version, data), kafkas in zip(asked, answers, strict=True):
        try:
            message, end = decode_from(layout, version, data, 0)
        except CorruptMessageError as refusal:
            assert "error" in kafkas, (layout.name, version, data.hex(), str(refusal), kafkas)
        else:
            assert "error" not in kafkas, (layout.name, version, data.hex(), message, kafkas)
            text = json_text(layout, version, message)
            assert in_order(text) == in_order(kafkas["json"]), (layout.name, version, data.hex())
            assert len(data) - end == kafkas["left"]
    assert 0.1 < sum("error" in kafkas for kafkas in answers) / len(answers) < 0.99


def test_a_record_cut_at_any_byte_is_a_problem(drawn: list[Answer]) -> None:
    shortest: dict[tuple[str, int], Answer] = {}
    for record in drawn:
        if record["value"] is not None:
            name = (record["kind"], record["version"])
            shortest[name] = min(shortest.get(name, record), record, key=lambda r: len(r["value"]))
    for record in shortest.values():
        key, value = unhexed(record["key"]), bytes.fromhex(record["value"])
        for end in range(len(value)):
            cut = decode_internal(record["topic"], key, value[:end])

            assert cut.problem, (record["kind"], end)
            assert cut.value is None
    assert len(shortest) > 60


def test_any_bytes_after_a_frame_give_a_value_or_a_problem(seed: int) -> None:
    choice = random.Random(f"{seed} any")
    for layout, _ in product(BY_NAME.values(), range(40)):
        for version in versions_of(layout.versions):
            length = choice.choice((0, 1, 5, 40, 300))
            data = choice.randbytes(length)
            if choice.random() < 0.5:
                data = bytes(choice.choice((0, 1, 2, 255)) for _ in range(length))
            try:
                message, end = decode_from(layout, version, data, 0)
            except CorruptMessageError as refusal:
                assert str(refusal).startswith(layout.name)
            else:
                assert end <= len(data)
                assert json_text(layout, version, message)
