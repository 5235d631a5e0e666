"""A reader who knows the folder of one verb knows those of all."""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from mutants.operators import GROUPS

LIB = Path(__file__).parents[2] / "lib" / "kafka_segments"
VERBS = (
    *("audit", "retention", "roll", "search", "lag", "latency", "failover", "forensics"),
    *("report", "sql"),
)

FURTHER = ([], ["caches"], ["grid"], ["tell"], ["caches", "tell"])


def _public(file: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def _positional(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_command_a_run_a_report_and_decisions(verb: str) -> None:
    names = {path.stem for path in (LIB / verb).iterdir()}

    assert {"command", "run", "report", "decide"} <= names


def test_every_decision_lies_where_its_rules_and_its_mutants_are_held() -> None:
    files = [file for file in LIB.rglob("*.py") if "decide" in str(file.relative_to(LIB))]
    paths = [PurePosixPath(file.relative_to(LIB)) for file in files]

    assert len(paths) > 50
    for path in paths:
        assert path.name == "decide.py" or path.parent.name == "decide", path
        assert any(path.match(one) for patterns in GROUPS.values() for one in patterns), path


@pytest.mark.parametrize("verb", VERBS)
def test_what_runs_takes_the_session_and_its_options(verb: str) -> None:
    entries = [
        function
        for file in (LIB / verb).glob("run*.py")
        for function in _public(file)
        if function.name.startswith("run_") and function.name != "run_query"
    ]

    assert entries
    for function in entries:
        assert _positional(function)[:2] == ["spark", "options"], function.name
        assert _positional(function)[2:] in FURTHER, function.name


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_read_is_printed_by_functions_named_alike(verb: str) -> None:
    entries = [
        function.name
        for file in (LIB / verb).glob("report*.py")
        for function in _public(file)
        if function.name.startswith("print_")
    ]

    assert entries
    assert f"print_{verb}" in entries


@pytest.mark.parametrize("verb", VERBS)
def test_decisions_return_what_turns_one_frame_into_another(verb: str) -> None:
    files = [LIB / verb / "decide.py", *(LIB / verb / "decide").glob("*.py")]
    text = "".join(file.read_text("utf-8") for file in files if file.is_file())

    assert "Callable[[DataFrame], DataFrame]" not in text  # ``Transform`` is its name
