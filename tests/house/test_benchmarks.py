"""Benchmarks are not run with the tests; what they take from the package is there all the same."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _taken(file: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a file takes from the package."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka_segments"):
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.py")), ids=lambda file: file.stem)
def test_what_a_benchmark_takes_from_the_package_is_there(file: Path) -> None:
    for module, name in _taken(file):
        holder = importlib.import_module(module)
        if not hasattr(holder, name):
            importlib.import_module(f"{module}.{name}")
