"""What records of ``__consumer_offsets`` say about a group, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

Place = tuple[str, int]
"""A topic and a partition."""


class Commit(NamedTuple):
    """A record about a partition that a group reads.

    Attributes:
        record_offset: In ``__consumer_offsets``.
        timestamp_ms: Of the record; below 0: it has none.
        committed: The offset; None: a tombstone, or ``problem``.
        commit_ms: When it was committed.
        expire_ms: When it expires by itself, as a client before 2.1 asked for; None: by the broker.
        leader_epoch: Of the last record that was consumed; None: not told.
        metadata: What the client wrote beside it.
        problem: Why the value tells nothing; None: it does.
    """

    record_offset: int
    timestamp_ms: int
    committed: int | None = None
    commit_ms: int = -1
    expire_ms: int | None = None
    leader_epoch: int | None = None
    metadata: str = ""
    problem: str | None = None


class Kind(StrEnum):
    """What a group is, as far as its offsets go by it."""

    CLASSIC = "classic group"
    MODERN = "group of the newer protocol"
    GONE = "deleted"
    GARBLED = "not readable"


class GroupState(NamedTuple):
    """What a group is from a record on.

    Attributes:
        record_offset: In ``__consumer_offsets``.
        timestamp_ms: Of the record.
        kind: Of group; GONE: its record has a tombstone; GARBLED: it tells nothing.
        members: How many it has.
        since_ms: Since when it is in that state; None: not told.
        protocol_type: Of a classic group: ``consumer``, another, or empty.
        subscribed: The topics that its members subscribe; None: not known.
    """

    record_offset: int
    timestamp_ms: int
    kind: Kind
    members: int = 0
    since_ms: int | None = None
    protocol_type: str = "consumer"
    subscribed: frozenset[str] | None = None


@dataclass(frozen=True)
class GroupRecords:
    """What was read about a group, in the order of the log.

    Attributes:
        commits: By their partitions, without those of transactions that did not end in COMMIT; of a
            partition that has but such ones none.
        pending: Commits whose transaction has not ended, by their partitions.
        states: Of the group.
        complete_from: The offset from which on no record was compacted away; None: nowhere.
        complete_from_ms: That part's first timestamp.
        lost_until: The last offset that could not be read; None: none.
        lost_why: Why not.
    """

    commits: Mapping[Place, Sequence[Commit]]
    pending: Mapping[Place, Commit] = field(default_factory=dict)
    states: Sequence[GroupState] = ()
    complete_from: int | None = 0
    complete_from_ms: int | None = None
    lost_until: float | None = None
    lost_why: str = ""

    @property
    def is_there(self) -> bool:
        """Whether there is any record about the group."""
        return bool(self.commits or self.pending or self.states)
