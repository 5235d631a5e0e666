"""What numba has compiled is kept by the sources it is compiled of."""

import ast
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from conftest import LIBRARY
from kafka_segments.compiled_sources import ROOMS, compiled_sources

PACKAGE = LIBRARY / "kafka_segments"
IMPORTED = re.compile(r"^\s*(?:from|import) kafka_segments\.?([\w.]*)", re.MULTILINE)


def _room(source: Path) -> str:
    return _first_two(source.relative_to(PACKAGE).parts)


def _first_two(parts: Sequence[str]) -> str:
    """Return the room of formats, ``kafka/wire``; of others the outermost one."""
    return "/".join(parts[: 2 if parts[0] == "kafka" else 1])


def test_all_that_is_compiled_lies_in_the_rooms_that_name_its_cache() -> None:
    sources = {source: source.read_text("utf-8") for source in PACKAGE.rglob("*.py")}

    compiled = {_room(source) for source, text in sources.items() if "import njit" in text}
    reached = {
        _first_two(name.split("."))
        for source, text in sources.items()
        if _room(source) in ROOMS
        for name in IMPORTED.findall(text)
    }

    assert compiled == {"kafka/wire", "kafka/index"}
    assert reached <= {room.removesuffix(".py") for room in ROOMS}


def test_what_python_calls_of_compiled_functions_is_kept() -> None:
    """Others have no entry for Python (``compiling``)."""
    trees = {source: ast.parse(source.read_text("utf-8")) for source in PACKAGE.rglob("*.py")}
    inner = {
        (_module(source), node.name)
        for source, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "njit" in _how(node) and "cache" not in _how(node)
    }

    called = [
        f"{source.relative_to(PACKAGE)}:{name.lineno} {name.id}"
        for source, tree in trees.items()
        for imported in [_imported(tree)]
        for name in _read_by_python(tree)
        if imported.get(name.id, (_module(source), name.id)) in inner
    ]

    assert len(inner) > 50
    assert not called


def _module(source: Path) -> str:
    return ".".join(("kafka_segments", *source.relative_to(PACKAGE).with_suffix("").parts))


def _how(function: ast.FunctionDef) -> str:
    """Return by which decorators a function is compiled."""
    return " ".join(map(ast.unparse, function.decorator_list))


def _imported(tree: ast.Module) -> dict[str, tuple[str, str]]:
    return {
        name.asname or name.name: (str(node.module), name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


def _read_by_python(node: ast.AST) -> Iterator[ast.Name]:
    """Give the names that are read outside of compiled functions; parameters are none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            if "njit" in _how(child) or "overload" in _how(child):
                continue
            own = {
                argument.arg for argument in ast.walk(child.args) if isinstance(argument, ast.arg)
            }
            yield from (name for name in _read_by_python(child) if name.id not in own)
        else:
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                yield child
            yield from _read_by_python(child)


@pytest.mark.parametrize(
    ("changed", "is_another"),
    [
        ("kafka/wire/varints.py", True),
        ("errors.py", True),
        ("verbs/tell/report/run.py", False),
        ("cli.py", False),
    ],
)
def test_another_cache_is_taken_for_other_compiled_sources_alone(
    tmp_path: Path, changed: str, is_another: bool
) -> None:
    copy = tmp_path / "kafka_segments"
    shutil.copytree(PACKAGE, copy)
    assert compiled_sources(copy) == compiled_sources(PACKAGE)

    with (copy / changed).open("a") as source:
        source.write("# another\n")

    assert (compiled_sources(copy) != compiled_sources(PACKAGE)) == is_another
