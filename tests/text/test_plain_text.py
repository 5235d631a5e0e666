"""Names as text for a person: nothing acts on a terminal, nothing hides."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.kafka.text.plain_text import first_of, plain, plain_json, plain_lines

ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_more_names_than_a_sentence_takes_are_counted() -> None:
    assert first_of([], 2) == ""
    assert first_of([1, 2], 2) == "1, 2"
    assert first_of(iter("abcd"), 2) == "a, b and 2 more"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("payments-é 支払い", "payments-é 支払い"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x1b]52;c;Y29weQ==\x07", r"\x1b]52;c;Y29weQ==\x07"),
        ("good\rEVIL\nup to date\t", r"good\rEVIL\nup to date\t"),
        ("a\0b\x7f\x9b1m", r"a\x00b\x7f\x9b1m"),
        ("a\u202eb\u2066c\u2028d\u2029e\u0085f", r"a\u202eb\u2066c\u2028d\u2029e\x85f"),
        ("\ufeffa\u200bb\xadc\U000e0041", r"\ufeffa\u200bb\xadc\U000e0041"),
        ("no UTF-8: \udcff", r"no UTF-8: \udcff"),
    ],
)
def test_what_acts_or_hides_becomes_its_escape(name: str, text: str) -> None:
    assert plain(name) == text


@pytest.mark.slow
def test_no_sign_of_unicode_acts_on_a_terminal() -> None:
    shown = plain("".join(map(chr, range(sys.maxunicode + 1))))

    assert not [sign for sign in shown if unicodedata.category(sign) in ACTING]
    shown.encode("utf-8")


def test_lines_of_our_own_stay_lines() -> None:
    assert plain_lines("one\ntwo\r\x1b\n") == "one\ntwo\\r\\x1b\n"


@given(st.text())
def test_json_has_the_same_values_and_prints(name: str) -> None:
    line = plain_json(json.dumps({name: [name]}, ensure_ascii=False))

    assert line.isprintable()
    assert json.loads(line) == {name: [name]}
