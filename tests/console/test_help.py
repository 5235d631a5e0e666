"""The help of the command line: every verb once, with a whole sentence, at any width."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

from kafka_segments.cli import QUESTIONS, cli
from kafka_segments.console import help_form


def _run(*words: str, width: int = 80) -> Result:
    return CliRunner().invoke(
        cli, words, prog_name="kafka-segments", terminal_width=width, max_content_width=width
    )


def test_every_verb_stands_below_one_question() -> None:
    listed = [verb.name for verbs in QUESTIONS.values() for verb in verbs]

    assert sorted(map(str, listed)) == sorted(cli.commands)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_sentence_of_each_verb_is_whole(width: int) -> None:
    text = "".join(_run("--help", width=width).output.split())

    assert "..." not in text.partition("[ARGS]...")[2]
    for verb in cli.commands.values():
        assert "".join((verb.help or "").split("\n\n")[0].split()) in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_sentence_of_each_subcommand_is_whole(width: int) -> None:
    for name, group in cli.commands.items():
        if not isinstance(group, click.Group):
            continue
        text = "".join(_run(name, "--help", width=width).output.split())

        assert text.partition("[ARGS]...")[2].partition("Commands:")[2]
        for verb in group.commands.values():
            assert "".join((verb.help or "").split("\n\n")[0].split()) in text


def test_help_is_a_word() -> None:
    assert _run("help").output == _run("--help").output
    assert _run("help", "retention", "plan").output == _run("retention", "plan", "--help").output
    assert _run("help", "nothing").exit_code == 2


def test_a_group_of_subcommands_has_its_sentence() -> None:
    assert all(isinstance(verb, click.Command) and verb.help for verb in cli.commands.values())


def _leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield words
        return
    for name, verb in command.commands.items():
        yield from _leaves(verb, (*words, name))


LEAVES = list(_leaves(cli))


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_the_example_of_a_verb_is_one_that_it_takes(words: tuple[str, ...], width: int) -> None:
    text = _run(*words, "--help", width=width).output.partition("\nExample:\n")[2]
    typed = shlex.split(text.replace("\\\n", " "))
    assert all(len(line) <= max(width, 80) for line in text.splitlines())
    assert typed[: len(words) + 1] == ["kafka-segments", *words]

    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    context = click.Context(command, info_name=words[-1])
    values, left, _ = command.make_parser(context).parse_args(typed[len(words) + 1 :])

    assert left == []
    required = {param.name for param in command.params if param.required}
    assert required <= {name for name, value in values.items() if value}


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_the_options_of_a_verb_stand_in_groups_each_once(words: tuple[str, ...]) -> None:
    text = _run(*words, "--help", width=200).output
    options = text.partition("\nWhat ")[2].partition("\nExample:")[0]
    flags = re.findall(r"^  (?:-\w, )?(--[\w-]+)", options, re.MULTILINE)

    assert "\nOptions:" not in text
    assert len(flags) == len(set(flags))
    assert flags[-1] == "--help"
    assert "What comes out:" in text


def test_a_group_of_options_names_options_that_there_are() -> None:
    flags: set[str] = set()
    for words in LEAVES:
        flags.update(re.findall(r"--[\w-]+", _run(*words, "--help", width=200).output))

    assert set(help_form._GROUP_OF) <= flags


@pytest.mark.parametrize("words", [("validate",), ("roll",), ("retention", "decide"), ("compact",)])
def test_no_verb_says_that_it_makes_tables_which_it_only_reads(words: tuple[str, ...]) -> None:
    text = " ".join(_run(*words, "--help", width=200).output.split())

    assert "made where it is not there" not in text
    assert "Root of the Delta tables that `build` made." in text
