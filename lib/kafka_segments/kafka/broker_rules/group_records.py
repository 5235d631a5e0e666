"""Which records of ``__consumer_offsets`` the group coordinator of a release reads.

A record's type is the int16 before its key, its version the one before its value. Of a type that
it does not know a coordinator leaves the record out, since KIP-915; before, and at a version that
it does not know, it gives the whole partition up.

Source: GroupMetadataManager.readMessageKey, readOffsetMessageValue and readGroupMessageValue
(2.8.0 to 3.9.0, by release), CoordinatorRecordSerde (3.9), GroupCoordinatorRecordSerde (4.0),
CoordinatorRecordType (4.1 to 4.4), CoordinatorLoaderImpl, and the messages' validVersions.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.versions import Version

OLDEST = "2.8"
_SKIPS_UNKNOWN = (3, 4, 1)  # KIP-915, which 3.4.1 has too
_NEW_COORDINATOR = (3, 7)  # as early access; group.coordinator.rebalance.protocols has consumer
_ONLY_NEW_COORDINATOR = (4, 0)
_STREAMS_GROUPS = (4, 1)

_COMMITS_AND_GROUPS = range(3)
_CONSUMER_GROUPS = range(3, 9)
_SHARE_GROUPS_OF_4_0 = range(9, 17)  # 9 is gone in 4.1, 16 is a regular expression
_SHARE_GROUPS = range(10, 17)
_OF_STREAMS_GROUPS = (17, 19, 20, 21, 22, 23)
_LEGACY_COMMIT = 0


class GroupRecordRules(NamedTuple):
    """What the group coordinator of a release does with records.

    ``last_versions``: the types that it knows, each with the last version of its value; all begin
    at 0. ``skips_unknown``: it leaves out records of other types; else they end the load.
    """

    last_versions: Mapping[int, int]
    skips_unknown: bool


def group_record_rules(version: Version, *, is_new_coordinator: bool = False) -> GroupRecordRules:
    """Return the rules of a release from 2.8 on.

    ``is_new_coordinator``: 3.7 to 3.9 run the coordinator of KIP-848 if they are told to; 4.0 and
    later have no other.
    """
    is_new = version >= _ONLY_NEW_COORDINATOR
    is_new = is_new or (is_new_coordinator and version >= _NEW_COORDINATOR)
    last = 4 if version >= _SKIPS_UNKNOWN else 3
    known = dict.fromkeys(_COMMITS_AND_GROUPS, last)
    if is_new:
        known |= dict.fromkeys(_CONSUMER_GROUPS, 0)
    if version >= _STREAMS_GROUPS:
        known |= dict.fromkeys((*_SHARE_GROUPS, *_OF_STREAMS_GROUPS, _LEGACY_COMMIT), 0)
    elif version >= _ONLY_NEW_COORDINATOR:
        known |= dict.fromkeys(_SHARE_GROUPS_OF_4_0, 0)
    return GroupRecordRules(known, version >= _SKIPS_UNKNOWN)
