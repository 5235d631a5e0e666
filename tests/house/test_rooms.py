"""A reader who knows the folder of one verb knows those of all."""

import ast
from collections.abc import Iterable, Iterator
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
    "cleaner run_cleaner": "looks at log directories, without a session",
    "records run_records": "reads segments by threads, without a session",
    "disk run_disk": "looks at folders of this machine, without a session",
    "triage run_triage": "looks at folders of this machine, without a session",
    "recovery run_forecast": "reads disks, without a session",
    "recovery run_kit": "takes the session, if any, inside of what reads",
    "recovery run_apply": "changes files, without a session",
    "recovery run_rollback": "changes files, without a session",
}
"""Where a verb, a subcommand or a function differs from the rules below, and why."""

NAMED = {"scan": "build"}
"""Verbs whose rooms have other names: tools take a folder ``build`` for their output."""

OF_SOURCES = ("audit", "backup", "divergence", "forensics")
"""Verbs whose answers come from files: they take the session, and at most keep rows in tables."""

FURTHER = ([], ["caches"], ["grid"], ["tell"], ["caches", "tell"])


class Command(NamedTuple):
    """What is typed, and where it lies.

    Attributes:
        verb: The folder of its verb, as ``verbs/copies/divergence``.
        room: The folder of its file: its verb's, or that of a subcommand within.
        part: What its file is named after, behind ``command``: ``_plan`` of ``command_plan.py``.
        name: That of its function.
        own: The name of what its room does by itself.
        is_own: That is what it does.
    """

    verb: Path
    room: Path
    part: str
    name: str
    own: str
    is_own: bool


def _commands(group: click.Group) -> Iterator[Command]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _commands(command)
            continue
        assert command.callback is not None
        *rooms, file = command.callback.__module__.split(".")[1:]
        verb, room = LIB.joinpath(*rooms[:3]), LIB.joinpath(*rooms)
        own, name = NAMED.get(room.name, room.name), command.callback.__name__
        is_own = name in (own, getattr(group, "default", None)) or f"{own} {name}" in OTHERWISE
        yield Command(verb, room, file.removeprefix("command"), name, own, is_own)


COMMANDS = [command for command in _commands(cli) if command.verb.name not in OTHERWISE]
VERBS = sorted({command.verb for command in COMMANDS})
of_each_verb = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)


def _public(files: Iterable[Path]) -> dict[str, ast.FunctionDef]:
    """Return the public functions of some files, by name."""
    trees = [ast.parse(file.read_text("utf-8")) for file in files]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in functions if not node.name.startswith("_")}


def _positional(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


@of_each_verb
def test_a_verb_has_a_command_a_run_a_report_and_decisions(verb: Path) -> None:
    names = {path.stem.partition("_")[0] for path in verb.rglob("*")}

    assert {"command", "run", "report", "decide"} <= names


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: f"{one.room.name}-{one.name}")
def test_a_command_is_run_and_printed_by_functions_of_its_name(command: Command) -> None:
    """``run_x`` runs ``x``; ``run_x.py`` and ``report_x.py`` stand beside ``command_x.py``."""
    _, room, part, name, own, is_own = command

    assert f"run_{own if is_own else name}" in _public(room.glob("run*.py"))
    assert (room / f"run{part}.py").is_file()
    assert f"print{part or f'_{own}'}" in _public(room.glob("report*.py"))


@of_each_verb
def test_what_runs_takes_the_open_warehouse_and_its_options(verb: Path) -> None:
    first = "spark" if verb.name in OF_SOURCES else "warehouse"
    entries = {
        name: function
        for name, function in _public(verb.rglob("run*.py")).items()
        if name.startswith("run_")
    }

    assert entries
    for name, function in entries.items():
        taken = _positional(function)
        if f"{verb.name} {name}" not in OTHERWISE:
            assert taken.pop(0) == first, name
        assert taken.pop(0) == "options", name
        assert taken in FURTHER, name


@of_each_verb
def test_what_prints_says_so_by_its_name(verb: Path) -> None:
    for name, function in _public(verb.rglob("report*.py")).items():
        text = "".join(map(ast.unparse, function.body))
        writes = any(
            how in text for how in ("sys.std", "console()", "print_", "say(", "say_not_known(")
        )
        assert name.startswith("print_") == writes, name


@of_each_verb
def test_decisions_return_what_turns_one_frame_into_another(verb: Path) -> None:
    text = "".join(file.read_text("utf-8") for file in verb.rglob("*.py"))

    assert "Callable[[DataFrame], DataFrame]" not in text  # ``Transform`` is its name


def test_every_decision_lies_where_its_rules_and_its_mutants_are_held() -> None:
    files = [file for file in LIB.rglob("*.py") if "decide" in str(file.relative_to(LIB))]
    paths = [PurePosixPath(file.relative_to(LIB)) for file in files]

    assert len(paths) > 50
    for path in paths:
        assert path.name == "decide.py" or path.parent.name == "decide", path
        assert any(path.match(one) for patterns in GROUPS.values() for one in patterns), path


def test_the_exceptions_are_of_what_there_is() -> None:
    commands = [*_commands(cli)]
    verbs = {command.verb.name for command in commands}
    names = {f"{command.room.name} {command.name}" for command in commands}
    functions = {
        f"{command.verb.name} {name}"
        for command in commands
        for name in _public(command.verb.rglob("run*.py"))
    }

    assert OTHERWISE.keys() <= verbs | names | functions


def test_what_tests_share_lies_in_rooms() -> None:
    tests = LIB.parents[1] / "tests"

    assert [path.name for path in tests.glob("*.py")] == ["conftest.py"]
    assert not list(tests.glob("support/*.py"))
