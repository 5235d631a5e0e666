"""``--log-format json``: each line on stderr is an object, also where a verb never began."""

import json
import logging
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.console.json_log import JsonLog, log_handler
from kafka_segments.console.lines import say
from kafka_segments.console.not_known import tell_not_known
from kafka_segments.console.options import run
from kafka_segments.console.progress import progress
from kafka_segments.console.strict_options import Command
from kafka_segments.errors import KafkaSegmentsError
from kafka_segments.shell.loop import Shell
from support.verbs.every_verb import every_verb

HOSTILE = 'a"}\n\x1b]0;t\x07\u202eb'


def _verb(act: Any) -> click.Command:
    def command(verbose: bool) -> None:
        run(act, verbose=verbose)

    options = [click.Option(["--verbose"], is_flag=True)]
    return Command("verb", example="", extra=None, callback=command, params=options)


def _lines(stderr: str, verb: str) -> list[dict[str, Any]]:
    """Read the lines, and hold each to what all have."""
    read = [json.loads(line) for line in stderr.splitlines()]
    for line in read:
        assert list(line)[:4] == ["time", "level", "verb", "message"]
        assert datetime.fromisoformat(line["time"]).utcoffset() is not None
        assert line["level"] in ("debug", "info", "warning", "error", "critical")
        assert line["verb"] == verb
    assert stderr.isascii()
    return read


def _said(act: Any, *words: str) -> tuple[int, list[tuple[str, str]]]:
    done = CliRunner().invoke(_verb(act), ["--log-format", "json", *words])
    read = _lines(done.stderr, "verb")
    return done.exit_code, [(line["level"], line["message"]) for line in read]


def test_what_is_said_is_an_object_with_its_level() -> None:
    def act() -> int:
        say(f"a summary of {HOSTILE}")
        tell_not_known(["x is not known"])
        print("a row")
        return 0

    done = CliRunner().invoke(_verb(act), ["--log-format=json"])

    assert (done.exit_code, done.stdout) == (1, "a row\n")
    summary, unknown = _lines(done.stderr, "verb")
    assert summary["message"] == 'a summary of a"}\\n\\x1b]0;t\\x07\\u202eb'
    assert (summary["level"], "not_known" in summary) == ("info", False)
    assert (unknown["level"], unknown["not_known"]) == ("warning", True)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KafkaSegmentsError("it failed"), 3, "kafka-segments: it failed"),
        (ZeroDivisionError("1/0"), 3, "kafka-segments: ZeroDivisionError: 1/0"),
        (KeyboardInterrupt(), 130, "kafka-segments: interrupted; what was done is kept"),
    ],
)
def test_an_error_is_one_with_the_exit_status(error: Exception, status: int, said: str) -> None:
    def act() -> int:
        raise error

    done = CliRunner().invoke(_verb(act), ["--log-format", "json", "--quiet"])

    assert done.exit_code == status
    (line,) = _lines(done.stderr, "verb")
    assert (line["level"], line["exit_status"]) == ("error", status)
    assert line["message"].startswith(said)


def test_what_others_write_is_split_into_lines() -> None:
    def act() -> int:
        sys.stderr.write("fetching … ")
        sys.stderr.flush()
        sys.stderr.write("done\n\none\ntwo")
        click.echo("", err=True)
        say("three")
        sys.stderr.write("begun")
        say("four")
        return 0

    status, said = _said(act)

    assert status == 0
    told = [message for _, message in said]
    assert told == ["fetching … done", "one", "two", "three", "begun", "four"]


def test_there_is_no_bar() -> None:
    def act() -> int:
        with progress(None) as work:
            assert not work.is_shown
        return 0

    assert _said(act) == (0, [])


def test_python_logs_into_it_with_the_logger_and_the_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", JsonLog(sys.stderr, "verb"))
    log = logging.Logger("some.logger")
    log.addHandler(log_handler(logging.Formatter()))

    log.warning("took %s s", 3)
    try:
        Path(HOSTILE).rmdir()
    except OSError:
        log.exception("failed")

    first, second = _lines(capsys.readouterr().err, "verb")
    assert (first["level"], first["message"], first["logger"]) == (
        "warning",
        "took 3 s",
        "some.logger",
    )
    assert (second["level"], second["message"]) == ("error", "failed")
    assert "FileNotFoundError: " in second["exception"]


def test_wrong_options_are_told_in_it(tmp_path: Path) -> None:
    for words, said in (
        (["--nope"], "Error: No such option"),
        (["--output", "xml"], "Error: Invalid value for '--output'"),
        (["--quiet", "--quiet"], "Error: --quiet is given 2 times"),
        (["--quiet", "--verbose"], "Error: --quiet and --verbose are opposites"),
        ([str(tmp_path / "none")], "kafka-segments: cannot list"),
        (["s3://bucket"], "kafka-segments: s3://bucket"),
    ):
        done = CliRunner().invoke(cli, ["triage", *words, "--log-format", "json"])
        *_, last = _lines(done.stderr, "triage")
        assert (done.exit_code, last["level"]) == (2, "error")
        assert last["message"].startswith(said)


def test_verbs_within_verbs_have_all_words() -> None:
    done = CliRunner().invoke(cli, ["divergence", "--nope", "--log-format=json"])

    assert _lines(done.stderr, "divergence compare")


def test_in_the_shell_it_is_of_the_verb_that_asks(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(cli, cast("Any", None))

    for words in (["--log-format", "json"], []):
        assert shell._status_of(["triage", "--nope", *words]) == 2

    first, *others = capsys.readouterr().err.splitlines()
    assert json.loads(first)["verb"] == "triage"
    assert others[-1].startswith("Error: No such option")


@pytest.mark.parametrize("verb", list(every_verb()))
def test_each_verb_has_the_option(verb: str) -> None:
    shown = CliRunner().invoke(cli, [*verb.split(), "--help"]).stdout
    refused = CliRunner().invoke(cli, [*verb.split(), "--nope", "--log-format", "json"])

    assert "--log-format [text|json]" in shown
    assert {json.loads(line)["verb"] for line in refused.stderr.splitlines()} == {verb}


def test_a_process_writes_nothing_else_on_stderr(node: Path) -> None:
    (node / "a" / "cleaner-offset-checkpoint").write_text("1\n")
    words = ["cleaner", str(node / "b"), "--log-format", "json", "--verbose", "--output", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "kafka_segments", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 1
    lines = _lines(done.stderr, "cleaner")
    assert [line["message"] for line in lines if line.get("not_known")]
    assert all(json.loads(line) for line in done.stdout.splitlines())
