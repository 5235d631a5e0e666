"""Where a group's offsets went, by the rules of Kafka's coordinators, and where consumers go on."""

import pytest

from kafka_segments.verbs.find.lag.decide.facts import (
    Commit,
    GroupRecords,
    GroupState,
    Kind,
    Place,
)
from kafka_segments.verbs.find.lag.decide.resets import Next, next_in_words, next_read
from kafka_segments.verbs.find.lag.decide.whereabouts import (
    DEFAULT_RETENTION_MS,
    Explained,
    Rules,
    Whereabouts,
    explain,
)

PLACE: Place = ("t", 0)
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
COMMIT_MS, RETENTION_MS = 1_000 * HOUR_MS, 2 * HOUR_MS
COMMIT = Commit(10, COMMIT_MS, 7, COMMIT_MS, None, 3, "m")
RULES = Rules(RETENTION_MS, {})


def _tombstone(after_ms: int) -> Commit:
    return Commit(20, COMMIT_MS + after_ms)


def _state(kind: Kind, members: int = 0, **values: object) -> GroupState:
    return GroupState(
        **{"record_offset": 5, "timestamp_ms": 0, "kind": kind, "members": members} | values
    )  # type: ignore[arg-type]


def _told(*commits: Commit, rules: Rules = RULES, **records: object) -> Explained:
    return explain(PLACE, GroupRecords({PLACE: commits}, **records), rules)  # type: ignore[arg-type]


def test_a_commit_without_a_tombstone_counts() -> None:
    found = _told(COMMIT)

    assert (found.where, found.last, found.current, found.gone_ms) == ("committed", COMMIT, 7, None)


@pytest.mark.parametrize(
    ("state", "after_ms", "where", "aged_from_ms"),
    [
        (None, RETENTION_MS, Whereabouts.EXPIRED, COMMIT_MS),
        (None, RETENTION_MS - 1, Whereabouts.DELETED, COMMIT_MS),
        # A classic group's age counts from when it became empty, before its commit or after it.
        (
            _state(Kind.CLASSIC, since_ms=COMMIT_MS + HOUR_MS),
            *(RETENTION_MS + HOUR_MS, Whereabouts.EXPIRED, COMMIT_MS + HOUR_MS),
        ),
        (
            _state(Kind.CLASSIC, since_ms=COMMIT_MS + HOUR_MS),
            *(RETENTION_MS + HOUR_MS - 1, Whereabouts.DELETED, COMMIT_MS + HOUR_MS),
        ),
        (
            _state(Kind.CLASSIC, since_ms=COMMIT_MS - RETENTION_MS),
            *(1, Whereabouts.EXPIRED, COMMIT_MS - RETENTION_MS),
        ),
        (_state(Kind.CLASSIC), RETENTION_MS, Whereabouts.EXPIRED, COMMIT_MS),
        (
            _state(Kind.CLASSIC, since_ms=COMMIT_MS + HOUR_MS, protocol_type=""),
            *(RETENTION_MS, Whereabouts.EXPIRED, COMMIT_MS),
        ),
        # With members the commit counts, of topics that none of them subscribes.
        (
            _state(Kind.CLASSIC, 1, since_ms=0, subscribed=frozenset({"u"})),
            *(RETENTION_MS, Whereabouts.EXPIRED, COMMIT_MS),
        ),
        (
            _state(Kind.CLASSIC, 1, since_ms=0, subscribed=frozenset({"t"})),
            *(RETENTION_MS, Whereabouts.DELETED, None),
        ),
        (
            _state(Kind.CLASSIC, 1, protocol_type="connect"),
            *(RETENTION_MS, Whereabouts.DELETED, None),
        ),
        # Of a newer group the commit counts, empty or not.
        (
            _state(Kind.MODERN, since_ms=COMMIT_MS + HOUR_MS, subscribed=frozenset()),
            *(RETENTION_MS, Whereabouts.EXPIRED, COMMIT_MS),
        ),
        (
            _state(Kind.MODERN, 2, subscribed=frozenset({"t"})),
            *(RETENTION_MS, Whereabouts.DELETED, None),
        ),
        (_state(Kind.MODERN, 2), RETENTION_MS, Whereabouts.EXPIRED, COMMIT_MS),
    ],
)
def test_an_offset_expires_by_the_rule_of_its_group(
    state: GroupState | None, after_ms: int, where: Whereabouts, aged_from_ms: int | None
) -> None:
    found = _told(COMMIT, _tombstone(after_ms), states=[state] if state else [])

    assert (found.where, found.aged_from_ms) == (where, aged_from_ms), found.why
    assert (found.last, found.current, found.gone_ms) == (COMMIT, None, COMMIT_MS + after_ms)


@pytest.mark.parametrize(
    ("after_ms", "where"), [(HOUR_MS, Whereabouts.EXPIRED), (HOUR_MS - 1, Whereabouts.DELETED)]
)
def test_a_time_that_an_old_client_gave_counts_alone(after_ms: int, where: Whereabouts) -> None:
    timed = COMMIT._replace(expire_ms=COMMIT_MS + HOUR_MS)

    assert _told(timed, _tombstone(after_ms), rules=Rules(None, {})).where == where


def test_without_the_brokers_setting_only_what_is_older_than_the_default_has_expired() -> None:
    unknown = Rules(None, {})
    young = _told(COMMIT, _tombstone(DEFAULT_RETENTION_MS - 1), rules=unknown)

    assert _told(COMMIT, _tombstone(DEFAULT_RETENTION_MS), rules=unknown).where == "expired"
    assert young.where == "not known"
    assert "offsets.retention.minutes is 10079 or less" in young.why


