"""Verbs run in one session; as a process, in that of SPARK_REMOTE, told as JSON lines."""

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple


class Done(NamedTuple):
    """A verb that was run: its exit status, what it printed, and how long it took.

    ``calls``: how often the server was asked to plan or to run something.
    """

    status: int
    out: str
    err: str
    seconds: float = 0.0
    calls: int = 0


class CountedCalls:
    """What sends a client's calls, which counts those that have the server plan or run."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        self.calls += name in ("AnalyzePlan", "ExecutePlan")
        return getattr(self._stub, name)


def run_verb(arguments: list[str]) -> Done:
    """Run one verb in the session that is active."""
    out, err, begin = io.StringIO(), io.StringIO(), time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = status_of(arguments)
    return Done(status, out.getvalue(), err.getvalue(), time.monotonic() - begin)


def status_of(arguments: list[str]) -> int:
    """Run one verb in the session that is active; return its exit status."""
    from kafka_segments.cli import cli

    try:
        cli(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def main() -> None:
    """Run what stdin asks for, a JSON list of arguments a line."""
    from kafka_segments.engine.spark.session import spark_session

    with spark_session("client", root=Path(__file__).resolve().parents[3]) as spark:
        client: Any = spark.client
        client._stub = counted = CountedCalls(client._stub)
        for line in sys.stdin:
            before = counted.calls
            done = run_verb(json.loads(line))
            print(json.dumps(done._replace(calls=counted.calls - before)), flush=True)


if __name__ == "__main__":
    main()
