"""A checkpoint that is there and cannot be read: verbs that depend on it say so, others do not."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.delta import Warehouse
from support.logs.strategies import v2_batch

NOW = ("--now-ms", "1800000000000")
SPOILT = "0\n3\nt 0 5\n"
PROBLEM = "{}: 1 entries, line 2 says 3"
PROBLEMS = {"meta.properties": "{}: no node id is in it"}


def _run(*words: object) -> tuple[int, str]:
    now = () if words[1] == "mirror" else NOW
    done = CliRunner().invoke(cli, [*map(str, words), *now])
    return done.exit_code, done.stderr


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "a"
    for log in ("t-0", "u-0"):
        (folder / log).mkdir(parents=True)
        batch = v2_batch(0, [(1000, b"k", b"v")] * 10)
        (folder / log / f"{0:020d}.log").write_bytes(batch)
    (folder / "replication-offset-checkpoint").write_text("0\n2\nt 0 10\nu 0 10\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "concerns_roll"),
    [
        ("log-start-offset-checkpoint", False),
        ("replication-offset-checkpoint", True),
        ("meta.properties", True),
    ],
)
def test_where_logs_begin_or_end_is_not_known(
    spark: SparkSession, log_dir: Path, tmp_path: Path, name: str, concerns_roll: bool
) -> None:
    (log_dir / name).write_text("\0" * 9 if name == "meta.properties" else SPOILT)
    tables = ("--warehouse", tmp_path / "tables")
    status, told = _run("build", "--source", log_dir, *tables)
    problem = PROBLEMS.get(name, PROBLEM).format(name)
    assert (status, f"{log_dir}: {problem}; column problem" in told) == (1, True), told
    why = f"{log_dir}: what its broker notes there, by which answers go, is not known: "
    why += problem

    for verb in (
        ("retention", "decide"),
        ("retention", "explain", "t-0"),
        ("search", "offsets", "--time", "EARLIEST"),
        ("search", "restore", "--at", "now"),
        ("report", "--out", tmp_path / "page.html"),
    ):
        status, told = _run(*verb, *tables)
        assert (status, why in told) == (1, True), (verb, told)
    assert why in (tmp_path / "page.html").read_text()
    status, told = _run("roll", *tables)
    assert (status, why in told) == (int(concerns_roll), concerns_roll), told


@pytest.mark.parametrize("has_few", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_checkpoint_that_was_there_before_and_is_gone_is_told_until_it_is_back(
    spark: SparkSession,
    log_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_few: bool,
) -> None:
    if not has_few:
        monkeypatch.setattr(Warehouse, "columns_in_driver", lambda *_, **__: None)
    build = ("build", "--source", log_dir, "--warehouse", tmp_path / "tables")
    notes = log_dir / "replication-offset-checkpoint"
    text = notes.read_text()
    sound = [_run(*build)]

    notes.unlink()
    told = [_run(*build), _run(*build), _run("roll", "--warehouse", tmp_path / "tables")]
    notes.write_text(text)
    sound.append(_run(*build))

    why = f"{notes.name}: it was there when its directory was built before, and is gone"
    assert [(status, why in err) for status, err in told] == [(1, True)] * 3, told
    assert [(status, why in err) for status, err in sound] == [(0, False)] * 2, sound


@pytest.mark.slow
def test_verbs_that_read_disks_tell_what_they_could_not_read_beside_segments(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    (log_dir / "u-0" / "leader-epoch-checkpoint").write_text("1\n")
    told = f"{log_dir}/u-0: leader-epoch-checkpoint: version is '1', 0 expected (line 1)"

    for verb in (
        ("build", "--source", log_dir, "--warehouse", tmp_path / "tables", "--dry-run"),
        ("audit", "--source", log_dir),
        ("divergence", "compare", "--copy", f"a={log_dir}", "--copy", f"b={copy}"),
        ("backup", "verify", "--backup", copy, "--against", f"a={log_dir}"),
        ("divergence", "mirror", "--source", log_dir, "--mirror", copy),
        ("migrate", "plan", "--source", log_dir, "--dry-run", "--warehouse", tmp_path / "tables"),
    ):
        status, said = _run(*verb)
        assert (status, told in said) == (1, True), (verb, said)


@pytest.mark.slow
def test_the_checkpoint_of_another_directory_does_not_matter(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    other = tmp_path / "b" / "v-0"
    other.mkdir(parents=True)
    (other / f"{0:020d}.log").write_bytes(v2_batch(0, [(1000, b"k", b"v")] * 10))
    (tmp_path / "b" / "log-start-offset-checkpoint").write_text(SPOILT)
    tables = ("--warehouse", tmp_path / "tables")
    sources = ("--source", log_dir, "--source", tmp_path / "b")
    assert _run("build", *sources, *tables)[0] == 1

    asked = ("search", "offsets", "--time", "EARLIEST", *tables)
    status, told = _run(*asked, "--topic", "t")

    assert (status, "is not known" in told) == (0, False), told
    assert _run(*asked)[0] == 1
