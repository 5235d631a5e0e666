"""What the records of ``__consumer_offsets`` say about one group, put in order."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kafka_segments.kafka.messages.decoder import Message
from kafka_segments.kafka.messages.records import COMMITS, InternalRecord, decode_internal
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.lag.decide.facts import Commit, GroupState, Kind, Place

_COMMIT_MARKER = 1
_MODERN = ("ConsumerGroup", "StreamsGroup")


class Record(NamedTuple):
    """A record of the group's, or a marker: then ``control_type`` says which.

    ``producer_id`` None: it counts without a marker.
    """

    offset: int
    timestamp_ms: int
    producer_id: int | None
    control_type: int | None
    key: bytes | None
    value: bytes | None


class Put(NamedTuple):
    """What records say about a group.

    ``problems``: by offset, why it is not known whether a record is of the group.
    """

    commits: dict[Place, list[Commit]]
    pending: dict[Place, Commit]
    states: list[GroupState]
    problems: list[tuple[int, str]]


class Doubted(NamedTuple):
    """A key of the group's that has another record in another copy; ``why`` tells of both."""

    offset: int
    timestamp_ms: int
    kind: str
    key: dict[str, Any]
    why: str


def put_in_order(records: Iterable[Record], doubted: Sequence[Doubted] = ()) -> Put:
    """Return what records say about a group; they come in the order of the log.

    ``doubted``, in that order, too, stand in the place of the records at their offsets.
    """
    group, left = _Group(), list(reversed(doubted))
    offsets = {one.offset for one in doubted}
    for record in records:
        while left and left[-1].offset <= record.offset:
            group.doubt(left.pop())
        if record.offset not in offsets:
            group.take(record)
    for one in reversed(left):
        group.doubt(one)
    return group.found()


class _Group:
    """Takes one record after another, and keeps what transactions have not ended."""

    def __init__(self) -> None:
        self._commits: dict[Place, list[Commit]] = {}
        self._open: dict[int, list[tuple[Place, Commit]]] = {}
        self._states: list[GroupState] = []
        self._problems: list[tuple[int, str]] = []
        self._subscribed: dict[str, frozenset[str] | None] = {}
        self._garbled: set[tuple[str, str]] = set()

    def found(self) -> Put:
        """Return what all of them said; a transaction's commit lies where its record does."""
        for commits in self._commits.values():
            commits.sort(key=lambda one: one.record_offset)
        pending = {place: one for some in self._open.values() for place, one in some}
        still = {place: one for place, one in pending.items() if not self._is_past(place, one)}
        return Put(self._commits, still, self._states, self._problems)

    def _is_past(self, place: Place, pending: Commit) -> bool:
        """Tell whether a tombstone took a pending commit away."""
        return any(
            one.committed is None and one.record_offset > pending.record_offset
            for one in self._commits.get(place, ())
        )

    def take(self, record: Record) -> None:
        """Take a record."""
        if record.control_type is not None:
            ended = self._open.pop(record.producer_id or 0, [])
            for place, commit in ended:
                commits = self._commits.setdefault(place, [])
                if record.control_type == _COMMIT_MARKER:
                    commits.append(commit)
            return
        said = decode_internal(OFFSETS_TOPIC, record.key, record.value)
        if said.key is None:
            if said.problem is not None:  # else of a kind that 4.3 has not
                self._problems.append((record.offset, said.problem))
        elif said.kind in COMMITS:
            place = (str(said.key["topic"]), int(said.key["partition"]))
            commit = _commit(record, said)
            if record.producer_id is None:
                self._commits.setdefault(place, []).append(commit)
            else:
                self._open.setdefault(record.producer_id, []).append((place, commit))
        else:
            self._take_state(record, said)

    def doubt(self, one: Doubted) -> None:
        """Take a key of which it is not known what a record says."""
        if one.kind in COMMITS:
            place = (str(one.key["topic"]), int(one.key["partition"]))
            commit = Commit(one.offset, one.timestamp_ms, problem=one.why)
            self._commits.setdefault(place, []).append(commit)
        elif _is_of_state(one.kind):
            self._garble(one.offset, one.timestamp_ms, one.kind, one.key)

    def _garble(self, offset: int, timestamp_ms: int, kind: str, key: Message) -> None:
        """Take a record of the group's state that tells nothing; a later one of its key does."""
        self._garbled.add(_identity(kind, key))
        self._states.append(GroupState(offset, timestamp_ms, Kind.GARBLED))

    def _take_state(self, record: Record, said: InternalRecord) -> None:
        if said.key is None or not _is_of_state(said.kind):
            return
        if said.problem is not None:
            self._garble(record.offset, record.timestamp_ms, said.kind, said.key)
            return
        self._garbled.discard(_identity(said.kind, said.key))
        if said.kind == "GroupMetadata":
            self._states.append(_classic(record, said))
            return
        if said.kind.endswith("GroupMetadata"):
            kind = Kind.GONE if said.value is None else Kind.MODERN
        else:
            kind = Kind.MODERN
            self._subscribed.pop(str(said.key["memberId"]), None)
            if said.value is not None:
                self._subscribed[str(said.key["memberId"])] = _topics_of(said.value)
        if self._garbled:  # of another member, or the group as a whole
            kind = Kind.GARBLED
        self._states.append(
            GroupState(
                record.offset,
                record.timestamp_ms,
                kind,
                len(self._subscribed),
                record.timestamp_ms,
                subscribed=_all(self._subscribed.values()),
            )
        )


def _identity(kind: str, key: Message) -> tuple[str, str]:
    """Return what names a key, whatever types its values have."""
    return kind, json.dumps(key, sort_keys=True, default=str)


def _is_of_state(kind: str) -> bool:
    """Tell whether records of a kind say what a group is."""
    is_modern = kind.startswith(_MODERN) and kind.endswith(("GroupMetadata", "MemberMetadata"))
    return kind == "GroupMetadata" or is_modern


def _commit(record: Record, said: InternalRecord) -> Commit:
    value = said.value
    if value is None:
        return Commit(record.offset, record.timestamp_ms, problem=said.problem)
    expires, epoch = value.get("expireTimestamp", -1), value.get("leaderEpoch", -1)
    return Commit(
        record.offset,
        record.timestamp_ms,
        int(value["offset"]),
        int(value["commitTimestamp"]),
        expires if expires >= 0 else None,
        epoch if epoch >= 0 else None,
        str(value["metadata"]),
    )


def _classic(record: Record, said: InternalRecord) -> GroupState:
    """Return the state of a classic group; without that field it is as old as Kafka takes it."""
    if said.value is None:
        return GroupState(record.offset, record.timestamp_ms, Kind.GONE)
    since = said.value.get("currentStateTimestamp", -1)
    members = json.loads(said.value_json() or "{}")
    return GroupState(
        record.offset,
        record.timestamp_ms,
        Kind.CLASSIC,
        len(said.value["members"]),
        since if since >= 0 else None,
        str(said.value["protocolType"]),
        _all(_topics_of_classic(member) for member in members["members"]),
    )


def _topics_of_classic(member: dict[str, Any]) -> frozenset[str] | None:
    said = member["subscription"]
    return frozenset(said["topics"]) if isinstance(said, dict) else None


def _topics_of(member: Message) -> frozenset[str] | None:
    """Return the topics of a member; None: a pattern chooses some, or its topology does."""
    if "subscribedTopicNames" not in member or member.get("subscribedTopicRegex"):
        return None
    return frozenset(member["subscribedTopicNames"])


def _all(members: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: set[str] = set()
    for topics in members:
        if topics is None:
            return None
        found |= topics
    return frozenset(found)
