"""The records of a group put in order: transactions, states of both protocols, what is spoilt."""

import struct

import pytest

from kafka_segments.kafka.messages.encoder import encode
from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.verbs.find.lag.decide.facts import GroupRecords, GroupState, Kind
from kafka_segments.verbs.find.lag.decide.whereabouts import Rules, explain
from kafka_segments.verbs.find.lag.group_records import Put, Record, put_in_order
from support.logs.group_logs import (
    ABORT,
    COMMIT,
    commit_key,
    commit_value,
    consumer_group,
    empty_classic_group,
    group_key,
    text,
)

PLACE, PRODUCER = ("t", 0), 7


def _put(*records: tuple[bytes | None, bytes | None, int | None, int | None]) -> Put:
    """Put records in order: key, value, producer and type of marker."""
    return put_in_order(
        Record(offset, 1_000 + offset, producer, control, key, value)
        for offset, (key, value, producer, control) in enumerate(records)
    )


def _commit(
    offset: int | None, producer: int | None = None, version: int = 3
) -> tuple[bytes | None, bytes | None, int | None, int | None]:
    value = None if offset is None else commit_value(offset, version)
    return commit_key("g"), value, producer, None


def _marker(kind: int) -> tuple[bytes | None, bytes | None, int | None, int | None]:
    return None, None, PRODUCER, kind


def _offsets(put: Put) -> list[int | None]:
    return [one.committed for one in put.commits.get(PLACE, ())]


def test_a_transaction_counts_where_its_records_lie_once_it_has_committed() -> None:
    ended = _put(_commit(1), _commit(2, PRODUCER), _commit(3), _marker(COMMIT))
    aborted = _put(_commit(2, PRODUCER), _marker(ABORT))
    still = _put(_commit(1), _commit(2, PRODUCER))
    deleted = _put(_commit(2, PRODUCER), _commit(None))

    assert (_offsets(ended), ended.pending) == ([1, 2, 3], {})
    assert (_offsets(aborted), PLACE in aborted.commits) == ([], True)
    assert (_offsets(still), still.pending[PLACE].committed) == ([1], 2)
    assert (_offsets(deleted), deleted.pending) == ([None], {})


def test_a_commit_has_what_its_version_tells() -> None:
    epochs = [one.leader_epoch for one in _put(_commit(1), _commit(1, version=0)).commits[PLACE]]
    timed = struct.pack(">hq", 1, 5) + text("m") + struct.pack(">qq", 20, 30)

    (commit,) = _put((commit_key("g"), timed, None, None)).commits[PLACE]

    assert epochs == [7, None]
    assert (commit.committed, commit.metadata) == (5, "m")
    assert (commit.commit_ms, commit.expire_ms) == (20, 30)


@pytest.mark.parametrize("version", [1, 3])
def test_a_classic_group_tells_since_when_it_is_empty_and_a_tombstone_that_it_is_gone(
    version: int,
) -> None:
    empty = (group_key("g"), empty_classic_group(version), None, None)
    (state, gone) = _put(empty, (group_key("g"), None, None, None)).states

    assert (state.kind, state.members, state.protocol_type) == (Kind.CLASSIC, 0, "consumer")
    assert state.since_ms == (None if version == 1 else 1_700_000_000_000)
    assert (gone.kind, gone.timestamp_ms) == (Kind.GONE, 1_001)


def test_members_of_a_classic_group_tell_their_topics_if_they_are_consumers() -> None:
    said = {"topics": ["t", "u"], "userData": None, "ownedPartitions": []}
    subscription = b"\0\1" + encode(LAYOUTS["ConsumerProtocolSubscription"], 1, said)
    member = {
        **{"memberId": "m", "groupInstanceId": None, "clientId": "c", "clientHost": "/h"},
        **{"rebalanceTimeout": 1, "sessionTimeout": 2},
        **{"subscription": subscription, "assignment": b""},
    }
    group = {"generation": 1, "protocol": "range", "leader": "m", "currentStateTimestamp": 5}

    def state(protocol_type: str) -> GroupState:
        value = {**group, "protocolType": protocol_type, "members": [member]}
        written = b"\0\3" + encode(LAYOUTS["GroupMetadataValue"], 3, value)
        return _put((group_key("g"), written, None, None)).states[0]

    assert (state("consumer").members, state("consumer").subscribed) == (1, frozenset("tu"))
    assert (state("connect").protocol_type, state("connect").subscribed) == ("connect", None)


