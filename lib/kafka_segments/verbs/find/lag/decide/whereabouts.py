"""Where the offsets of a group went: what its records in ``__consumer_offsets`` are evidence of.

1. A commit counts until a record with its key and no value, a tombstone, follows. One of a producer
   counts from its COMMIT marker on, one whose marker is ABORT never.
2. A coordinator writes tombstones where an offset expires, where its topic or its group is deleted,
   and where a person deletes it. The records do not say which. A topic that was deleted at that
   time tells it; else an offset that was old enough has expired, and a younger one was deleted.
3. An offset's age counts from when its group became empty, if that is a classic one; else from its
   commit. Neither expires as long as members subscribe its topic. A client before 2.1 could give it
   a time of its own.
4. What compaction removed is not seen: without the commit in front of a tombstone its age is not
   known, and without any record there may have been one.

Source: ClassicGroup, ConsumerGroup and StreamsGroup.offsetExpirationCondition, isSubscribedToTopic;
OffsetExpirationConditionImpl; OffsetMetadataManager.cleanupExpiredOffsets, onPartitionsDeleted,
deleteAllOffsets; GroupMetadataManager (4.3.1). KIP-211, KIP-848.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from kafka_segments.kafka.text.moments import moment_text
from kafka_segments.verbs.find.lag.decide.facts import (
    Commit,
    GroupRecords,
    GroupState,
    Kind,
    Place,
)

DEFAULT_RETENTION_MS = 7 * 24 * 60 * 60_000
_SOON_MS = 60_000  # until a coordinator writes the tombstones of a deletion
_SKEW_MS = 5_000  # by which its clock may be behind the controller's
_MINUTE_MS = 60_000
_NO_OFFSET = -1


class Whereabouts(StrEnum):
    """Where an offset is, or went."""

    COMMITTED = "committed"
    PENDING = "in an open transaction"
    EXPIRED = "expired"
    TOPIC_DELETED = "deleted with its topic"
    GROUP_DELETED = "deleted with its group"
    DELETED = "deleted"
    NEVER = "never committed"
    NOT_KNOWN = "not known"


class Explained(NamedTuple):
    """Where a group's offset of a partition is, and why.

    Attributes:
        where: It is, or went.
        why: In words.
        last: The last commit that counted; None: none is left.
        gone_ms: When it went; None: it did not, or no tombstone is left.
        aged_from_ms: From when its age counted, by which it expired or did not.
        is_lost: What follows the records about it could not be read.
    """

    where: Whereabouts
    why: str = ""
    last: Commit | None = None
    gone_ms: int | None = None
    aged_from_ms: int | None = None
    is_lost: bool = False

    @property
    def current(self) -> int | None:
        """The offset now; None: there is none, or ``is_lost``."""
        if self.where not in (Whereabouts.COMMITTED, Whereabouts.PENDING) or self.last is None:
            return None
        return None if self.last.committed == _NO_OFFSET else self.last.committed


class Rules(NamedTuple):
    """What is known of the cluster besides the group's records.

    ``retention_ms``: offsets.retention.minutes in ms; None: not known. ``deletions``: when topics
    were deleted, by their names, in ms.
    """

    retention_ms: int | None
    deletions: Mapping[str, Sequence[int]]


def explain(place: Place, records: GroupRecords, rules: Rules) -> Explained:
    """Say where a group's offset of a partition is."""
    commits = records.commits.get(place, ())
    last = commits[-1] if commits else None
    found = _explained(place, commits, records, rules)
    seen = -1 if last is None else last.record_offset
    if last is not None and last.problem is not None:
        why = f"its last commit tells nothing: {last.problem}"
        return found._replace(where=Whereabouts.NOT_KNOWN, why=why, is_lost=True)
    if records.lost_until is not None and seen < records.lost_until:
        return found._replace(where=Whereabouts.NOT_KNOWN, why=records.lost_why, is_lost=True)
    return found


def _explained(
    place: Place, commits: Sequence[Commit], records: GroupRecords, rules: Rules
) -> Explained:
    kept = next((one for one in reversed(commits) if one.committed is not None), None)
    pending = records.pending.get(place)
    if pending is not None:
        is_told = pending.problem is None
        told = f"offset {pending.committed}" if is_told else f"not known: {pending.problem}"
        told = f"{told}, since {moment_text(pending.timestamp_ms)}"
        current = kept if commits and commits[-1].committed is not None else None
        return Explained(Whereabouts.PENDING, told, current)
    if not commits:
        return _never(records)
    last = commits[-1]
    if last.committed is not None:
        if last.committed == _NO_OFFSET:
            return Explained(Whereabouts.COMMITTED, "-1, which means none", last)
        return Explained(Whereabouts.COMMITTED, "", last)
    return _gone(place, last, kept, records, rules)


def _never(records: GroupRecords) -> Explained:
    if records.complete_from == 0:
        return Explained(Whereabouts.NEVER, "nothing was compacted away of what was read")
    if records.complete_from is None:
        return Explained(Whereabouts.NOT_KNOWN, "no record is left, and all was compacted")
    since = (
        "" if records.complete_from_ms is None else f" ({moment_text(records.complete_from_ms)})"
    )
    what = (
        f"no record is left; what lies before offset {records.complete_from}{since} was compacted"
    )
    return Explained(Whereabouts.NOT_KNOWN, what)


