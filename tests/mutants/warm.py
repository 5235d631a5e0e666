"""Tries mutants one after another in one session of pytest, Spark's included: a plugin.

A mutant is made in place: the code of the changed function is exchanged, or the changed constants.
Each test runs once unchanged; those that fail, or do not reach a mutant, say nothing of it. What
Spark's Python processes run, and what a fixture has made before, is not changed: a mutant that is
left alive here is tried again in a process of its own. A mutant that ends the session, or never
comes back from compiled code, is killed; what the session was about to do is noted for the next.
"""

import faulthandler
import json
import os
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from mutants.operators import Mutant, mutants_of
from mutants.reach import Calls, Sources, imported

WARM = "MUTANTS_WARM"  # names the file with the keys of the mutants to try
FOUND = "MUTANTS_FOUND"  # and the one that the plugin writes
_FEW_SECONDS = 10  # of the CPU
_DEAF_TIMES = 10  # as long, in time, until a session is given up that no signal reaches
_MOST_SECONDS = 20  # of the tests of a file, for a mutant; the last one may take longer
_DATA = (int, float, str, tuple, dict, list, frozenset, types.NoneType)


class _Plugin:
    def __init__(self, package: Path, keys: list[list[Any]], out: Path) -> None:
        wanted = {tuple(key) for key in keys}
        self._package, self._out = package, out
        self._left = [one for one in mutants_of(package) if one.key in wanted]
        self._sources = Sources(package)
        self._tests: dict[str, dict[str, Any]] = {}
        self._killed: list[tuple[Any, str, str]] = []
        self._trying: dict[str, Any] = {}
        if out.exists():
            self._go_on(json.loads(out.read_text()))

    def _go_on(self, before: dict[str, Any]) -> None:
        """Take what the session before had found; it ended with the mutant that it tried."""
        self._tests = before["tests"]
        trying = before["trying"]
        ended = (trying["key"], trying["test"], "the session ended")
        self._killed = [*before["killed"], ended]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            files.setdefault(item.path, []).append(item)
        for items in files.values():
            self._try_file(items)
            session._setupstate.teardown_exact(session)  # what the file has set up
            self._write()
        session._setupstate.teardown_exact(None)
        return True

    def _try_file(self, items: list[pytest.Item]) -> None:
        self._leave_out_what_others_killed()
        passing = [item for item in items if self._runs(item)]
        passing.sort(key=lambda item: self._tests[item.nodeid]["call"])
        for mutant in list(self._left):
            functions = self._sources.that_run(mutant.path, mutant.function)
            seconds = _MOST_SECONDS
            for item in passing:
                if not functions & set(self._tests[item.nodeid]["runs"]):
                    continue
                if seconds <= 0:
                    break
                seconds -= self._tests[item.nodeid]["call"]
                if why := self._kills(item, mutant):
                    self._killed.append((mutant.key, item.nodeid, why))
                    self._left.remove(mutant)
                    self._write()
                    break

    def _leave_out_what_others_killed(self) -> None:
        """Take note of the sessions beside this one, which try the same mutants on other files."""
        beside = [out for out in self._out.parent.glob("test_*.json") if out != self._out]
        found = [self._killed, *(json.loads(out.read_text())["killed"] for out in beside)]
        killed = {tuple(key) for one in found for key, _, _ in one}
        self._left = [mutant for mutant in self._left if mutant.key not in killed]

    def _write(self) -> None:
        found = {
            "tests": self._tests,
            "prepared": [],
            "killed": self._killed,
            "trying": self._trying,
        }
        whole = self._out.with_suffix(".new")
        whole.write_text(json.dumps(found))
        whole.replace(self._out)

    def _runs(self, item: pytest.Item) -> bool:
        """Run a test unchanged; tell whether it passes."""
        calls = Calls(f"{self._package}/")
        began = time.monotonic()
        with calls.noted():
            why = _failure(item)
        test = {
            "passed": not why,
            "call": time.monotonic() - began,
            "runs": sorted(calls.called | imported(item)),
        }
        self._tests[item.nodeid] = test
        return not why

    def _kills(self, item: pytest.Item, mutant: Mutant) -> str:
        """Give how a test fails with a mutant, empty where it does not."""
        try:
            restore = _exchange(self._package, mutant)
        except Exception as error:  # noqa: BLE001  (the file cannot even be loaded with it)
            return repr(error)
        seconds = _FEW_SECONDS + 4 * self._tests[item.nodeid]["call"]
        file = item.nodeid.partition("::")[0]
        self._trying = {"key": mutant.key, "test": item.nodeid, "file": file}
        self._write()
        faulthandler.dump_traceback_later(_DEAF_TIMES * seconds, exit=True, file=sys.__stderr__)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            return _failure(item)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            faulthandler.cancel_dump_traceback_later()
            self._trying = {}
            restore()


def _end(*_: object) -> None:
    raise TimeoutError("a mutant that does not end")


def _failure(item: pytest.Item) -> str:
    """Run a test; give the last line of what it says, empty where it passes."""
    item._initrequest()
    for report in runtestprotocol(item, log=False, nextitem=item.parent):
        if not report.passed:
            lines = [line for line in report.longreprtext.splitlines() if line.startswith("E  ")]
            return (lines or [report.outcome])[-1][:200]
    return ""


def _exchange(package: Path, mutant: Mutant) -> Callable[[], None]:
    """Change what is loaded, as far as it can be; give what undoes it."""
    path = package / mutant.path
    name = f"kafka_segments.{mutant.path.removesuffix('.py').replace('/', '.')}"
    loaded = sys.modules.get(name)
    if loaded is None:
        return lambda: None
    changed = types.ModuleType(name)
    changed.__file__ = str(path)
    with_mutant = compile(mutant.applied(path.read_bytes()), str(path), "exec")
    exec(with_mutant, changed.__dict__)
    undo: list[tuple[Any, str, Any]] = []

    def put(holder: Any, attribute: str, value: Any) -> None:
        undo.append((holder, attribute, getattr(holder, attribute)))
        setattr(holder, attribute, value)

    if mutant.function:
        old: Any = loaded
        new: Any = changed
        for part in mutant.function.split("."):
            if isinstance(old, types.FunctionType):
                break
            old, new = _plain(getattr(old, part)), _plain(getattr(new, part))
        if isinstance(old, types.FunctionType):
            for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
                put(old, attribute, getattr(new, attribute))
    else:
        users = [one for key, one in sys.modules.items() if key.startswith("kafka_segments")]
        for key, value in vars(changed).items():
            before = getattr(loaded, key, None)
            if key[:2] != "__" and isinstance(value, _DATA) and value != before:
                for user in users:
                    if vars(user).get(key) is before:
                        put(user, key, value)

    def restore() -> None:
        for holder, attribute, value in reversed(undo):
            setattr(holder, attribute, value)

    return restore


def _plain(found: Any) -> Any:
    """Give the function of a method of a class, or of a property."""
    for attribute in ("__func__", "fget", "func"):
        found = getattr(found, attribute, found)
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin where it is asked for."""
    if WARM in os.environ:
        import kafka_segments

        signal.signal(signal.SIGVTALRM, _end)
        package = Path(kafka_segments.__file__).parent
        keys = json.loads(Path(os.environ[WARM]).read_text())
        config.pluginmanager.register(_Plugin(package, keys, Path(os.environ[FOUND])))
