"""Committed offsets of __consumer_offsets, by hand and against the group coordinator's code."""

from base64 import urlsafe_b64decode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_segments.kafka.broker_rules.consumer_groups import group_partition
from kafka_segments.kafka.messages.layout import ZERO_UUID
from kafka_segments.kafka.messages.records import decode_commit
from support.kafka.kafka_referee import Referee

KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
TIME = "0000000000002328"
OFFSET = "00000000000003ee"
TOPIC_ID = "000102030405060708090a0b0c0d0e0f"
VALUES = {
    0: f"0000 {OFFSET} 0001 6d {TIME}",
    1: f"0001 {OFFSET} 0001 6d {TIME} 0000000000002329",
    2: f"0002 {OFFSET} 0001 6d {TIME}",
    3: f"0003 {OFFSET} 00000005 0001 6d {TIME}",
    4: f"0004 {OFFSET} 00000005 02 6d {TIME} 01 00 10 {TOPIC_ID}",
}


def read(key: bytes, value: bytes) -> dict[str, Any] | None:
    """Give a commit in the referee's words; None where it is refused."""
    commit = decode_commit(key, value)
    assert commit is not None
    if commit.key is None or commit.value is None:
        assert commit.problem
        return None
    topic_id = commit.value.get("topicId", ZERO_UUID)  # type 0 has fewer fields
    return {
        **commit.key,
        "offset": commit.value["offset"],
        "leader_epoch": commit.value.get("leaderEpoch", -1),
        "metadata": commit.value["metadata"],
        "commit_timestamp_ms": commit.value["commitTimestamp"],
        "expire_timestamp_ms": commit.value.get("expireTimestamp", -1),
        "topic_id": None if topic_id == ZERO_UUID else urlsafe_b64decode(topic_id + "==").hex(),
    }


@st.composite
def commits(draw: st.DrawFn) -> dict[str, Any]:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    int64 = st.integers(-(2**63), 2**63 - 1)
    version = draw(st.integers(0, 4))
    topic_id = draw(st.binary(min_size=16, max_size=16).filter(any))
    return {
        "version": version,
        "group": draw(text),
        "topic": draw(text),
        "partition": draw(st.integers(-(2**31), 2**31 - 1)),
        "offset": draw(int64),
        "metadata": draw(text | st.just("m" * 300)),
        "commit_timestamp_ms": draw(int64),
        "leader_epoch": draw(st.integers(-1, 2**31 - 1)) if version >= 3 else -1,
        "expire_timestamp_ms": draw(int64) if version == 1 else -1,
        "topic_id": draw(st.sampled_from([None, topic_id.hex()])) if version == 4 else None,
    }


@pytest.mark.parametrize("version", sorted(VALUES))
def test_values_of_every_version_are_read(version: int) -> None:
    assert read(KEY, bytes.fromhex(VALUES[version])) == {
        "group": "g",
        "topic": "t",
        "partition": 3,
        "offset": 1006,
        "leader_epoch": 5 if version >= 3 else -1,
        "metadata": "m",
        "commit_timestamp_ms": 9000,
        "expire_timestamp_ms": 9001 if version == 1 else -1,
        "topic_id": TOPIC_ID if version == 4 else None,
    }


@pytest.mark.parametrize("key_version", [0, 1])
def test_hand_made_records_are_read_as_the_coordinator_reads_them(
    referee: Referee, key_version: int
) -> None:
    key = key_version.to_bytes(2, "big") + KEY[2:]
    values = [bytes.fromhex(VALUES[version]) for version in range(5 if key_version else 1)]

    ours = [read(key, value) for value in values]

    assert ours == referee.read_commits([(key, value) for value in values])


@settings(max_examples=20)
@given(many=st.lists(commits(), min_size=20, max_size=40), partitions=st.sampled_from([1, 7, 50]))
def test_what_the_coordinator_writes_is_read_back(
    referee: Referee, many: list[dict[str, Any]], partitions: int
) -> None:
    records = referee.write_commits(many, partitions)

    for commit, record in zip(many, records, strict=True):
        ours = read(bytes.fromhex(record["key"]), bytes.fromhex(record["value"]))
        assert ours is not None
        assert {**ours, "version": commit["version"]} == commit
        assert group_partition(commit["group"], partitions) == record["partition"]


@settings(max_examples=15)
@given(data=st.data())
def test_cut_and_spoiled_values_are_refused_where_the_coordinator_refuses(
    referee: Referee, data: st.DataObject
) -> None:
    spoiled = []
    for _ in range(40):
        value = bytearray.fromhex(VALUES[data.draw(st.integers(0, 4))])
        del value[data.draw(st.integers(2, len(value))) :]
        if len(value) > 2 and data.draw(st.booleans()):
            value[data.draw(st.integers(2, len(value) - 1))] = data.draw(st.integers(0, 255))
        value += data.draw(st.binary(max_size=3))
        spoiled.append(bytes(value))

    kafkas = referee.read_commits([(KEY, value) for value in spoiled])

    assert [read(KEY, value) for value in spoiled] == [
        None if "error" in answer else answer for answer in kafkas
    ]


def test_keys_of_other_records_are_passed_over() -> None:
    assert [
        decode_commit(bytes.fromhex(key), b"no value") for key in ("0002 0001 67", "0003", "7fff")
    ] == [None, None, None]


def test_a_key_that_is_cut_off_is_a_problem() -> None:
    for key in ("", "00", "0001", "0001 0001 67 0074 74 00000003"):
        commit = decode_commit(bytes.fromhex(key), None)
        assert commit is not None
        assert commit.problem


def test_the_partition_of_a_group_is_that_of_javas_hash() -> None:
    assert group_partition("", 50) == 0
    assert group_partition("polygenelubricants", 50) == 0  # its hash is the least of all
