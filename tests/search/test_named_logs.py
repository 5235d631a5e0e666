"""What a question names and the tables have not is refused, with the nearest names."""

from typing import Any

import pytest

from kafka_segments.engine.derived.logs_in_tables import KnownPartition
from kafka_segments.errors import UsageError
from kafka_segments.verbs.find.search import named_logs
from kafka_segments.verbs.find.search.named_logs import chosen_logs, refuse_absent

KNOWN = {
    KnownPartition("a", "orders", 1, 0),
    KnownPartition("a", "orders", 1, 1),
    KnownPartition("b", "payments", 2, 7),
}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_logs, "partitions_known", lambda _: KNOWN)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"topics": ("order",)}, "/wh has no segments of topic order: it has orders, payments"),
        ({"topics": ("orders",), "partitions": (7,)}, "no segments of partition 7: it has 1, 0"),
        ({"partitions": (9,)}, "no segments of partition 9"),
        ({"cluster": "c"}, "no logs of cluster c: it has b, a"),
        ({"cluster": "b", "topics": ("orders",)}, "no segments of topic orders: it has payments"),
        ({"broker_id": 3}, "no logs of broker 3: it has 2, 1"),
    ],
)
def test_an_absent_name_is_refused(choice: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen_logs("/wh", **choice)


@pytest.mark.parametrize(
    "choice",
    [{}, {"topics": ("orders",), "partitions": (0, 1)}, {"cluster": "b", "broker_id": 2}],
)
def test_a_name_that_is_there_is_taken(choice: dict[str, Any]) -> None:
    assert chosen_logs("/wh", **choice) == named_logs.LogChoice(**choice)


def test_a_topic_of_commits_alone_may_be_asked_for_the_lag() -> None:
    refuse_absent("/wh", named_logs.LogChoice(topics=("gone",), partitions=(5,)), also=["gone"])


def test_a_table_that_only_spark_can_read_is_not_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(named_logs, "partitions_known", lambda _: None)

    assert chosen_logs("/wh", topics=("any",)).topics == ("any",)
