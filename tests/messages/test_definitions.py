"""What `messages.json` holds against the definitions in Kafka's JARs, of every release here."""

import json
from typing import Any

import pytest

from kafka_segments.kafka.messages import control
from kafka_segments.kafka.messages.json_form import json_text
from kafka_segments.kafka.messages.messages import LAYOUTS
from support.kafka.kafka_referee import KAFKA_JARS, Referee
from support.kafka.message_definitions import DRAWN, drawn, text_of

pytestmark = pytest.mark.referee  # needs Kafka's JARs
RELEASES = sorted(path for path in KAFKA_JARS.with_name("releases").glob("*") if path.is_dir())
# Of messages that are not in logs
NOT_IN_LOGS = {"AbortedTxn"}


def test_messages_are_those_that_the_release_defines() -> None:
    assert DRAWN.read_text() == text_of(drawn(KAFKA_JARS)), "make messages"


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_messages_of_other_releases_are_among_ours(release: Any) -> None:
    """Ours may have later versions, and tagged fields, beside."""
    ours = {name: _by_name(messages) for name, messages in drawn(KAFKA_JARS).items()}
    for name, messages in drawn(release).items():
        for message in messages:
            if message["name"] not in NOT_IN_LOGS:
                _assert_is_within(message, ours[name][message["name"]])


def _assert_is_within(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    fields = _by_name(ours["fields"])

    assert theirs.get("apiKey") == ours.get("apiKey")
    assert theirs["flexibleVersions"] == ours["flexibleVersions"]
    assert theirs["validVersions"][-1] <= ours["validVersions"][-1]
    assert [fields[field["name"]] for field in theirs["fields"]] == theirs["fields"]
    later = fields.keys() - _by_name(theirs["fields"]).keys()
    assert all("tag" in fields[name] for name in later)


def _by_name(facts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in facts}


def test_a_message_of_defaults_is_the_one_that_kafka_makes(referee: Referee) -> None:
    types = {one["name"]: one for one in referee.message_types() if one["name"] in LAYOUTS}

    ours = {
        name: json_text(
            LAYOUTS[name],
            one["highest"],
            {field.name: field.default_maker()() for field in LAYOUTS[name].fields},
        )
        for name, one in types.items()
    }

    assert types.keys() >= {layout.name for layout in control.RECORDS.values()}
    assert {name: json.loads(text) for name, text in ours.items()} == {
        name: json.loads(one["fresh"]) for name, one in types.items()
    }
