"""The shell's loop and completion, with a few verbs and a session that are not real ones."""

import os
import signal
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory

from kafka_segments.cli import cli
from kafka_segments.console.options import run
from kafka_segments.console.strict_options import Command
from kafka_segments.errors import KafkaSegmentsError, SparkEndedError, TerminatedError
from kafka_segments.shell import loop, prompt
from kafka_segments.shell.loop import Shell
from kafka_segments.shell.prompt import VerbCompleter


class _Session:
    """Stands for Spark: it has views, and a JVM that can end."""

    def __init__(self) -> None:
        self.views = ["t"]
        self.is_cached = True
        self.catalog = self

    def listTables(self) -> list[Any]:  # noqa: N802  Spark's name
        return [SimpleNamespace(name=name, isTemporary=True) for name in self.views]

    def dropTempView(self, name: str) -> None:  # noqa: N802
        self.views.remove(name)

    def clearCache(self) -> None:  # noqa: N802
        self.is_cached = False


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> _Session:
    monkeypatch.setattr(loop, "jvm_end", lambda *_: None)
    return _Session()


@pytest.fixture
def shell(session: _Session) -> Shell:
    return Shell(_verbs(), session)  # type: ignore[arg-type]


def _verbs() -> click.Group:
    group = click.Group("verbs")

    def verb(name: str, act: Any) -> None:
        def command(**_: Any) -> None:
            run(act, verbose=False)

        group.add_command(Command(name, example="", callback=command))

    def fail() -> int:
        raise KafkaSegmentsError("it failed")

    def wait() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
        return 0

    verb("found", lambda: 1)
    verb("fail", fail)
    verb("wait", wait)
    verb("fine", lambda: click.echo("done") or 0)
    return group


def test_a_shell_whose_temporary_folder_was_taken_says_so_and_runs_no_verb(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(loop, "scratch_folder", lambda: tmp_path / "ks-1")

    assert shell.run(["fine"]) == 3

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"kafka-segments: {tmp_path}/ks-1 is gone")
    assert "Leave the shell and start it again\nstatus 3, 0.0 s\n" in said.err


def test_sigterm_ends_the_shell(shell: Shell, session: _Session) -> None:
    shell._group.add_command(
        Command("end", example="", callback=lambda: run(_terminated, verbose=False))
    )

    assert shell.run(["end", "found"]) == 143


def _terminated() -> int:
    raise TerminatedError


def test_each_verb_says_its_status_and_none_ends_the_shell(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    highest = shell.run(["found", "fail", "", "# a note", "nowhere", "kafka-segments fine"])

    said = capsys.readouterr()
    assert highest == 3
    assert said.out == "done\n"
    assert [line.split(",")[0] for line in said.err.splitlines() if line.startswith("status")] == [
        "status 1",
        "status 3",
        "status 2",
        "status 0",
    ]
    assert "kafka-segments: it failed\n" in said.err
    assert "Error: No such command 'nowhere'" in said.err


def test_ctrl_c_ends_a_verb_and_not_the_shell(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run(["wait", "fine"]) == 130

    said = capsys.readouterr()
    assert said.out == "done\n"
    assert "kafka-segments: interrupted; what was done is kept, run it again\n" in said.err
    assert "Traceback" not in said.err


def test_exit_leaves_and_a_quote_that_is_open_is_said(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run(["fine 'x", "exit", "fail"]) == 2

    said = capsys.readouterr()
    assert said.err == "kafka-segments: No closing quotation: a quote that is open?\n"


@pytest.mark.parametrize("line", ["help", "?", "help fine", "fine --help", "kafka-segments"])
def test_help_is_that_of_the_verbs(
    shell: Shell, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run([line]) == 0

    assert "Usage: kafka-segments" in capsys.readouterr().out


def test_a_shell_in_the_shell_is_refused(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run(["shell"]) == 2

    assert capsys.readouterr().err == "kafka-segments: this is the shell already\n"


def test_a_verb_leaves_no_view_of_its_warehouse_to_the_next(
    shell: Shell, session: _Session
) -> None:
    shell.run(["fine"])

    assert (session.views, session.is_cached) == ([], False)


def test_without_its_jvm_the_shell_ends_with_what_ended_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "jvm_end", lambda *_: SparkEndedError("SIGKILL", "run less"))

    with pytest.raises(SparkEndedError, match="SIGKILL: run less"):
        shell.run(["fine", "fine"])


def _completed(line: str) -> list[str]:
    found = VerbCompleter(cli).get_completions(Document(line), CompleteEvent())
    return [completion.text for completion in found]


def test_verbs_subcommands_options_and_values_are_completed() -> None:
    assert _completed("ret") == ["retention"]
    assert {"build", "exit", "help", "validate"} <= set(_completed(""))
    assert _completed("retention ex") == ["explain"]
    assert "decide" in _completed("retention ")
    assert "--what-if" in _completed("retention --wh")
    assert _completed("search offsets --isolation-level read_c") == ["read_committed"]
    assert _completed("build --index-f") == ["--index-format"]
    assert _completed("sql 'SELECT 1 ") == []


def test_files_are_completed_where_an_option_takes_one(tmp_path: Path) -> None:
    (tmp_path / "conf.toml").touch()
    (tmp_path / "configs").mkdir()

    assert _completed(f"roll --conf {tmp_path}/con") == ["f.toml", "figs"]
    for verb in ("roll", "search --time now", "sql 'SHOW TABLES'"):
        assert _completed(f"{verb} --warehouse {tmp_path}/con") == ["figs"]


def test_history_lies_in_the_users_state_folder_for_his_eyes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    history = prompt._history()

    file = tmp_path / "kafka-segments" / "history"
    assert isinstance(history, FileHistory)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    history.append_string("sql 'SHOW TABLES'")
    assert list(prompt._history().load_history_strings()) == ["sql 'SHOW TABLES'"]
    monkeypatch.setenv("XDG_STATE_HOME", str(file))  # no folder
    assert isinstance(prompt._history(), InMemoryHistory)
    monkeypatch.delenv("XDG_STATE_HOME")
    assert prompt.history_file() == Path.home() / ".local/state/kafka-segments/history"


def test_what_is_typed_comes_line_by_line_until_ctrl_d(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("fine\nnot thi\x03roll\n\x04")

        assert list(prompt.lines_typed(cli)) == ["fine", "roll"]


def test_the_shell_runs_the_lines_of_a_pipe_in_one_session(
    spark: Any, tmp_path: Path, log_dir: Path
) -> None:
    warehouse = tmp_path / "wh"
    lines = (
        f"build --source {log_dir} --warehouse {warehouse} --quiet",
        f"sql 'SELECT count(*) AS n FROM segments' --warehouse {warehouse} --output csv",
        "validate --warehouse /nowhere",
        f"sql 'SELECT nothing' --warehouse {warehouse}",
    )

    done = CliRunner().invoke(cli, ["shell"], input="\n".join(lines))

    assert done.exit_code == 2, done.stderr
    assert done.stdout.endswith(f"n\n{len(list(log_dir.rglob('*.log')))}\n")
    statuses = [line for line in done.stderr.splitlines() if line.startswith("status ")]
    assert [line[: len("status 0")] for line in statuses] == [
        "status 0",
        "status 0",
        "status 2",
        "status 2",
    ]
    assert spark.catalog.listTables() == []
