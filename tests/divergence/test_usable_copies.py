"""Which broker's a copy is."""

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.verbs.copies.divergence.elect.decide.usable_copies import broker_ids


def test_a_copy_is_of_the_broker_that_it_notes_or_else_is_named_by() -> None:
    assert broker_ids({"b": {2}, "7": set(), "1": {3}}) == {"b": 2, "7": 7, "1": 3}


@pytest.mark.parametrize(
    ("node_ids", "message"),
    [
        ({"a": {3, 1}}, "copy a: meta.properties say 1 and 3 of its node id"),
        ({"7": {3, 1}}, "copy 7: meta.properties say 1 and 3 of its node id"),
        ({"a": set()}, "copy a: meta.properties say nothing of its node id"),
        ({"²": set()}, "copy ²: meta.properties say nothing of its node id"),
        ({"a": {1}, "b": {2}, "1": set()}, "copy 1 is of broker 1, as another one is: leave one"),
    ],
)
def test_a_copy_whose_broker_is_not_known_or_not_its_own_is_refused(
    node_ids: dict[str, set[int]], message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        broker_ids(node_ids)

    assert str(raised.value).startswith(message)
