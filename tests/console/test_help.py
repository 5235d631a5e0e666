"""The help of the command line: every verb once, with a whole sentence, at any width."""

import click
import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import QUESTIONS, cli


def _run(*words: str, width: int = 80) -> Result:
    return CliRunner().invoke(cli, words, terminal_width=width)


def test_every_verb_stands_below_one_question() -> None:
    listed = [verb.name for verbs in QUESTIONS.values() for verb in verbs]

    assert sorted(map(str, listed)) == sorted(cli.commands)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_sentence_of_each_verb_is_whole(width: int) -> None:
    text = "".join(_run("--help", width=width).output.split())

    assert "..." not in text.partition("[ARGS]...")[2]
    for verb in cli.commands.values():
        assert "".join((verb.help or "").split("\n\n")[0].split()) in text


def test_help_is_a_word() -> None:
    assert _run("help").output == _run("--help").output
    assert _run("help", "retention", "plan").output == _run("retention", "plan", "--help").output
    assert _run("help", "nothing").exit_code == 2


def test_a_group_of_subcommands_has_its_sentence() -> None:
    assert all(isinstance(verb, click.Command) and verb.help for verb in cli.commands.values())
