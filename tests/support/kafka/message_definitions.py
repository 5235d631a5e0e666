"""Draw the facts of Kafka's message definitions from a release's JARs: `make messages`.

What a message is called, its number, its versions and its fields are written; Kafka's descriptions
are not. `messages.json` has those of one release; test_definitions.py holds it against others.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka_segments.kafka.messages
from support.kafka.kafka_referee import KAFKA_JARS

RELEASE = "4.3.1"
DRAWN = Path(kafka_segments.kafka.messages.__file__).with_name("messages.json")
# Of each set the JAR and the types of its definitions
SETS = {
    "metadata": ("kafka-metadata", {"metadata"}),
    "remote_log": ("kafka-storage", {"metadata"}),
    "groups": ("kafka-group-coordinator", {"coordinator-key", "coordinator-value"}),
    "transactions": ("kafka-transaction-coordinator", {"coordinator-key", "coordinator-value"}),
    "shares": ("kafka-share-coordinator", {"coordinator-key", "coordinator-value"}),
    "clients": ("kafka-clients", {"data"}),
}
_DEFINITION = re.compile(r"(common/)?(message|metadata)/\w+\.json")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def drawn(jars: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the messages of each set, by their numbers and names; a JAR that lacks has none."""
    return {
        name: sorted(
            (
                _message(one)
                for path in jars.glob(f"{jar}-[0-9]*.jar")
                for one in _definitions(path)
                if one["type"] in types
            ),
            key=lambda message: (message.get("apiKey", -1), message["name"]),
        )
        for name, (jar, types) in SETS.items()
    }


def _definitions(jar: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(jar) as members:
        for name in members.namelist():
            if _DEFINITION.fullmatch(name):
                yield json.loads(_COMMENT.sub("", members.read(name).decode()))


def _message(one: dict[str, Any]) -> dict[str, Any]:
    structs = {struct["name"]: struct["fields"] for struct in one.get("commonStructs", ())}
    facts = {name: one[name] for name in ("name", "apiKey", "validVersions") if name in one}
    flexible = one["flexibleVersions"].replace("none", "")
    fields = [_field(field, structs) for field in one["fields"]]
    return facts | {"flexibleVersions": flexible, "fields": fields}


def _field(field: dict[str, Any], structs: dict[str, Any]) -> dict[str, Any]:
    """Return a field's facts, with those of its struct; what has its kind's default has none."""
    tagged = field.get("taggedVersions")
    assert field.get("versions", tagged) == (tagged or field["versions"]), field
    name = field["name"]
    facts = {
        "name": name[0].lower() + name[1:],
        "type": field["type"],
        "versions": field.get("versions", tagged),
    }
    if "nullableVersions" in field:
        facts["nullableVersions"] = field["nullableVersions"]
    if "tag" in field:
        facts["tag"] = int(field["tag"])
    facts |= _default(field)
    within = field.get("fields") or structs.get(field["type"].removeprefix("[]"))
    if within:
        facts["fields"] = [_field(one, structs) for one in within]
    return facts


def _default(field: dict[str, Any]) -> dict[str, Any]:
    text = str(field.get("default") or "").lower()  # null, unlike "null", is none
    if text == "null":
        return {"default": None}
    if not text or text in {"0", "false"}:
        return {}
    if field["type"] == "bool":
        return {"default": text == "true"}
    return {"default": int(text, 0) if "int" in field["type"] else field["default"]}


def text_of(sets: dict[str, list[dict[str, Any]]]) -> str:
    """Return what `messages.json` holds: a message a line."""
    lines = ",\n".join(
        f'"{name}": [\n' + ",\n".join(map(json.dumps, messages)) + "\n]"
        for name, messages in sets.items()
    )
    return f'{{"release": "{RELEASE}",\n{lines}}}\n'


if __name__ == "__main__":
    DRAWN.write_text(text_of(drawn(KAFKA_JARS)))
