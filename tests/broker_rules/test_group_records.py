"""Which records of __consumer_offsets each release reads, as its code says."""

import pytest

from kafka_segments.kafka.broker_rules.group_records import group_record_rules
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.messages.messages import GROUPS

COMMITS_AND_GROUPS, CONSUMER_GROUPS = set(range(3)), set(range(3, 9))
SHARE_GROUPS, STREAMS_GROUPS = set(range(10, 17)), {17, 19, 20, 21, 22, 23}


@pytest.mark.parametrize(
    ("release", "last_version", "skips"),
    [
        ("2.8", 3, False),
        ("3.3.2", 3, False),
        ("3.4", 3, False),
        ("3.4.0", 3, False),
        ("3.4.1", 4, True),
        ("3.5.0", 4, True),
        ("3.9", 4, True),
    ],
)
def test_the_classic_coordinator_knows_commits_and_groups(
    release: str, last_version: int, skips: bool
) -> None:
    rules = group_record_rules(parse_version(release))

    assert rules.last_versions == dict.fromkeys(COMMITS_AND_GROUPS, last_version)
    assert rules.skips_unknown == skips


@pytest.mark.parametrize(
    ("release", "types"),
    [
        ("3.6", COMMITS_AND_GROUPS),
        ("3.7", COMMITS_AND_GROUPS | CONSUMER_GROUPS),
        ("3.9", COMMITS_AND_GROUPS | CONSUMER_GROUPS),
        ("4.0", COMMITS_AND_GROUPS | CONSUMER_GROUPS | {9} | SHARE_GROUPS),
        ("4.1", COMMITS_AND_GROUPS | CONSUMER_GROUPS | SHARE_GROUPS | STREAMS_GROUPS),
    ],
)
def test_newer_coordinators_know_newer_groups(release: str, types: set[int]) -> None:
    rules = group_record_rules(parse_version(release), is_new_coordinator=True)

    assert set(rules.last_versions) == types
    assert (rules.last_versions[1], rules.last_versions[2]) == (4, 4)


def test_the_last_release_knows_what_our_messages_have() -> None:
    rules = group_record_rules((4, 3))

    assert rules.last_versions == {
        layouts.key.type_id: max(
            version for version in range(10) if layouts.value.has_version(version)
        )
        for layouts in GROUPS
    }
    assert rules == group_record_rules((4, 1)) == group_record_rules((9, 9))
