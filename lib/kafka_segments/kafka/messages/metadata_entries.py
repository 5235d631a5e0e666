"""Other named entries of the metadata log: ACLs, quotas, SCRAM credentials, controllers, tokens.

An entry is a kind, a name and values, which one record puts and another removes. Salts and keys
of SCRAM credentials are left out.

Source: AclsDelta, ClientQuotaDelta, ScramDelta, ClusterDelta, DelegationTokenDelta (4.3.1), and
the codes of AclOperation, AclPermissionType, ResourceType, PatternType and ScramMechanism.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Values = dict[str, Any]
ACL, QUOTA, SCRAM = "acl", "client-quota", "scram-credential"
CONTROLLER, TOKEN = "controller", "delegation-token"
_OPERATIONS = (
    *("unknown", "any", "all", "read", "write", "create", "delete", "alter", "describe"),
    *("cluster_action", "describe_configs", "alter_configs", "idempotent_write"),
    *("create_tokens", "describe_tokens", "two_phase_commit"),
)
_PERMISSIONS = ("unknown", "any", "deny", "allow")
_RESOURCES = (
    *("unknown", "any", "topic", "group", "cluster", "transactional_id", "delegation_token"),
    "user",
)
_PATTERNS = ("unknown", "any", "match", "literal", "prefixed")
_MECHANISMS = ("unknown", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Entry(NamedTuple):
    """The values that an entry has from a record on; None: the record removes it."""

    kind: str
    name: str
    values: Values | None


def entry_of(kind: str, record: Values) -> Entry | None:
    """Return the entry that a record puts or removes; None: it is a record of another kind."""
    rule = _RULES.get(kind)
    return None if rule is None else rule(record)


def _acl(record: Values) -> Entry:
    return Entry(
        ACL,
        record["id"],
        {
            "principal": record["principal"],
            "permission": _name(_PERMISSIONS, record["permissionType"]),
            "operation": _name(_OPERATIONS, record["operation"]),
            "resource_type": _name(_RESOURCES, record["resourceType"]),
            "pattern_type": _name(_PATTERNS, record["patternType"]),
            "resource_name": record["resourceName"],
            "host": record["host"],
        },
    )


def _quota(record: Values) -> Entry:
    """Name a quota as `kafka-configs` takes it: entities by their type, then the key."""
    entities = {part["entityType"]: part["entityName"] for part in record["entity"]}
    names = [
        f"{kind}={'<default>' if name is None else name}" for kind, name in sorted(entities.items())
    ]
    values = {"entity": entities, "key": record["key"], "value": record["value"]}
    return Entry(QUOTA, " ".join((*names, record["key"])), None if record["remove"] else values)


def _scram(record: Values) -> Entry:
    return Entry(SCRAM, _scram_name(record), {"iterations": record["iterations"]})


def _scram_name(record: Values) -> str:
    return f"{record['name']} {_name(_MECHANISMS, record['mechanism'])}"


def _controller(record: Values) -> Entry:
    return Entry(
        CONTROLLER,
        str(record["controllerId"]),
        {
            "incarnation_id": record["incarnationId"],
            "zk_migration_ready": record["zkMigrationReady"],
            "endpoints": {
                one["name"]: f"{one['host']}:{one['port']}" for one in record["endPoints"]
            },
            "features": {
                one["name"]: [one["minSupportedVersion"], one["maxSupportedVersion"]]
                for one in record["features"]
            },
        },
    )


def _token(record: Values) -> Entry:
    return Entry(
        TOKEN,
        record["tokenId"],
        {
            "owner": record["owner"],
            "requester": record["requester"],
            "renewers": record["renewers"],
            "issue_ms": record["issueTimestamp"],
            "expiration_ms": record["expirationTimestamp"],
            "max_ms": record["maxTimestamp"],
        },
    )


def _name(names: tuple[str, ...], code: int) -> str:
    """Return the name of a code; one beyond Kafka's own table is unknown, as in Kafka."""
    return names[code] if 0 <= code < len(names) else names[0]


_RULES: dict[str, Callable[[Values], Entry]] = {
    "AccessControlEntryRecord": _acl,
    "RemoveAccessControlEntryRecord": lambda record: Entry(ACL, record["id"], None),
    "ClientQuotaRecord": _quota,
    "UserScramCredentialRecord": _scram,
    "RemoveUserScramCredentialRecord": lambda record: Entry(SCRAM, _scram_name(record), None),
    "RegisterControllerRecord": _controller,
    "DelegationTokenRecord": _token,
    "RemoveDelegationTokenRecord": lambda record: Entry(TOKEN, record["tokenId"], None),
}
