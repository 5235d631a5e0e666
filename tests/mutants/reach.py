"""Which tests run which functions of the package: a plugin of pytest, and what it has found.

Compiled functions do not tell when they run. The tests that run a function which names one,
directly or through other compiled ones, are taken to run it.
"""

import ast
import contextlib
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

REACHED = "MUTANTS_REACHED"  # names the file that the plugin writes


class Calls:
    """Notes the functions of the package that are called."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._known: dict[Any, str | None] = {}
        self.called: set[str] = set()

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is called meanwhile."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._known:
            inside = code.co_filename.startswith(self._package)
            path = code.co_filename[len(self._package) :]
            parts = (part for part in code.co_qualname.split(".") if part[0] != "<")
            self._known[code] = f"{path}:{'.'.join(parts)}" if inside else None
        name = self._known[code]
        if name is not None:
            self.called.add(name)


def imported(item: pytest.Item) -> set[str]:
    """Give the modules of the package of which a test's file names something, each as `path:`."""
    names = vars(getattr(item, "module", None) or object).values()
    modules = {getattr(value, "__module__", None) or "" for value in names}
    inside = [name.partition(".")[2] for name in modules if name.startswith("kafka_segments.")]
    return {f"{name.replace('.', '/')}.py:" for name in inside}


class _Plugin:
    def __init__(self, package: str, out: Path) -> None:
        self._calls, self._out = Calls(package), out
        self._tests: dict[str, dict[str, Any]] = {}
        self._prepared: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._calls.called = set()
        began = time.process_time()
        try:
            with self._calls.noted():
                return (yield)
        finally:
            test = self._of(item.nodeid)
            test["runs"] = sorted(self._calls.called | imported(item))
            if not {"spark", "referee"} & set(getattr(item, "fixturenames", ())):
                test["cpu"] = time.process_time() - began

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        result = yield
        self._prepared |= self._calls.called
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._of(report.nodeid)
        test[report.when] = report.duration
        test["passed"] = test["passed"] and report.passed

    def pytest_sessionfinish(self) -> None:
        found = {"tests": self._tests, "prepared": sorted(self._prepared)}
        self._out.write_text(json.dumps(found))

    def _of(self, nodeid: str) -> dict[str, Any]:
        return self._tests.setdefault(nodeid, {"passed": True})


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin where it is asked for."""
    if REACHED in os.environ:
        import kafka_segments

        package = f"{Path(kafka_segments.__file__).parent}/"
        config.pluginmanager.register(_Plugin(package, Path(os.environ[REACHED])))


@dataclass
class Reach:
    """The tests of each function, and what a test costs: of the CPU, where no JVM is asked."""

    by_function: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    prepared: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)
    starting: dict[str, float] = field(default_factory=dict)  # by test file: its dearest set-up
    failed: list[str] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Take what one run of the plugin has written."""
        for test, facts in found["tests"].items():
            if not facts["passed"]:
                self.failed.append(test)
                continue
            file = test.partition("::")[0]
            call = facts.get("call", 0.0)
            self.seconds[test] = min(call, facts.get("cpu", call))
            self.starting[file] = max(self.starting.get(file, 0.0), facts.get("setup", 0.0))
            for function in facts["runs"]:
                self.by_function[function].add(test)
            for function in found["prepared"]:
                self.prepared[function].add(test)

    def tests(self, functions: set[str], *, seconds: float, but: Sequence[str] = ()) -> list[str]:
        """Give the tests that run one of the functions, cheap ones first, up to a sum of time."""
        chosen: list[str] = []
        started: set[str] = set()
        for of in (self.by_function, self.prepared):
            tests = set().union(*(of.get(function, set()) for function in functions))
            for test in sorted(tests - {*chosen, *but}, key=lambda test: (self._cost(test), test)):
                file = test.partition("::")[0]
                cost = self.seconds[test] + (0 if file in started else self.starting[file])
                if cost > seconds and chosen:
                    continue
                seconds -= cost
                started.add(file)
                chosen.append(test)
        return chosen

    def seconds_of(self, file: str) -> float:
        """Return what the tests of a file cost, with the dearest set-up."""
        of_file = [cost for test, cost in self.seconds.items() if test.startswith(f"{file}::")]
        return sum(of_file, self.starting.get(file, 0.0))

    def _cost(self, test: str) -> float:
        return self.seconds[test] + self.starting[test.partition("::")[0]]


class Sources:
    """The functions of the package, which of them are compiled, and who names whom."""

    def __init__(self, package: Path) -> None:
        self._named: dict[str, set[str]] = {}  # function -> the names in its text
        self.compiled: set[str] = set()
        self._imports: dict[str, set[str]] = {}
        self.compiled_files: set[str] = set()
        for path in sorted(package.rglob("*.py")):
            self._read(path.relative_to(package).as_posix(), ast.parse(path.read_bytes()))

    def _read(self, path: str, tree: ast.Module) -> None:
        self._imports[path] = {name for node in ast.walk(tree) for name in _imported(node)}
        found = {f"{path}:{name}": node for name, node in _functions(tree, "")}
        self._named |= {function: _names(node) for function, node in found.items()}
        compiled = {function for function, node in found.items() if _is_marked(node, "njit")}
        if any(_is_marked(node, "intrinsic") for node in found.values()):
            compiled = set(found)  # what emits code runs only while its users are compiled
        self.compiled |= compiled
        if compiled:
            self.compiled_files.add(path)

    def that_run(self, path: str, function: str) -> set[str]:
        """Give the functions, not compiled, by which a test may be seen to run a function."""
        if not function or f"{path}:{function}" not in self._named:
            return self._of_module(path)
        found, todo = set(), [f"{path}:{function}"]
        while todo:
            one = todo.pop()
            if one in found:
                continue
            found.add(one)
            if one in self.compiled:
                name = one.rpartition(":")[2].removesuffix(".__init__").rpartition(".")[2]
                todo += [other for other, names in self._named.items() if name in names]
        return found - self.compiled

    def _of_module(self, path: str) -> set[str]:
        module = path.removesuffix(".py").replace("/", ".")
        near = {path} | {other for other, names in self._imports.items() if module in names}
        found = {f"{path}:"}
        for function in self._named:
            file, _, name = function.partition(":")
            if file in near:
                found |= self.that_run(file, name)
        return found

    def compiled_with(self, path: str) -> set[str]:
        """Give the files whose compiled functions may hold code or constants of a file."""
        found, todo = set(), [path]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                module = one.removesuffix(".py").replace("/", ".")
                todo += [other for other, names in self._imports.items() if module in names]
        return found & self.compiled_files


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka_segments"):
        module = (node.module or "").removeprefix("kafka_segments").removeprefix(".")
        return [module, *(f"{module}.{name.name}".removeprefix(".") for name in node.names)]
    return []


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{outer}.{child.name}" if outer else child.name
            if isinstance(child, ast.FunctionDef):
                yield name, child
            yield from _functions(child, name)
        else:
            yield from _functions(child, outer)


def _is_marked(function: ast.FunctionDef, mark: str) -> bool:
    return any(mark in ast.unparse(decorator) for decorator in function.decorator_list)


def _names(node: ast.AST) -> set[str]:
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
