"""A process whose session runs verbs, with Ctrl-C in the middle of each; told as JSON lines."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from support.spark.connect_client import Done, run_verb
from support.verbs.every_verb import World
from support.verbs.processes import MARK, left_in_the_end

SHARE_OF_A_CALL = 0.3


class Interrupted(NamedTuple):
    """A verb as it ended before, at and after Ctrl-C, and what the session counts after it."""

    before: Done
    at: Done
    after: Done
    counted: int


class _Calls:
    """Calls of the main thread to the JVM, and Ctrl-C in the middle of one of them."""

    def __init__(self, *, stop_at: int = -1, after_seconds: float = 0.0) -> None:
        """Prepare; Ctrl-C comes ``after_seconds`` of the call with this number."""
        self.seconds: list[float] = []
        self._stop_at = stop_at
        self._signal = threading.Timer(after_seconds, os.kill, (os.getpid(), signal.SIGINT))

    @property
    def longest(self) -> int:
        """Return which of the calls took the longest."""
        return max(range(len(self.seconds)), key=self.seconds.__getitem__)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count, and interrupt, while this is open."""
        send = ClientServerConnection.send_command

        def counting(connection: ClientServerConnection, command: str) -> object:
            if threading.current_thread() is not threading.main_thread():
                return send(connection, command)
            self.seconds.append(0.0)  # what Ctrl-C asks of the JVM is counted, too
            number = len(self.seconds) - 1
            if number == self._stop_at:
                self._signal.start()
            begin = time.monotonic()
            try:
                return send(connection, command)
            finally:
                self.seconds[number] = time.monotonic() - begin

        ClientServerConnection.send_command = counting
        try:
            yield
        finally:
            ClientServerConnection.send_command = send
            self._signal.cancel()
            if self._signal.ident is not None:
                self._signal.join()


class InterruptedVerbs:
    """The process, as tests see it: one that is lost to a Ctrl-C takes no test's process along.

    It works in ``here``, and has what is temporary in ``temporary``.
    """

    def __init__(self, folder: Path) -> None:
        self._mark, self._said = str(folder), folder / "stderr"
        self.here, self.temporary = folder / "here", folder / "temporary"
        for place in (self.here, self.temporary):
            place.mkdir()
        root = Path(__file__).resolve().parents[3]
        self._run: dict[str, Interrupted] = {}
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=os.environ
                | {"PYTHONPATH": f"{root}/lib{os.pathsep}{root}/tests"}
                | {MARK: self._mark, "TMPDIR": str(self.temporary)},
                cwd=self.here,
                text=True,
            )

    def run(self, verb: str, world: World) -> Interrupted:
        """Run a verb three times, each with words of its own; what was run already is known."""
        if verb not in self._run:
            words = [[*world.call(verb), "--output", "json"] for _ in range(3)]
            self._run[verb] = self._answer(words)
        return self._run[verb]

    def _answer(self, words: list[list[str]]) -> Interrupted:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(words), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, self.said()
        before, at, after, counted = json.loads(answer)
        return Interrupted(Done(*before), Done(*at), Done(*after), counted)

    def said(self) -> str:
        """Return what came on stderr past Python's stream."""
        return self._said.read_text()

    def close(self) -> None:
        """End the process and its session."""
        if self._process.poll() is None:
            self._process.communicate(timeout=60)

    def left(self) -> list[str]:
        """End it; return the processes that outlive it."""
        self.close()
        return left_in_the_end(self._mark)


def interrupt(
    spark: SparkSession, first: list[str], second: list[str], third: list[str]
) -> Interrupted:
    """Run a verb three times; Ctrl-C comes to the second, in its longest call to the JVM.

    That call is counted, not timed, so a busy machine does not change which it is. Where it has
    ended nevertheless, as it was quicker this time, Ctrl-C comes at once, or in one before. A verb
    that asks no JVM is run once.
    """
    calls = _Calls()
    with calls.counted():
        before = run_verb(first)
    if not calls.seconds:
        return Interrupted(before, before, before, spark.range(3).count())
    number = calls.longest
    wait, at = SHARE_OF_A_CALL * calls.seconds[number], before
    while at.status != 130 and number >= 0:
        with suppress(KeyboardInterrupt), _Calls(stop_at=number, after_seconds=wait).counted():
            at = run_verb(second)
        if not wait:
            number = number // 2 if number else -1
        wait = 0.0
    return Interrupted(before, at, run_verb(third), spark.range(3).count())


def main() -> None:
    """Run what stdin asks for, three calls of a verb a line."""
    from kafka_segments.engine.spark.session import spark_session

    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's background processes have
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Some of what Ctrl-C left half made ends later, badly; test_quiet.py asks what a verb shows.
    sys.unraisablehook = lambda _: None
    with spark_session("interrupted", root=Path(__file__).resolve().parents[3]) as spark:
        for line in sys.stdin:
            try:
                done = interrupt(spark, *json.loads(line))
            except Exception:  # noqa: BLE001 - of this verb's test; the others go on
                done = Interrupted(*[Done(-1, "", traceback.format_exc())] * 3, -1)
            print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
