"""The command line as a person meets it: what is said where, and how it ends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from kafka_segments.cli import cli

Invoke = Callable[..., Result]


def _run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafka_segments", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.fixture
def invoke(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command in this process, in a folder of its own, in the running session."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli, list(map(str, arguments)))


def _check_build_of_damage(
    run: Callable[..., tuple[int, str, str]], synthetic: Path, tmp_path: Path
) -> None:
    source = ("--source", synthetic / "multi-segment-corrupt-middle")
    where = ("--warehouse", "wh", "--index-dir", "indexes")

    status, printed, said = run("build", *source, *where, "--output", "json")

    rows = [json.loads(line) for line in printed.splitlines()]
    assert status == 1
    assert [(row["base_offset"], row["valid_bytes"]) for row in rows] == [
        (0, 69321),
        (123, 43147),
        (257, 74877),
    ]
    assert "1 damaged segments" in said
    assert (tmp_path / "indexes" / "t-0" / f"{257:020d}.timeindex").stat().st_size == 144


def test_build_prints_rows_on_stdout_alone_and_leaves_with_1_where_it_found_damage(
    invoke: Invoke, synthetic: Path, tmp_path: Path
) -> None:
    def run(*arguments: object) -> tuple[int, str, str]:
        done = invoke(*arguments)
        return done.exit_code, done.stdout, done.stderr

    _check_build_of_damage(run, synthetic, tmp_path)


@pytest.mark.slow
@pytest.mark.spark
def test_a_build_in_a_process_of_its_own_does_too(synthetic: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> tuple[int, str, str]:
        done = _run(*arguments, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    _check_build_of_damage(run, synthetic, tmp_path)


def test_what_cannot_be_meant_is_one_line_and_status_2(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    target_in_source = _run("build", "--source", "logs", "--warehouse", "logs/wh", cwd=tmp_path)
    typo = _run("build", "--source", "logs", "--warehouse", "wh", "--set", "a=1", cwd=tmp_path)
    unknown = _run("build", "--source", "logs", "--warehouse", "wh", "--check", "x", cwd=tmp_path)

    assert [run.returncode for run in (target_in_source, typo, unknown)] == [2, 2, 2]
    assert target_in_source.stderr == (
        f"kafka-segments: --warehouse {tmp_path}/logs/wh lies in the source {tmp_path}/logs\n"
    )
    assert typo.stderr == "kafka-segments: unknown setting a\n"


def test_a_missing_source_is_named(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("build", "--source", "nowhere", "--warehouse", "wh")

    assert done.exit_code == 2
    assert f"kafka-segments: cannot list {tmp_path}/nowhere: " in done.stderr


def test_a_dry_run_changes_nothing(invoke: Invoke, synthetic: Path, tmp_path: Path) -> None:
    where = ("--source", synthetic / "v2-one-record", "--warehouse", "wh", "--index-dir", "indexes")

    done = invoke("build", *where, "--dry-run")

    assert (done.exit_code, done.stdout) == (0, "")
    assert "would read 1 of 1 segments" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("redirected", "status", "told"),
    [
        (">/dev/full", 3, "stdout takes no more, what it has is not all: [Errno 28]"),
        (">&-", 2, "stdout is closed: give it a file, or /dev/null"),
    ],
)
def test_what_is_printed_to_a_stdout_that_takes_nothing_is_told(
    redirected: str, status: int, told: str, tmp_path: Path
) -> None:
    (tmp_path / "orders-0").mkdir()
    command = f"{sys.executable} -m kafka_segments disk {tmp_path} {redirected}"

    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr.count("\n")) == (status, 1)
    assert told in done.stderr
