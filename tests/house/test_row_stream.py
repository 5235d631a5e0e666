"""Rows come to the driver by one function: what it avoids is easily written anew."""

import ast
from pathlib import Path

LIB = Path(__file__).parents[2] / "lib" / "kafka_segments"


def test_only_the_stream_of_rows_calls_what_leaks_jobs() -> None:
    callers = {
        file.relative_to(LIB).as_posix()
        for file in LIB.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "toLocalIterator"
    }

    assert callers == {"engine/frames/local_rows.py"}
