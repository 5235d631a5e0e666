"""Calls verbs and looks up names of the API where some packages cannot be imported, as in the core.

Run as a program: stdin has the packages and the calls as JSON, stdout gets what came of each.
"""

import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Refusing(MetaPathFinder):
    """Finds none of some packages, as if they were not installed."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = frozenset(packages)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse what is named; leave the rest to others."""
        del path, target
        if fullname.partition(".")[0] in self._packages:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def call(words: list[str]) -> tuple[int, str, str]:
    """Return the exit status of a verb, and what it said."""
    from kafka_segments.cli import cli

    said, errors = io.StringIO(), io.StringIO()
    status: object = None
    with redirect_stdout(said), redirect_stderr(errors):
        try:
            cli(words, prog_name="kafka-segments")
        except SystemExit as ended:
            status = ended.code
    assert isinstance(status, int)
    return status, said.getvalue(), errors.getvalue()


def asked_for(name: str) -> str:
    """Return why a name of the Python API cannot be had; empty: it can."""
    import kafka_segments

    try:
        getattr(kafka_segments, name)
    except kafka_segments.UsageError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    sys.meta_path.insert(0, Refusing(asked["packages"]))
    names = {name: asked_for(name) for name in asked["names"]}
    json.dump({"names": names, "calls": [call(words) for words in asked["calls"]]}, sys.stdout)
