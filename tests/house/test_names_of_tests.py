"""Names of the package that tests import, or put something in the place of, are there.

One that moved leaves a whole file of tests uncollected. The files are parsed, so that those marked
slow and long are looked at, too.
"""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_each_name_that_a_test_imports_is_there() -> None:
    absent = {
        f"{path.relative_to(TESTS)}:{node.lineno} {node.module}.{name.name}"
        for path, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for name in node.names
        if not _has(node.module, name.name)
    }
    assert not absent


def test_each_name_that_a_test_puts_another_in_place_of_is_there() -> None:
    absent = {
        f"{path.relative_to(TESTS)}:{node.lineno} {target}"
        for path, tree in _trees()
        for node, target in _targets(tree)
        if not _has(*target.rsplit(".", 1))
    }
    assert not absent


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(TESTS.rglob("*.py")):
        yield path, ast.parse(path.read_bytes())


def _targets(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Give the calls that put something in the place of a name of the package, with that name.

    Both forms: ``setattr("kafka_segments.room.name", …)``, and ``setattr(room, "name", …)`` of an
    imported room.
    """
    imported = {
        name.asname or name.name: f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("kafka_segments")
        for name in node.names
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"setattr", "patch"}
        ):
            match node.args:
                case [ast.Constant(str(target)), *_] if target.startswith("kafka_segments."):
                    yield node, target
                case [ast.Name(room), ast.Constant(str(name)), *_] if room in imported:
                    yield node, f"{imported[room]}.{name}"


@cache
def _has(module: str, name: str) -> bool:
    """Tell whether a module of the package, or of what tests share, has a name.

    Other modules have what is asked of them: the lock file holds them.
    """
    if module.split(".", maxsplit=1)[0] == "kafka_segments":
        return _package_has(module, name)
    path = TESTS.joinpath(*module.split("."))
    if path.is_dir():
        return any((path / file).exists() for file in (name, f"{name}.py"))
    return not path.with_suffix(".py").exists() or name in set(_top_level(path.with_suffix(".py")))


def _package_has(module: str, name: str) -> bool:
    try:
        holder = importlib.import_module(module)
    except ModuleNotFoundError:  # a class, whose attribute is put in place of
        outer, _, inner = module.rpartition(".")
        holder = getattr(importlib.import_module(outer), inner, None)
    if hasattr(holder, name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def _top_level(path: Path) -> Iterator[str]:
    """Give the names that a module defines or imports outside of functions and classes."""
    inner = list(ast.parse(path.read_bytes()).body)
    while inner:
        node = inner.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from ((name.asname or name.name).split(".")[0] for name in node.names)
            case _:
                yield from (
                    n.id
                    for n in ast.walk(node)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                )
                inner.extend(
                    child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
                )
