"""Values whose JSON the drawn messages hardly have, and how far versions reach."""

import math

import pytest

from kafka_segments.kafka.messages.json_form import json_text
from kafka_segments.kafka.messages.layout import FLOAT64, STRING, Field, Layout, versions_of

LAYOUT = Layout("Quota").of(Field("key", STRING), Field("value", FLOAT64))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-2.5, "-2.5"),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (math.nan, '"NaN"'),
    ],
)
def test_a_double_that_is_no_number_is_text(value: float, text: str) -> None:
    assert json_text(LAYOUT, 0, {"key": "k", "value": value}) == f'{{"key":"k","value":{text}}}'


def test_text_stays_as_it_is_without_escapes_beyond_those_of_json() -> None:
    key = 'Größe "日本"\n'

    found = json_text(LAYOUT, 0, {"key": key, "value": 1.0})

    assert found == '{"key":"Größe \\"日本\\"\\n","value":1.0}'


def test_open_versions_end_with_the_greatest_int16() -> None:
    assert versions_of("3+") == range(3, 2**15)
    assert versions_of("0-3") == range(4)
    assert versions_of("2") == range(2, 3)
    assert versions_of("") == range(0)