def test_a_pending_commit_that_cannot_be_decoded_is_told_so() -> None:
    put = _put(_commit(1), (commit_key("g"), b"\0\3\0", PRODUCER, None))

    found = explain(PLACE, GroupRecords(put.commits, put.pending), Rules(None, {}))

    assert found.why.startswith("not known: OffsetCommitValue.offset is cut off")
    assert found.why.endswith(", since 1970-01-01 00:00:01.001 UTC")


def test_a_member_that_cannot_be_decoded_leaves_its_group_in_doubt_until_it_can() -> None:
    keys = [b"\0\5" + text("g") + text(name) for name in ("a", "b")]
    records = [(keys[0], b"\0\0\1"), (keys[1], _member(["t"])), (keys[0], _member(["u"]))]

    states = _put(*((*one, None, None) for one in records)).states

    assert [one.kind for one in states] == [Kind.GARBLED, Kind.GARBLED, Kind.MODERN]
    assert states[-1].members == 2


def _member(topics: list[str], pattern: str | None = None) -> bytes:
    said = {
        **{"instanceId": None, "rackId": None, "clientId": "c", "clientHost": "h"},
        **{"subscribedTopicNames": topics, "subscribedTopicRegex": pattern},
        **{"rebalanceTimeoutMs": 1, "serverAssignor": None, "classicMemberMetadata": None},
    }
    return b"\0\0" + encode(LAYOUTS["ConsumerGroupMemberMetadataValue"], 0, said)


def test_a_newer_group_has_the_members_and_topics_of_their_last_records() -> None:
    def member(
        name: str, value: bytes | None
    ) -> tuple[bytes | None, bytes | None, int | None, int | None]:
        return group_key("g", 5) + text(name), value, None, None

    states = _put(
        (group_key("g", 3), consumer_group(1), None, None),
        member("a", _member(["t"])),
        member("b", _member(["u"])),
        member("a", None),
        member("c", _member([], "x.*")),
        (group_key("g", 3), None, None, None),
    ).states

    assert [(one.kind, one.members, one.subscribed) for one in states[:5]] == [
        (Kind.MODERN, 0, frozenset()),
        (Kind.MODERN, 1, frozenset({"t"})),
        (Kind.MODERN, 2, frozenset({"t", "u"})),
        (Kind.MODERN, 1, frozenset({"u"})),
        (Kind.MODERN, 2, None),
    ]
    assert states[5].kind == Kind.GONE


def test_what_cannot_be_decoded_is_told_with_its_offset_and_unknown_kinds_are_passed_over() -> None:
    put = _put(_commit(1), (commit_key("g")[:-2], b"", None, None), (b"\0\x63x", b"", None, None))

    assert _offsets(put) == [1]
    assert [offset for offset, _ in put.problems] == [1]


def test_what_has_a_key_and_cannot_be_decoded_is_a_record_of_that_key() -> None:
    garbled = b"\0\3x"
    state = (group_key("g"), garbled, None, None)
    put = _put(_commit(1), (commit_key("g"), garbled, None, None), state)

    assert put.problems == []
    assert [one.kind for one in put.states] == [Kind.GARBLED]
    ((first, last),) = put.commits.values()
    assert (first.committed, last.committed, first.problem) == (1, None, None)
    assert last.problem is not None
    told = explain(("t", 0), GroupRecords(put.commits, lost_until=0), Rules(None, {}))
    assert (told.where, told.is_lost, told.current) == ("not known", True, None)
