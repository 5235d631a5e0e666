"""Records of internal topics, made by hand: what is read, and what is said of bad bytes."""

import json
import pickle

import pytest

from kafka_segments.errors import CorruptMessageError
from kafka_segments.kafka.messages.records import (
    REMOTE_LOG_TOPIC,
    SHARES_TOPIC,
    TRANSACTIONS_TOPIC,
    UNKNOWN,
    InternalRecord,
    decode_internal,
)
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC

TOPIC_ID = "000102030405060708090a0b0c0d0e0f"
TOPIC_TEXT = "AAECAwQFBgcICQoLDA0ODw"
COMMIT_KEY = "0001 0001 67 0001 74 00000003"
COMMIT = "0004 00000000000003ee 00000005 02 6d 0000000000002328 01 00 10" + TOPIC_ID
PARTITION = f"01 03 00 00000007 {TOPIC_ID} 02 00000001 02 00000001 01 01 00000001 00000000 00000000"


def decoded(topic: str, key: str | None, value: str | None, **more: bool) -> InternalRecord:
    key_bytes, value_bytes = (
        None if text is None else bytes.fromhex(text) for text in (key, value)
    )
    return decode_internal(topic, key_bytes, value_bytes, **more)


def test_a_committed_offset_is_read_with_its_topic_id() -> None:
    record = decoded(OFFSETS_TOPIC, COMMIT_KEY, COMMIT)

    assert (record.kind, record.type_id) == ("OffsetCommit", 1)
    assert (record.key_version, record.value_version, record.problem) == (1, 4, None)
    assert record.key_json() == '{"group":"g","topic":"t","partition":3}'
    assert record.value == {
        "offset": 1006,
        "leaderEpoch": 5,
        "metadata": "m",
        "commitTimestamp": 9000,
        "expireTimestamp": -1,
        "topicId": TOPIC_TEXT,
    }
    assert "expireTimestamp" not in json.loads(record.value_json() or "")


def test_a_metadata_record_is_read_behind_its_frame() -> None:
    record = decoded(METADATA_TOPIC, None, PARTITION + "01 00 01 02")

    assert (record.kind, record.type_id, record.value_version) == ("PartitionRecord", 3, 0)
    assert record.problem is None
    assert record.value is not None
    assert (record.value["topicId"], record.value["leaderRecoveryState"]) == (TOPIC_TEXT, 2)
    assert (record.value["directories"], record.value["lastKnownElr"]) == ([], None)


def test_fields_of_unknown_tags_are_kept_and_not_in_the_json() -> None:
    record = decoded(METADATA_TOPIC, None, PARTITION + "01 63 02 abcd")

    assert record.value is not None
    assert record.value["_unknownTaggedFields"] == [{"tag": 99, "data": b"\xab\xcd"}]
    assert "agged" not in (record.value_json() or "agged")


def test_a_tombstone_has_a_key_and_no_value() -> None:
    record = decoded(OFFSETS_TOPIC, COMMIT_KEY, None)

    assert (record.kind, record.value, record.problem) == ("OffsetCommit", None, None)
    assert record.value_json() is None


@pytest.mark.parametrize(
    ("topic", "key", "value", "type_id", "version"),
    [
        (OFFSETS_TOPIC, "03e7 01", "0002 01", 999, 2),
        (TRANSACTIONS_TOPIC, "0001", None, 1, None),
        (METADATA_TOPIC, None, "01 4d 02 aa", 77, 2),
        (METADATA_TOPIC, "0000 0063", "00", 99, None),
    ],
)
def test_types_that_are_not_known_are_no_damage(
    topic: str, key: str | None, value: str | None, type_id: int, version: int | None
) -> None:
    record = decoded(topic, key, value)

    assert (record.kind, record.type_id, record.value_version) == (UNKNOWN, type_id, version)
    assert (record.value, record.problem) == (None, None)


def test_the_end_of_a_transaction_is_a_control_record_of_any_topic() -> None:
    abort, commit = (
        decoded(OFFSETS_TOPIC, f"0000 000{end}", "0007 00000005 ff", is_control=True)
        for end in (0, 1)
    )

    assert (abort.kind, abort.type_id, commit.type_id) == ("EndTxnMarker", 0, 1)
    assert (commit.value, commit.value_json()) == (
        {"coordinatorEpoch": 5},
        '{"coordinatorEpoch":5}',
    )


@pytest.mark.parametrize(
    ("topic", "key", "value", "problem"),
    [
        (OFFSETS_TOPIC, None, "00", "the key's version needs 2 bytes, it is null (at byte 0)"),
        (OFFSETS_TOPIC, "00", "", "the key's version needs 2 bytes, 1 bytes are there (at byte 0)"),
        (
            OFFSETS_TOPIC,
            "0001 0001 67 0074 74",
            None,
            "OffsetCommitKey.topic says 116 bytes, 1 are left (at byte 5)",
        ),
        (
            OFFSETS_TOPIC,
            COMMIT_KEY,
            "0005",
            "OffsetCommitValue has version 5, 0-4 is known (at byte 2)",
        ),
        (
            METADATA_TOPIC,
            None,
            PARTITION,
            "PartitionRecord.tagged fields is cut off, 0 bytes are left (at byte 47)",
        ),
        (
            METADATA_TOPIC,
            None,
            PARTITION + "01 01 01 00",
            "PartitionRecord.tagged fields hold tag 1, which this version does not have"
            " (at byte 48)",
        ),
        (METADATA_TOPIC, None, PARTITION + "00 00", "PartitionRecord is followed by 1 bytes"),
        (METADATA_TOPIC, None, "00 03 00", "the frame's version is 0, 1 expected"),
        (METADATA_TOPIC, None, "01 ffffffffff01", "the record's type has a varint of more"),
        (METADATA_TOPIC, None, None, "the record has neither key nor value"),
        (METADATA_TOPIC, "ffff 0002", "0000", "the key's version is -1, 0 or more expected"),
        (REMOTE_LOG_TOPIC, None, "01 00", "the record's version is cut off (at byte 2)"),
        (SHARES_TOPIC, "0000 ffff", None, "ShareSnapshotKey.groupId has length -1: null, which"),
    ],
)
def test_what_is_wrong_is_said(
    topic: str, key: str | None, value: str | None, problem: str
) -> None:
    record = decoded(topic, key, value)

    assert record.value is None
    assert (record.problem or "").startswith(problem)


def test_the_error_survives_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(CorruptMessageError("A.b", "is cut off", 7)))

    assert str(error) == "A.b is cut off (at byte 7)"
