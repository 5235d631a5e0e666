"""Which configs of a broker are hidden, beside what Kafka takes for sensitive."""

import pytest

from kafka_segments.kafka.text.broker_configs import (
    OF_NEWER_RELEASES,
    OF_OLDER_RELEASES,
    PLAIN,
    is_sensitive,
)
from support.kafka.kafka_referee import Referee

PREFIXES = ("", "listener.name.x.", "listener.name.x.scram-sha-256.", "listener.name.", "x.")
UNKNOWN = ("a.b", "s3.secret.access.key", "confluent.license", "ssl.keystore.passwords", "", " ")


def test_names_are_hidden_that_kafka_takes_for_sensitive(referee: Referee) -> None:
    known = referee.config_types([])
    drawn = [prefix + name for prefix in PREFIXES for name in (*known, *UNKNOWN)]

    assert {name for name, hidden in known.items() if not hidden} == PLAIN
    assert {name: is_sensitive(name) for name in known} == known
    assert {name: is_sensitive(name) for name in drawn} == {
        name: hidden for name, hidden in referee.config_types(drawn).items() if name in set(drawn)
    }


@pytest.mark.parametrize(
    ("name", "is_hidden"),
    [
        ("listener.name.external.ssl.keystore.password", True),
        ("listener.name.external.plain.sasl.jaas.config", True),
        ("ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("some.plugins.own", True),
        ("listener.name.external.ssl.keystore.location", False),
        ("log.retention.ms", False),
        *((name, False) for name in sorted(OF_OLDER_RELEASES | OF_NEWER_RELEASES)),
    ],
)
def test_passwords_keys_and_unknown_names_are_hidden(name: str, is_hidden: bool) -> None:
    assert is_sensitive(name) == is_hidden
