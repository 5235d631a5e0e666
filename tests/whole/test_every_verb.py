"""Every verb on a pipe and on a terminal, and at Ctrl-C: what it prints, and nothing else."""

import csv
import io
import json
import os
import pty
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.spark.connect_client import Done, run_verb, status_of
from support.verbs.every_verb import CALLS, World, every_verb
from support.verbs.interrupted_verbs import InterruptedVerbs
from support.verbs.output_schemas import misfits

VERBS = [verb for verb in every_verb() if verb != "shell"]
NOTHING_TO_SAY = {"latency"}
"""Verbs that have no rows for their call. What ``compact`` finds depends on earlier ones."""
INTERRUPTED = "kafka-segments: interrupted; what was done is kept, run it again\n"
DONE_AT_ONCE = {"migrate status", "recovery apply", "recovery kit", "recovery rollback"}
"""Verbs that end before anybody could interrupt their call."""
SOME = {"build", "sql"}
"""A verb that writes and one that asks; all of them are tried at length."""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
OF_A_JVM = re.compile(r"WARN|ERROR|INFO|Exception|Traceback|\bat (org|java|scala)\.|:: loading")


@pytest.fixture(scope="module")
def world(
    spark: SparkSession, cluster: Path, synthetic: Path, tmp_path_factory: pytest.TempPathFactory
) -> World:
    return World(spark, cluster, synthetic, tmp_path_factory.mktemp("world"))


def _of_length(verbs: list[str]) -> list[Any]:
    """Mark all verbs but some."""
    return [verb if verb in SOME else pytest.param(verb, marks=pytest.mark.long) for verb in verbs]


def test_every_verb_has_a_call() -> None:
    assert sorted(CALLS) == sorted(VERBS)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InterruptedVerbs]:
    started = InterruptedVerbs(tmp_path_factory.mktemp("interrupted"))
    yield started
    started.close()


@pytest.mark.slow
@pytest.mark.parametrize("verb", _of_length(VERBS))
def test_on_a_pipe_json_is_what_the_schema_says_and_stderr_is_for_a_person(
    world: World, interrupted: InterruptedVerbs, verb: str
) -> None:
    done = interrupted.run(verb, world).before

    assert done.status in (0, 1), done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert all(isinstance(row, dict) for row in rows)
    assert misfits(verb, done.out.splitlines()) == []
    assert bool(rows) != (verb in NOTHING_TO_SAY) or verb == "compact", done.err
    assert "\x1b" not in done.out + done.err
    assert not OF_A_JVM.search(done.err), done.err
    assert interrupted.said() == ""  # past Python's own streams


@pytest.mark.slow
@pytest.mark.parametrize("verb", _of_length(VERBS))
def test_quiet_leaves_csv_alone(world: World, verb: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = run_verb([*world.call(verb), "--output", "csv", "--quiet"])

    assert (done.status in (0, 1), done.err) == (True, "")
    names, *rows = csv.reader(io.StringIO(done.out))
    assert len(set(names)) == len(names) > 0
    assert {len(row) for row in rows} <= {len(names)}
    assert bool(rows) != (verb in NOTHING_TO_SAY) or verb == "compact"
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("verb", _of_length(VERBS))
def test_on_a_terminal_the_bar_goes_before_the_result(world: World, verb: str) -> None:
    shown = _on_a_terminal(world.call(verb))

    assert shown.status in (0, 1), shown.out
    assert "\x1b[?25l" not in shown.out.rpartition("\x1b[?25h")[2]  # the cursor is back
    assert "━" not in shown.out.rpartition("\x1b[2K")[2]
    lines = re.split(r"[\r\n]+", ESCAPE.sub("", shown.out))
    said = "\n".join(line for line in lines if "━" not in line)
    assert said.strip()
    assert not OF_A_JVM.search(said), said


@pytest.mark.slow
@pytest.mark.parametrize("verb", _of_length([verb for verb in VERBS if verb not in DONE_AT_ONCE]))
def test_ctrl_c_ends_a_verb_that_works_and_leaves_the_session_sound(
    world: World, interrupted: InterruptedVerbs, verb: str
) -> None:
    before, at, after, counted = interrupted.run(verb, world)

    assert at.status == 130, at.err
    assert at.err.endswith(INTERRUPTED) or not at.err  # before it has begun it says nothing
    assert "Traceback" not in at.err
    assert after.status == before.status, after.err
    assert counted == 3
    assert interrupted.said() == ""


@pytest.mark.long
def test_after_every_verb_and_ctrl_c_no_process_and_no_temporary_file_is_left(
    world: World, interrupted: InterruptedVerbs
) -> None:
    for verb in VERBS:
        interrupted.run(verb, world)

    assert interrupted.left() == []
    assert [*interrupted.here.rglob("*"), *interrupted.temporary.rglob("*")] == []


def _on_a_terminal(words: list[str]) -> Done:
    """Run a verb whose stdout and stderr are one terminal; ``out`` is what this was sent."""
    with _terminal() as (screen, sent), redirect_stdout(screen), redirect_stderr(screen):
        status = status_of(words)
    return Done(status, sent(), "")


@contextmanager
def _terminal() -> Iterator[tuple[io.TextIOWrapper, Callable[[], str]]]:
    """Give a terminal to write to, and what tells, once it is closed, what was written."""
    leader, inner = pty.openpty()
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(leader, 65_536):
                parts.append(part)
        except OSError:  # the other end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "160")
        with open(inner, "w", encoding="utf-8", buffering=1) as screen:
            yield screen, lambda: b"".join(parts).decode("utf-8")
    reader.join()
    os.close(leader)
