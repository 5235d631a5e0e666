"""What is said on stderr: nothing but errors where that is asked for, no traceback on Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from pyspark.logger import PySparkLogger

from kafka_segments.cli import cli
from kafka_segments.console.options import run
from kafka_segments.console.strict_options import Command
from kafka_segments.engine.spark.jvm_lines import JvmLines
from kafka_segments.errors import KafkaSegmentsError


def _verb(act: Any) -> click.Command:
    def command(verbose: bool) -> None:
        run(act, verbose=verbose)

    return Command(
        "verb", example="", callback=command, params=[click.Option(["--verbose"], is_flag=True)]
    )


def _told() -> int:
    click.echo("rows")
    click.echo("a summary", err=True)
    sys.stderr.write("progress\n")
    return 1


def test_quiet_leaves_the_result_and_the_status() -> None:
    loud = CliRunner().invoke(_verb(_told), [])
    quiet = CliRunner().invoke(_verb(_told), ["--quiet"])

    assert (loud.exit_code, loud.stdout, loud.stderr) == (1, "rows\n", "a summary\nprogress\n")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (1, "rows\n", "")


def test_quiet_leaves_errors() -> None:
    def fail() -> int:
        _told()
        raise KafkaSegmentsError("it failed")

    done = CliRunner().invoke(_verb(fail), ["--quiet"])

    assert (done.exit_code, done.stderr) == (3, "kafka-segments: it failed\n")


def test_quiet_and_verbose_are_refused_together() -> None:
    for given in (["--quiet", "--verbose"], ["--verbose", "--quiet"]):
        done = CliRunner().invoke(_verb(_told), given)
        assert done.exit_code == 2
        assert "--quiet and --verbose are opposites" in done.stderr


def test_every_verb_can_be_quiet() -> None:
    helped = CliRunner().invoke(cli, ["validate", "--help"])

    assert "--quiet" in helped.stdout


def test_ctrl_c_ends_a_verb_with_130_and_without_a_traceback(tmp_path: Path) -> None:
    conf = tmp_path / "conf.toml"
    os.mkfifo(conf)  # a verb that waits to read it
    arguments = ["build", "--source", str(tmp_path), "--warehouse", "wh", "--conf", str(conf)]
    verb = subprocess.Popen(
        [sys.executable, "-m", "kafka_segments", *arguments], stderr=subprocess.PIPE, text=True
    )
    with conf.open("w", encoding="utf-8"):  # goes on when the verb has opened it, too
        time.sleep(0.2)
        verb.send_signal(signal.SIGINT)
        _, said = verb.communicate(timeout=60)

    assert (verb.returncode, said) == (130, "")


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        RuntimeError("[SPARK_JOB_CANCELLED] Job 3 cancelled as part of cancellation of all jobs"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_ctrl_c_in_a_running_verb_is_said_in_one_line(error: BaseException) -> None:
    def interrupted() -> int:
        raise error

    done = CliRunner().invoke(_verb(interrupted), [])

    assert (done.exit_code, done.stderr) == (
        130,
        "kafka-segments: interrupted; what was done is kept, run it again\n",
    )


def test_the_trace_that_py4j_writes_of_ctrl_c_is_not_shown() -> None:
    program = (
        "import logging\n"
        "from kafka_segments.console.options import run\n"
        "def act():\n"
        "    try:\n        raise KeyboardInterrupt\n"
        "    except KeyboardInterrupt:\n"
        "        exec(compile('logging.exception(1)', '/lib/py4j/java_gateway.py', 'exec'))\n"
        "        raise\n"
        "run(act, verbose=False)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (
        130,
        "kafka-segments: interrupted; what was done is kept, run it again\n",
    )


@pytest.mark.parametrize("verbose", [False, True])
def test_of_objects_that_ctrl_c_left_half_made_the_bad_ends_are_told_if_asked_for(
    verbose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_value))

    class HalfMade:
        def __del__(self) -> None:
            raise AttributeError("never set")

    def interrupted() -> int:
        half_made = HalfMade()
        raise KeyboardInterrupt(half_made.__class__)

    hook = sys.unraisablehook
    with pytest.raises(SystemExit):
        run(interrupted, verbose=verbose)

    assert [str(error) for error in told] == ["never set"] * verbose
    assert sys.unraisablehook is hook


def test_lines_of_a_jvm_are_kept_aside_and_shown_where_it_ends(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = JvmLines()
    with lines.kept():
        subprocess.run(
            ["sh", "-c", "echo first; seq 1 30 >&2; echo WARNING: incubator >&2"], check=True
        )
    os.write(2, b"ours\n")
    before = capfd.readouterr()

    lines.show()
    lines.close()

    assert (before.out, before.err) == ("", "ours\n")
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == 20
    assert shown[-1] == "WARNING: incubator"


def test_with_verbose_the_lines_of_a_jvm_go_to_stderr(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    lines = JvmLines()
    with lines.kept():
        subprocess.run(["sh", "-c", "echo out; echo err >&2"], check=True)

    assert capfd.readouterr() == ("", "out\nerr\n")
    lines.show()
    lines.close()
    assert capfd.readouterr().err == ""


def test_pyspark_prints_no_error_of_a_query_beside_ours() -> None:
    def fails() -> int:
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).exception("a column", errorClass="UNRESOLVED_COLUMN")
        raise ValueError("no column")

    done = CliRunner().invoke(_verb(fails), [])

    assert done.stderr == "kafka-segments: ValueError: no column (--verbose shows all)\n"
