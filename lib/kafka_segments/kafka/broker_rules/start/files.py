"""The small files of a log directory, checked as a broker checks them at its start.

Source: MetaPropertiesEnsemble, MetaProperties.Builder, FileQuorumStateStore,
QuorumStateDataJsonConverter (4.3.1).
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.broker_rules.start.facts import Bad
from kafka_segments.kafka.text.checkpoints import decode_uuid, encode_uuid, java_lines

_MAX_INT32 = 2**31 - 1
_QUORUM_FIELDS: tuple[dict[str, type | tuple[type, ...]], ...] = (
    {
        "clusterId": str,
        "leaderId": int,
        "leaderEpoch": int,
        "votedId": int,
        "appliedOffset": int,
        "currentVoters": (list, type(None)),
    },
    {"leaderId": int, "leaderEpoch": int, "votedId": int, "votedDirectoryId": str},
)
_RESERVED_IDS = 100  # DirectoryId.reserved: the least hundred


class Identity(NamedTuple):
    """What a broker takes from ``meta.properties``; None where it says nothing."""

    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def check_meta(properties: Mapping[str, str]) -> Identity | Bad:
    """Read the properties as a broker does. Source: MetaProperties.Builder."""
    version = _int(properties.get("version", "0").strip())
    if version not in (0, 1):
        return _refused(f"version is {properties.get('version')!r}, 0 or 1 expected")
    name = "node.id" if version else "broker.id"
    node = None
    if version or name in properties:
        node = _int(properties.get(name, ""))
        if node is None:
            return _refused(f"{name} is {properties.get(name)!r}, no number")
    directory = properties.get("directory.id")
    if directory is not None:
        try:
            directory = encode_uuid(decode_uuid(directory))
        except ValueError:
            return _refused(f"directory.id is {directory!r}, no id")
    if version and "cluster.id" not in properties:
        return _refused("there is no cluster.id")
    return Identity(properties.get("cluster.id"), node, directory)


def is_reserved(directory_id: str) -> bool:
    """Tell whether a directory id is one that Kafka keeps for itself."""
    number = int.from_bytes(decode_uuid(directory_id), "big")
    return number < _RESERVED_IDS or 2**63 <= number < 2**64  # its lower half is signed


def check_quorum_state(text: str) -> dict[str, Any]:
    """Read ``quorum-state``: the first line, a JSON object; what follows it is not read.

    Raises:
        CorruptTextError: the broker throws at it, and ends.
    """
    lines = java_lines(text)
    if not lines:
        raise _quorum("it is empty", "EOFException")
    try:
        found, _ = json.JSONDecoder().raw_decode(lines[0].strip(" \t"))
    except ValueError as error:
        exception = "JsonEOFException" if _is_cut(lines[0]) else "JsonParseException"
        raise _quorum(f"no JSON: {error}", exception) from None
    except RecursionError:
        raise _quorum("no JSON: nested too deep", "StreamConstraintsException") from None
    if not isinstance(found, dict):
        raise _quorum("no JSON object", "IOException")
    version = found.get("data_version")
    if "data_version" not in found:
        raise _quorum("there is no data_version", "IOException")
    number = version if isinstance(version, int) and not isinstance(version, bool) else 0
    if number not in (0, 1):
        raise _quorum(f"data_version is {version!r}, 0 or 1 expected", "IllegalStateException")
    for field, kind in _QUORUM_FIELDS[number].items():
        if field not in found:
            raise _quorum(f"{field} is missing", "RuntimeException")
        if kind is int:
            _check_number(field, found[field])
        elif not isinstance(found[field], kind):
            raise _quorum(f"{field} is of another type", "RuntimeException")
    if number == 0:
        _check_voters(found["currentVoters"])
    return found


def _check_number(field: str, value: Any) -> None:
    limit = 2**63 - 1 if field == "appliedOffset" else _MAX_INT32
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not -limit - 1 <= value <= limit:
        raise _quorum(f"{field} is {value!r}, no whole number of Kafka's", "NumberFormatException")


def _check_voters(voters: list[Any] | None) -> None:
    if voters is None:
        raise _quorum("currentVoters is null", "NullPointerException")
    for voter in voters:
        if not isinstance(voter, dict) or "voterId" not in voter:
            raise _quorum("a voter has no voterId", "RuntimeException")
        _check_number("voterId", voter["voterId"])


def _quorum(reason: str, exception: str) -> CorruptTextError:
    return CorruptTextError("quorum-state", f"{reason} (line 1)", 1, exception)


def _is_cut(line: str) -> bool:
    """Tell whether a text may be the beginning of a JSON object."""
    return line.startswith("{") and not line.rstrip().endswith("}") and "\0" not in line


def _refused(reason: str) -> Bad:
    return Bad("RuntimeException", reason)


def _int(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or len(digits.lstrip("0")) > 10:
        return None
    number = int(text)
    return number if -_MAX_INT32 - 1 <= number <= _MAX_INT32 else None
