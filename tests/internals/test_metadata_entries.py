"""ACLs, quotas, SCRAM credentials, controllers and tokens, record by record."""

import json
from typing import Any

import pytest

from kafka_segments.kafka.messages.metadata_image import ENTRIES
from kafka_segments.verbs.find.internals.metadata.history import (
    PROBLEMS,
    HistoryRow,
    MetadataHistory,
    Point,
)

Record = tuple[str, dict[str, Any]]
ACL = {
    "id": "a",
    "resourceType": 2,
    "resourceName": "orders",
    "patternType": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permissionType": 3,
}
TOKEN = {
    **{"owner": "User:alice", "requester": "User:alice", "renewers": ["User:bob"]},
    **{"issueTimestamp": 1, "maxTimestamp": 3, "expirationTimestamp": 2, "tokenId": "t"},
}


def quota(value: float, *, remove: bool = False, user: str | None = "alice") -> Record:
    entity = [
        {"entityType": "user", "entityName": user},
        {"entityType": "client-id", "entityName": None},
    ]
    fields = {"entity": entity, "key": "producer_byte_rate", "value": value, "remove": remove}
    return "ClientQuotaRecord", fields


def scram(iterations: int) -> Record:
    keys = {"salt": "c2FsdA==", "storedKey": "c3RvcmVk", "serverKey": "c2VydmVy"}
    fields = {"name": "alice", "mechanism": 2, **keys, "iterations": iterations}
    return "UserScramCredentialRecord", fields


def fold(*records: Record) -> list[HistoryRow]:
    history = MetadataHistory()
    rows: list[HistoryRow] = []
    for offset, (kind, value) in enumerate(records):
        rows += history.replay(kind, value, Point(offset, None))
    return [*rows, *history.end()]


def held(*records: Record) -> list[tuple[str, str, dict[str, Any], int, int | None]]:
    """Give kind, name, value, and from which record until which, of each row."""
    return [
        (
            row.values["kind"],
            row.values["name"],
            json.loads(row.values["value"]),
            row.since.offset,
            None if row.until is None else row.until.offset,
        )
        for row in fold(*records)
        if row.table == ENTRIES
    ]


def test_an_acl_holds_until_it_is_removed() -> None:
    remove = ("RemoveAccessControlEntryRecord", {"id": "a"})

    (row,) = held(("AccessControlEntryRecord", ACL), ("NoOpRecord", {}), remove)

    assert row == (
        "acl",
        "a",
        {
            "principal": "User:alice",
            "permission": "allow",
            "operation": "read",
            "resource_type": "topic",
            "pattern_type": "literal",
            "resource_name": "orders",
            "host": "*",
        },
        0,
        2,
    )
    (problem,) = fold(remove)
    assert problem.table == PROBLEMS
    assert "ACL a is removed, and there is none" in problem.values["problem"]


def test_a_quota_is_named_by_its_entities_and_its_key() -> None:
    name = "client-id=<default> user=alice producer_byte_rate"

    rows = held(quota(5.0), quota(6.0), quota(7.0, user=None), quota(0.0, remove=True))

    assert [(row[1], row[2]["value"], row[3], row[4]) for row in rows] == [
        (name, 5.0, 0, 1),
        (name, 6.0, 1, 3),
        ("client-id=<default> user=<default> producer_byte_rate", 7.0, 2, None),
    ]
    assert rows[0][2]["entity"] == {"user": "alice", "client-id": None}


def test_salts_and_keys_of_scram_credentials_are_left_out() -> None:
    remove = ("RemoveUserScramCredentialRecord", {"name": "alice", "mechanism": 2})

    assert held(scram(4096), scram(8192), remove, remove) == [
        ("scram-credential", "alice SCRAM-SHA-512", {"iterations": 4096}, 0, 1),
        ("scram-credential", "alice SCRAM-SHA-512", {"iterations": 8192}, 1, 2),
    ]


def test_controllers_and_tokens_hold_what_was_registered_last() -> None:
    controller = {
        "controllerId": 3,
        "incarnationId": "i",
        "zkMigrationReady": False,
        "endPoints": [{"name": "C", "host": "h", "port": 9093, "securityProtocol": 0}],
        "features": [{"name": "f", "minSupportedVersion": 0, "maxSupportedVersion": 2}],
    }

    rows = held(
        ("RegisterControllerRecord", controller),
        ("DelegationTokenRecord", TOKEN),
        ("DelegationTokenRecord", {**TOKEN, "expirationTimestamp": 3}),
        ("RemoveDelegationTokenRecord", {"tokenId": "t"}),
    )

    tokens = [(row[2]["expiration_ms"], row[3], row[4]) for row in rows if row[1] == "t"]
    assert tokens == [(2, 1, 2), (3, 2, 3)]
    (registered,) = (row for row in rows if row[0] == "controller")
    assert (registered[1], registered[4]) == ("3", None)
    assert registered[2]["endpoints"] == {"C": "h:9093"}
    assert registered[2]["features"] == {"f": [0, 2]}


@pytest.mark.parametrize("code", [-1, 99])
def test_codes_that_are_not_known_are_unknown(code: int) -> None:
    fields = ("resourceType", "patternType", "operation", "permissionType")
    unknown = {**ACL, **dict.fromkeys(fields, code)}

    (row,) = held(("AccessControlEntryRecord", unknown))

    names = ("resource_type", "pattern_type", "operation", "permission")
    assert {row[2][name] for name in names} == {"unknown"}
