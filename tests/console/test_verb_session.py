"""Where the session of a verb begins: each that reads tables says of which warehouse."""

import ast
from collections.abc import Iterator
from pathlib import Path

import kafka_segments

OF_NO_TABLES = {
    "'forensics'",
    "'divergence elect'",
    "'divergence mirror'",
    "'divergence repair'",
    "'recovery kit'",
}


def _sessions() -> Iterator[ast.Call]:
    for file in (Path(kafka_segments.__file__).parent / "verbs").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "verb_session":
                yield node


def test_a_verb_that_fails_looks_for_what_is_broken_of_its_warehouse() -> None:
    without = {
        ast.unparse(call.args[0])
        for call in _sessions()
        if "warehouse" not in {keyword.arg for keyword in call.keywords}
    }

    assert without == OF_NO_TABLES
