"""README and docs/: the commands that they show are verbs, with options that these have."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kafka_segments.cli import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]

_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ *(?:\$ )?(?:\S*/)?kafka-segments (.+)$", re.MULTILINE)
_INLINE = re.compile(r"`kafka-segments ([^`]+)`")
_TARGET = re.compile(r"(?:^|`)make ([a-z][a-z0-9-]*)", re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every command that a page shows, in code blocks and in the text."""
    for block in _BLOCK.findall(text):
        for line in _COMMAND.findall(block.replace("\\\n", " ")):
            yield shlex.split(line, comments=True)
    for command in _INLINE.findall(text):
        yield command.split()


def unknown(words: list[str]) -> list[str]:
    """Return the verb of a command, or those of its options, that there are none of."""
    if words[0] not in {
        *cli.commands,
        "VERB",
        "--help",
        *(n for one in cli.params for n in one.opts),
    }:
        return words[:1]
    command: click.Command = cli
    for word in words:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
    known = set(_options(command)) | {"--help"}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


def _options(command: click.Command) -> Iterator[str]:
    """Yield the options of a command; of a group those of its commands, as one is its default."""
    for option in command.get_params(click.Context(command)):
        yield from option.opts
    if isinstance(command, click.Group):
        for verb in command.commands.values():
            yield from _options(verb)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_exist_with_their_options(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")

    assert [wrong for words in commands(text) for wrong in unknown(words)] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_targets_of_a_page_are_in_the_makefile(page: str) -> None:
    rules = re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)

    assert set(_TARGET.findall((ROOT / page).read_text("utf-8"))) <= set(rules)


def test_what_there_is_none_of_is_told() -> None:
    text = (
        "```\n$ kafka-segments roll --no 1\nkafka-segments rol --set a=1\n```\n`kafka-segments lag`"
    )

    assert [unknown(words) for words in commands(text)] == [["--no"], ["rol"], []]
