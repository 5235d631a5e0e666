"""A reader who knows the folder of one verb knows those of all."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import click
import pytest

from kafka_segments.cli import cli
from mutants.operators import GROUPS

LIB = Path(__file__).parents[2] / "lib" / "kafka_segments"
OTHERWISE = {
    "shell": "runs the other verbs, which report and decide",
    "backup verify": "is all that `backup` does: it runs and prints by the verb's name",
    "search bootstrap": "is `search offsets` with a time of its own",
    "compact run_undo": "puts files back, without a session",
    "recovery run_forecast": "reads disks, without a session",
    "recovery run_kit": "takes the session, if any, inside of what reads",
    "recovery run_apply": "changes files, without a session",
    "recovery run_rollback": "changes files, without a session",
}
"""Where a verb, a subcommand or a function differs from the rules below, and why."""

NAMED = {"scan": "build"}
"""Verbs whose rooms have other names: tools take a folder ``build`` for their output."""

FURTHER = ([], ["caches"], ["grid"], ["tell"], ["caches", "tell"])


class Command(NamedTuple):
    """What is typed, and where it lies.

    Attributes:
        verb: What its room is named after; of ``verbs/scan`` it is ``build``.
        room: The folder of its verb.
        part: What its file is named after, behind ``command``: ``_plan`` of ``command_plan.py``.
        name: That of its function.
        is_own: It is what the verb does by itself.
    """

    verb: str
    room: Path
    part: str
    name: str
    is_own: bool


def _commands(group: click.Group) -> Iterator[Command]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _commands(command)
            continue
        assert command.callback is not None
        *rooms, file = command.callback.__module__.split(".")[1:]
        verb, name = NAMED.get(rooms[-1], rooms[-1]), command.callback.__name__
        is_own = name in (verb, getattr(group, "default", None)) or f"{verb} {name}" in OTHERWISE
        yield Command(verb, LIB.joinpath(*rooms), file.removeprefix("command"), name, is_own)


COMMANDS = [command for command in _commands(cli) if command.verb not in OTHERWISE]
ROOMS = {command.verb: command.room for command in COMMANDS}
VERBS = sorted(ROOMS)


def _public(room: Path, files: str) -> dict[str, ast.FunctionDef]:
    """Return the public functions of some files of a room, by name."""
    trees = [ast.parse(file.read_text("utf-8")) for file in room.glob(files)]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in functions if not node.name.startswith("_")}


def _positional(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_command_a_run_a_report_and_decisions(verb: str) -> None:
    names = {path.stem.partition("_")[0] for path in ROOMS[verb].iterdir()}

    assert {"command", "run", "report", "decide"} <= names


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.verb}-{command.name}")
def test_a_command_is_run_and_printed_by_functions_of_its_name(command: Command) -> None:
    """``run_x`` runs ``x``; ``run_x.py`` and ``report_x.py`` stand beside ``command_x.py``."""
    verb, room, part, name, is_own = command

    assert f"run_{verb if is_own else name}" in _public(room, "run*.py")
    assert (room / f"run{part}.py").is_file()
    assert f"print{part or f'_{verb}'}" in _public(room, f"report{part}.py")


@pytest.mark.parametrize("verb", VERBS)
def test_what_runs_takes_the_session_and_its_options(verb: str) -> None:
    entries = {
        name: function
        for name, function in _public(ROOMS[verb], "run*.py").items()
        if name.startswith("run_")
    }

    assert entries
    for name, function in entries.items():
        first = ["options"] if f"{verb} {name}" in OTHERWISE else ["spark", "options"]
        assert _positional(function)[: len(first)] == first, name
        assert _positional(function)[len(first) :] in FURTHER, name


@pytest.mark.parametrize("verb", VERBS)
def test_what_prints_says_so_by_its_name(verb: str) -> None:
    for name, function in _public(ROOMS[verb], "report*.py").items():
        text = "".join(map(ast.unparse, function.body))
        writes = any(how in text for how in ("sys.std", "console()", "print_", "say("))
        assert name.startswith("print_") == writes, name


@pytest.mark.parametrize("verb", VERBS)
def test_decisions_return_what_turns_one_frame_into_another(verb: str) -> None:
    text = "".join(file.read_text("utf-8") for file in ROOMS[verb].rglob("*.py"))

    assert "Callable[[DataFrame], DataFrame]" not in text  # ``Transform`` is its name


def test_every_decision_lies_where_its_rules_and_its_mutants_are_held() -> None:
    files = [file for file in LIB.rglob("*.py") if "decide" in str(file.relative_to(LIB))]
    paths = [PurePosixPath(file.relative_to(LIB)) for file in files]

    assert len(paths) > 50
    for path in paths:
        assert path.name == "decide.py" or path.parent.name == "decide", path
        assert any(path.match(one) for patterns in GROUPS.values() for one in patterns), path


def test_the_exceptions_are_of_what_there_is() -> None:
    rooms = {command.verb: command.room for command in _commands(cli)}
    names = {f"{command.verb} {command.name}" for command in _commands(cli)}
    functions = {
        f"{verb} {name}" for verb, room in rooms.items() for name in _public(room, "run*.py")
    }

    assert OTHERWISE.keys() <= rooms.keys() | names | functions
