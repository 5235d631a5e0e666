"""The rows of ``lag --explain``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    StructField,
    StructType,
)

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.verbs.find.lag.decide.facts import Commit, GroupRecords, Kind, Place
from kafka_segments.verbs.find.lag.decide.resets import Next, next_read
from kafka_segments.verbs.find.lag.decide.whereabouts import Explained, Rules, Whereabouts, explain
from kafka_segments.verbs.find.lag.group_reading import GroupRead

_COMMIT = "committed_offset long, committed_ms long, leader_epoch long, metadata string"
_COMMITS = StructType(row_fields(f"record_offset long, record_ms long, {_COMMIT}"))
COLUMNS = StructType(
    [
        *row_fields(
            "cluster string not null, group_id string not null, topic string not null,"
            " partition int not null, where string not null, why string not null,"
            f" {_COMMIT}, gone_ms long, aged_from_ms long, log_start_offset long,"
            " log_end_offset long, log_problem string, is_reset boolean, next_offset long,"
            " earliest_offset long, latest_offset long, read_again long, passed_over long,"
            " gone_unread long, group_state string, group_state_ms long,"
            " offsets_partition int not null, complete_from_offset long, complete_from_ms long"
        ),
        StructField("commits", ArrayType(_COMMITS), False),
    ]
)
"""Each row's; null: not known, or there is none, as ``where`` and ``why`` say."""
_NOT_AT_HAND = "not in the tables"


def explained_rows(
    group: str,
    read: GroupRead,
    places: Sequence[Place],
    logs: Mapping[Place, Row],
    rules: Rules,
    most_commits: int,
) -> Iterator[tuple[Any, ...]]:
    """Yield a row of each partition in ``places``, in the order of ``COLUMNS``.

    ``logs``: log_start_offset, log_end_offset and doubt of the replicas that answer.
    """
    records = read.records
    state, state_ms = _state(records)
    for place in places:
        found = explain(place, records, rules)
        start, end, problem = _reach(logs.get(place))
        yield (
            *(read.cluster, group, *place, found.where.value, found.why),
            *_commit(found.last),
            *(found.gone_ms, found.aged_from_ms, start, end, problem),
            *_next(found, start, end),
            *(state, state_ms, read.partition),
            *(records.complete_from, records.complete_from_ms),
            [
                (one.record_offset, one.timestamp_ms, *_commit(one))
                for one in _readable(records.commits.get(place, ()))[-most_commits:]
            ],
        )


def _state(records: GroupRecords) -> tuple[str | None, int | None]:
    """Return what the group is last, in words, and since when; None: nothing but commits."""
    state = records.states[-1] if records.states else None
    seen = -1 if state is None else state.record_offset
    if records.lost_until is not None and seen < records.lost_until:
        return Whereabouts.NOT_KNOWN.value, None
    if state is None:
        return None, None
    if state.kind == Kind.GONE:
        return "deleted", state.timestamp_ms
    if state.kind == Kind.GARBLED:
        return Whereabouts.NOT_KNOWN.value, None
    members = f"{state.members} members" if state.members else "empty"
    return f"{members}, {state.kind}", state.since_ms


def _readable(commits: Sequence[Commit]) -> list[Commit]:
    return [one for one in commits if one.problem is None]


def _reach(log: Row | None) -> tuple[int | None, int | None, str | None]:
    if log is None:
        return None, None, _NOT_AT_HAND
    if log["doubt"] is not None:
        return None, None, log["doubt"]
    return log["log_start_offset"], log["log_end_offset"], None


def _commit(commit: Commit | None) -> tuple[int | None, int | None, int | None, str | None]:
    if commit is None or commit.committed is None:
        return None, None, None, None
    return commit.committed, commit.commit_ms, commit.leader_epoch, commit.metadata


def _next(found: Explained, start: int | None, end: int | None) -> Next:
    if found.is_lost:
        return Next(None, None, start, end)
    last = None if found.last is None else found.last.committed
    return next_read(found.current, last, start, end)