def _gone(
    place: Place, gone: Commit, last: Commit | None, records: GroupRecords, rules: Rules
) -> Explained:
    """Say why a tombstone was written, as far as records tell."""
    at_ms = gone.timestamp_ms
    found = Explained(Whereabouts.NOT_KNOWN, "", last, at_ms if at_ms >= 0 else None)
    if at_ms < 0:
        return found._replace(why="its tombstone has no timestamp")
    is_with_group = _is_with_group(gone, records)
    deleted_ms = _near(rules.deletions.get(place[0], ()), at_ms, 0 if is_with_group else _SKEW_MS)
    if deleted_ms is not None:
        why = f"the topic was deleted at {moment_text(deleted_ms)}"
        return found._replace(where=Whereabouts.TOPIC_DELETED, why=why)
    if last is None:
        why = "the commit before its tombstone is compacted away: it expired or was deleted"
        return found._replace(why=why)
    if last.expire_ms is not None:
        return _by_age(found, last.expire_ms, 0, "its client gave it that time", gone, records)
    state = _state_at(gone.record_offset, records)
    if state is None and records.states and records.complete_from != 0:
        why = "what its group was then is compacted away: it expired or was deleted"
        return found._replace(why=why)
    if state is not None and state.kind == Kind.GARBLED:
        why = "what its group was then is not told: it expired or was deleted"
        return found._replace(why=why)
    cannot = _cannot_expire(place[0], state)
    if cannot:
        return _deleted(found, gone, records, cannot)
    since_ms, what = _aged_from(state, last)
    return _by_retention(
        found._replace(aged_from_ms=since_ms), since_ms, what, gone, records, rules
    )


def _near(deletions: Sequence[int], at_ms: int, skew_ms: int) -> int | None:
    """Return the deletion of a topic that a tombstone was written at; None: none."""
    return max((ms for ms in deletions if -skew_ms <= at_ms - ms <= _SOON_MS), default=None)


def _is_with_group(gone: Commit, records: GroupRecords) -> bool:
    """Tell whether the group went with an offset: its tombstone follows, of the same write.

    A coordinator gives the records of a write one timestamp. A group whose last offset has gone
    goes by itself at the next check.
    """
    return any(
        one.kind == Kind.GONE
        and one.record_offset > gone.record_offset
        and one.timestamp_ms == gone.timestamp_ms
        for one in records.states
    )


def _state_at(record_offset: int, records: GroupRecords) -> GroupState | None:
    before = [one for one in records.states if one.record_offset < record_offset]
    return before[-1] if before else None


def _cannot_expire(topic: str, state: GroupState | None) -> str:
    """Return why no offset of a topic can expire in that state; empty: it can."""
    if state is None or not state.members or state.kind == Kind.GONE:
        return ""
    if state.subscribed is not None and topic in state.subscribed:
        return "members subscribed its topic"
    if state.kind == Kind.CLASSIC and state.protocol_type not in ("", "consumer"):
        return f"the group had members of protocol type {state.protocol_type}"
    return ""


def _aged_from(state: GroupState | None, last: Commit) -> tuple[int, str]:
    """Return from when on an offset's age counts, and in words what that moment is."""
    is_empty = state is not None and state.kind == Kind.CLASSIC and not state.members
    if state is not None and is_empty and state.protocol_type and state.since_ms is not None:
        return state.since_ms, "its group became empty"
    return last.commit_ms, "its commit"


def _by_retention(
    found: Explained,
    since_ms: int,
    what: str,
    gone: Commit,
    records: GroupRecords,
    rules: Rules,
) -> Explained:
    minutes = (gone.timestamp_ms - since_ms) // _MINUTE_MS
    told = f"{what} was at {moment_text(since_ms)}, {minutes} min before"
    if rules.retention_ms is not None:
        limit = f"offsets.retention.minutes is {rules.retention_ms // _MINUTE_MS}"
        return _by_age(found, since_ms, rules.retention_ms, f"{told}; {limit}", gone, records)
    if gone.timestamp_ms - since_ms >= DEFAULT_RETENTION_MS:
        limit = f"the default of offsets.retention.minutes is {DEFAULT_RETENTION_MS // _MINUTE_MS}"
        return found._replace(where=Whereabouts.EXPIRED, why=f"{told}; {limit}")
    why = (
        f"{told}: it expired if offsets.retention.minutes is {minutes} or less, else it was deleted"
    )
    return found._replace(why=f"{why}; say it as --offsets-retention-minutes")


def _by_age(
    found: Explained, since_ms: int, lives_ms: int, why: str, gone: Commit, records: GroupRecords
) -> Explained:
    found = found._replace(aged_from_ms=since_ms)
    if gone.timestamp_ms - since_ms >= lives_ms:
        return found._replace(where=Whereabouts.EXPIRED, why=why)
    return _deleted(found, gone, records, f"too young to expire: {why}")


def _deleted(found: Explained, gone: Commit, records: GroupRecords, why: str) -> Explained:
    """Say whether a group was deleted with its offset."""
    is_with_group = _is_with_group(gone, records)
    where = Whereabouts.GROUP_DELETED if is_with_group else Whereabouts.DELETED
    return found._replace(where=where, why=why)
