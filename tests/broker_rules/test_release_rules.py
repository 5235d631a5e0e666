"""What retention and rolls do in which release: the last release before each change, and the first.

Source: Log and LogSegment of the releases (semantics 7.2 to 7.5, 8.3).
"""

import itertools

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules
from kafka_segments.verbs.judge.roll.decide.rules import TIME_RULES, RollRules

TIME_FIRST = ("retention_ms", "retention_bytes")
RETENTION = [
    # attribute, last release before, its value, first release after, its value
    ("negative_is_unlimited", "0.8.2.2", False, "0.9", True),
    ("by_mtime", "0.10.0.1", True, "0.10.1", False),
    ("passes", "0.10.2.2", TIME_FIRST, "0.11", (*TIME_FIRST, "log_start_offset")),
    ("heeds_high_watermark", "0.11.0.3", False, "1.0", True),
    ("needs_high_watermark", "0.11.0.3", False, "1.0", True),
    ("starts_without_delete", "2.0.1", False, "2.1", True),
    ("needs_high_watermark", "2.3.1", True, "2.4", False),
    (
        "passes",
        "2.8.2",
        (*TIME_FIRST, "log_start_offset"),
        "3.0",
        ("log_start_offset", "retention_bytes", "retention_ms"),
    ),
    ("is_tiered", "3.5.2", False, "3.6", True),
    ("empty_policy_is_tiered", "4.1.1", False, "4.2", True),
]
ROLLS = [
    ("time", (0, 10, 0), "create-time", (0, 10, 1), "first-batch"),
    ("has_time_index", (0, 10, 0), False, (0, 10, 1), True),
    ("has_overflow", (0, 10, 1), False, (0, 10, 2), True),
    ("has_compaction_lag", (2, 2, 2), False, (2, 3), True),
]


@pytest.mark.parametrize(("name", "last", "before", "first", "after"), RETENTION)
def test_retention_changes_with_the_release(
    name: str, last: str, before: object, first: str, after: object
) -> None:
    found = [getattr(RetentionRules.of(version), name) for version in (last, first)]

    assert found == [before, after]


@pytest.mark.parametrize(("name", "last", "before", "first", "after"), ROLLS)
def test_rolls_change_with_the_release(
    name: str, last: tuple[int, ...], before: object, first: tuple[int, ...], after: object
) -> None:
    assert [getattr(RollRules.of(release), name) for release in (last, first)] == [before, after]


def test_nothing_changes_back() -> None:
    changes = [(name, before, after) for name, _, before, _, after in RETENTION]
    releases = sorted({version for row in RETENTION for version in (row[1], row[3])}, key=_numbers)
    rules = [RetentionRules.of(version) for version in [*releases, "4.3.1", "4.4"]]

    for name in {name for name, *_ in changes}:
        values = [getattr(one, name) for one in rules]
        turns = [(name, a, b) for a, b in itertools.pairwise(values) if a != b]
        assert turns == [change for change in changes if change[0] == name]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_first_release_is_0_8() -> None:
    assert RetentionRules.of("0.8") == RetentionRules.of("0.8.2.2")
    assert RollRules.of((0, 8)) == RollRules.of((0, 8, 2))
    for version in ("0.7.9", "0.7"):
        with pytest.raises(UsageError, match=r"0\.8 and later"):
            RetentionRules.of(version)
        with pytest.raises(UsageError, match=rf"{version}.*0\.8 and later"):
            RollRules.of(_numbers(version))


@pytest.mark.parametrize(
    "version", ["", "4", "4.", ".3", "4.3.1.0.0", "4.x", "12345.0", " 4.3", "٤.3"]
)
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match="a release such as"):
        RetentionRules.of(version)


def test_a_named_time_rule_wins_over_the_releases() -> None:
    assert [RollRules.of((0, 8), time).time for time in TIME_RULES] == list(TIME_RULES)
    assert RollRules.of((9, 0)) == RollRules()
    with pytest.raises(UsageError, match="rule newest: one of first-batch"):
        RollRules.of((4, 3), "newest")
