"""The options of ``build`` that the registered index formats bring along."""

from typing import Any

import click
import pytest

from kafka_segments.kafka.index.formats.by_name import (
    ALL_SUFFIXES,
    FOREIGN_SUFFIXES,
    FORMATS,
    KAFKAS_OWN,
)
from kafka_segments.kafka.index.formats.every_n_index import EveryNFormat, EveryNRule
from kafka_segments.kafka.index.formats.index_format import IndexFormat
from kafka_segments.kafka.index.formats.minute_index import MinuteFormat, MinuteVariant
from kafka_segments.verbs.scan.command import build
from kafka_segments.verbs.scan.format_options import chosen_format


def parsed(*arguments: str) -> dict[str, Any]:
    needed = ["--source", "/logs", "--warehouse", "/warehouse"]
    return build.make_context("build", [*needed, *arguments]).params


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), KAFKAS_OWN),
        (("--index-format", "minute"), MinuteFormat()),
        (
            ("--index-format", "minute", "--minute-variant", "derived"),
            MinuteFormat(MinuteVariant.DERIVED),
        ),
        (
            ("--index-format", "every-n", "--every-n", "7", "--every-n-rule", "by-ordinal"),
            EveryNFormat(7, EveryNRule.BY_ORDINAL),
        ),
        (("--index-format", "minute", "--every-n", "7"), MinuteFormat()),
    ],
)
def test_options_mean_a_format_and_its_variant(
    arguments: tuple[str, ...], expected: IndexFormat
) -> None:
    options = parsed(*arguments)

    assert chosen_format(options) == expected
    assert not {"index_format", "every_n", "minute_variant", "without_timestamps"} & set(options)


def test_every_variant_of_a_format_is_an_option_with_help_behind_its_choice() -> None:
    options = [
        param for param in build.get_params(click.Context(build)) if isinstance(param, click.Option)
    ]
    names = [option.opts[0] for option in options]
    first = names.index("--index-format")

    assert names[first - 1 : first + 5] == [
        "--in-place",
        "--index-format",
        "--without-timestamps",
        "--minute-variant",
        "--every-n",
        "--every-n-rule",
    ]
    assert [option.opts[0] for option in options if not option.help] == []


def test_the_suffixes_that_kafka_does_not_have_are_known_by_their_format() -> None:
    assert FOREIGN_SUFFIXES == {"minute": ".time.index"}
    assert ALL_SUFFIXES == (".index", ".timeindex", ".txnindex", ".time.index")
    assert list(FORMATS) == ["kafka", "kip33", "minute", "every-n"]
    assert {made.replaces for made in FORMATS.values()} == {".index", ".timeindex"}
