"""A client process: verbs one after another in one session of SPARK_REMOTE, told as JSON lines."""

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Done(NamedTuple):
    """A verb that was run: its exit status, what it printed, and how long it took."""

    status: int
    out: str
    err: str
    seconds: float


def run_verb(arguments: list[str]) -> Done:
    """Run one verb in the session that is active."""
    from kafka_segments.cli import cli

    out, err, begin = io.StringIO(), io.StringIO(), time.monotonic()
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Done(status, out.getvalue(), err.getvalue(), time.monotonic() - begin)


def main() -> None:
    """Run what stdin asks for, a JSON list of arguments a line."""
    from kafka_segments.spark.session import spark_session

    with spark_session("client", root=Path(__file__).resolve().parents[1]):
        for line in sys.stdin:
            print(json.dumps(run_verb(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