@pytest.mark.parametrize(
    ("after_ms", "where"),
    [
        (0, Whereabouts.TOPIC_DELETED),
        (MINUTE_MS, Whereabouts.TOPIC_DELETED),
        (-5_000, Whereabouts.TOPIC_DELETED),  # its clock is behind
        (-5_001, Whereabouts.DELETED),
        (MINUTE_MS + 1, Whereabouts.DELETED),
    ],
)
def test_a_topic_that_was_deleted_at_that_time_took_its_offsets_with_it(
    after_ms: int, where: Whereabouts
) -> None:
    rules = Rules(RETENTION_MS, {"t": [0, COMMIT_MS + HOUR_MS], "u": [COMMIT_MS]})

    assert _told(COMMIT, _tombstone(HOUR_MS + after_ms), rules=rules).where == where


@pytest.mark.parametrize(
    ("offset", "late_ms", "where"),
    [
        (21, 0, Whereabouts.GROUP_DELETED),
        (21, 1, Whereabouts.DELETED),  # by itself, as it has no offset left
        (19, 0, Whereabouts.DELETED),  # its own record went before, as where its protocol changes
    ],
)
def test_a_group_that_was_deleted_has_its_own_tombstone_behind_those_of_its_offsets(
    offset: int, late_ms: int, where: Whereabouts
) -> None:
    empty = _state(Kind.CLASSIC, since_ms=COMMIT_MS)
    gone = GroupState(offset, COMMIT_MS + HOUR_MS + late_ms, Kind.GONE)

    assert _told(COMMIT, _tombstone(HOUR_MS), states=[empty, gone]).where == where


@pytest.mark.parametrize(
    ("after_ms", "where"), [(0, Whereabouts.TOPIC_DELETED), (1, Whereabouts.GROUP_DELETED)]
)
def test_a_topic_that_is_deleted_behind_its_group_took_nothing_with_it(
    after_ms: int, where: Whereabouts
) -> None:
    at_ms = COMMIT_MS + HOUR_MS
    rules = Rules(RETENTION_MS, {"t": [at_ms + after_ms]})

    gone = [GroupState(21, at_ms, Kind.GONE)]

    assert (
        _told(COMMIT, _tombstone(HOUR_MS), rules=rules, states=gone, complete_from=0).where == where
    )


def test_what_was_compacted_away_is_not_known() -> None:
    later = GroupState(30, COMMIT_MS, Kind.CLASSIC)
    for found, why in (
        (_told(_tombstone(0)), "the commit before its tombstone is compacted away"),
        (_told(COMMIT, _tombstone(0), states=[later], complete_from=None), "what its group was"),
        (_told(complete_from=None), "all was compacted"),
        (_told(complete_from=50, complete_from_ms=0), "before offset 50 (1970-01-01 00:00:00.000"),
        (_told(COMMIT, _tombstone(-COMMIT_MS - 1)), "its tombstone has no timestamp"),
    ):
        assert found.where == "not known"
        assert why in found.why
        assert not found.is_lost  # there is none now, whatever became of it

    assert _told().where == "never committed"


def test_behind_what_could_not_be_read_nothing_is_known() -> None:
    for lost_until, is_lost in ((9, False), (10, False), (11, True), (float("inf"), True)):
        found = _told(COMMIT, lost_until=lost_until, lost_why="damage")

        assert (found.where == "not known", found.is_lost) == (is_lost, is_lost)
    assert _told(lost_until=0, lost_why="damage").why == "damage"


def test_an_open_transaction_holds_a_commit_back() -> None:
    pending = Commit(30, COMMIT_MS, 9, COMMIT_MS)

    held = _told(COMMIT, pending={PLACE: pending})
    first = explain(PLACE, GroupRecords({}, {PLACE: pending}), RULES)

    assert (held.where, held.current) == ("in an open transaction", 7)
    assert "offset 9, since" in held.why
    assert (first.where, first.current) == ("in an open transaction", None)


@pytest.mark.parametrize(
    ("current", "last", "start", "end", "expected"),
    [
        (5, 5, 5, 9, Next(False, 5, 5, 9, gone=0)),
        (9, 9, 5, 9, Next(False, 9, 5, 9, gone=0)),
        (4, 4, 5, 9, Next(True, None, 5, 9, 0, 4, 1)),
        (10, 10, 5, 9, Next(True, None, 5, 9, 4, 0, 0)),
        (None, 7, 5, 9, Next(True, None, 5, 9, 2, 2, 0)),
        (None, None, 5, 9, Next(True, None, 5, 9)),
        (None, 7, None, None, Next(True)),
        (7, 7, None, None, Next(None)),
    ],
)
def test_a_consumer_is_reset_where_it_has_no_offset_or_one_out_of_range(
    current: int | None, last: int | None, start: int | None, end: int | None, expected: Next
) -> None:
    assert next_read(current, last, start, end) == expected


def test_where_a_consumer_goes_on_is_told_in_words() -> None:
    assert next_in_words(next_read(5, 5, 5, 9)) == "at 5"
    assert next_in_words(Next(None)) == "not known: the log is not at hand"
    assert next_in_words(Next(True)) == "by auto.offset.reset; the log is not at hand"
    assert next_in_words(next_read(4, 4, 5, 9)) == (
        "by auto.offset.reset: earliest at 5, latest at 9, 4 passed over; 1 are gone unread"
    )
    assert next_in_words(next_read(None, 7, 5, 9)) == (
        "by auto.offset.reset: earliest at 5, 2 read again, latest at 9, 2 passed over"
    )
