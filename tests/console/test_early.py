"""What is refused before Spark starts: paths, settings, tables and Java, each in one line."""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from kafka_segments.cli import cli
from kafka_segments.console.early import local_path, require_output, require_source, require_tables
from kafka_segments.console.strict_options import Command
from kafka_segments.engine.spark.java import feature_release, find_java, java_version, require_java
from kafka_segments.errors import SourceError, UsageError
from kafka_segments.files.delta.table_versions import note_versions

READERS = (
    ["report", "--out", "page.html"],
    ["retention"],
    ["retention", "explain", "t-0"],
    ["retention", "plan"],
    ["roll"],
    ["search", "--time", "now"],
    ["search", "bootstrap", "--last", "1h"],
    ["search", "failover", "--group", "g", "--max-latency", "1m", "--to-cluster", "b"],
    ["search", "restore", "--at", "now"],
    ["lag"],
    ["latency"],
    ["migrate", "inventory"],
    ["recovery", "forecast"],
    ["validate"],
)
PLANNED = (
    ["retention", "apply"],
    ["retention", "rollback"],
    *(["migrate", step] for step in ("stage", "verify", "apply", "rollback", "status")),
)
WRITES = (
    ["build", "--source", ".", "--warehouse", "wh", "--index-dir"],
    ["build", "--source", ".", "--warehouse", "wh", "--set-aside"],
    ["compact", "--source", ".", "--warehouse", "wh", "--set-aside"],
    ["divergence", "repair", "--copy", "a=.", "--copy", "b=.", "--out"],
    ["internals", "tier", "--source", ".", "--warehouse", "wh", "--rebuild"],
    ["migrate", "plan", "--source", ".", "--warehouse", "wh", "--stage-dir"],
    ["recovery", "kit", "--source", ".", "--out"],
    ["report", "--warehouse", "wh", "--out"],
    ["retention", "apply", "--warehouse", "wh", "--plan", "p", "--set-aside"],
    ["validate", "--warehouse", "wh", "--docs-dir"],
)
NEEDS_SOURCES = (["build"], ["audit"], ["forensics"], ["migrate", "plan"])


def _line(*arguments: object) -> str:
    done = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "--warehouse", "wh", "--source"],
        ["build", "--source", ".", "--warehouse"],
        ["build", "--source", ".", "--warehouse", "wh", "--index-dir"],
        ["recovery", "kit", "--source", ".", "--out"],
        ["recovery", "apply"],
        ["retention", "apply", "--plan", "p", "--warehouse", "wh", "--set-aside"],
        ["divergence", "--copy"],
        ["divergence", "repair", "--copy", "a=.", "--copy", "b=.", "--out"],
        ["internals", "tier", "--warehouse", "wh", "--rebuild"],
        ["report", "--warehouse", "wh", "--out"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("uri", ["s3:/u:s3cret@bucket/p", "HDFS:u:s3cret@name", "s3://u:s3cret@b"])
def test_what_is_nearly_a_uri_with_credentials_is_refused_and_not_repeated(
    arguments: list[str], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = f"a={uri}" if arguments[-1] == "--copy" else uri

    done = CliRunner().invoke(cli, [*arguments, given])

    assert done.exit_code == 2
    assert "s3cret" not in done.output
    assert not list(tmp_path.iterdir())


def test_a_source_that_is_given_twice_repeats_no_credentials() -> None:
    twice = ["--source", "s3://u:s3cret@b"] * 2

    assert "s3cret" not in CliRunner().invoke(cli, ["build", "--warehouse", "wh", *twice]).output


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A warehouse as far as the names of its tables tell."""
    for name in ("segments", "logs", "log_dirs", "runs"):
        log = tmp_path / "wh" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text('{"add": {}}\n')
    return tmp_path / "wh"


@pytest.mark.parametrize("verb", READERS, ids=" ".join)
def test_a_warehouse_that_is_not_there_or_has_no_segments_is_named(
    verb: list[str], tmp_path: Path
) -> None:
    assert _line(*verb, "--warehouse", tmp_path / "nowhere") == (
        f"kafka-segments: {tmp_path}/nowhere is not there: --warehouse is the folder of the tables"
        " that `kafka-segments build` made"
    )
    assert _line(*verb, "--warehouse", tmp_path) == (
        f"kafka-segments: {tmp_path} has no table segments: run `kafka-segments build`"
    )


@pytest.mark.parametrize("verb", [*READERS, ["sql", "SELECT 1"]], ids=" ".join)
def test_tables_of_a_first_build_that_did_not_end_are_no_answer(
    verb: list[str], tables: Path
) -> None:
    (tables / "runs" / "_delta_log" / f"{0:020d}.json").write_text("{}\n")

    assert _line(*verb, "--warehouse", tables) == (
        f"kafka-segments: {tables}: no build has ended there, so that its tables are empty or not"
        " whole: run `kafka-segments build` again"
    )


@pytest.mark.parametrize("verb", PLANNED, ids=" ".join)
def test_a_step_without_any_plan_says_which_verb_makes_one(verb: list[str], tables: Path) -> None:
    assert _line(*verb, "--plan", "p", "--warehouse", tables) == (
        f"kafka-segments: {tables} has no plans: run `kafka-segments {verb[0]} plan`"
    )


@pytest.mark.parametrize("verb", PLANNED, ids=" ".join)
def test_a_step_says_that_the_log_of_its_plans_is_gone(verb: list[str], tables: Path) -> None:
    plans = tables / ("migration_plans" if verb[0] == "migrate" else "retention_plans")
    (plans / "_delta_log").mkdir(parents=True)
    (plans / "_delta_log" / f"{0:020d}.json").write_text("{}\n")
    note_versions(str(tables), (plans.name,))
    shutil.rmtree(plans / "_delta_log")

    said = _line(*verb, "--plan", "p", "--warehouse", tables)

    assert f"table {plans} is broken: _delta_log is not there" in said
    plans.rmdir()
    assert "has no plans: run" in _line(*verb, "--plan", "p", "--warehouse", tables)


def test_a_query_needs_some_table(tmp_path: Path) -> None:
    assert _line("sql", "SHOW TABLES", "--warehouse", tmp_path) == (
        f"kafka-segments: {tmp_path} has no tables: run `kafka-segments build`"
    )


def test_a_file_and_a_single_table_are_told_from_a_warehouse(tables: Path) -> None:
    file = tables / "f"
    file.touch()

    assert _line("validate", "--warehouse", file).startswith(
        f"kafka-segments: {file} is a file, no folder: --warehouse is the folder of"
    )
    assert _line("validate", "--warehouse", tables / "segments") == (
        f"kafka-segments: {tables}/segments is one table: --warehouse is the folder above it, which"
        " holds them all"
    )


@pytest.mark.parametrize("verb", NEEDS_SOURCES, ids=" ".join)
def test_a_source_that_cannot_be_listed_is_named_and_how_far_its_path_leads(
    verb: list[str], tmp_path: Path
) -> None:
    line = _line(*verb, "--source", tmp_path / "a" / "b", "--warehouse", tmp_path / "wh")

    assert line == (
        f"kafka-segments: cannot list {tmp_path}/a/b: [Errno 2] No such file or directory:"
        f" '{tmp_path}/a/b'; of that path {tmp_path} is there"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"{0:020d}.log", "it is a file: give the folder that it lies in"),
        (
            "kafka.tar.gz",
            "it is a file (a packed archive): unpack it, and give the folder in it",
        ),
    ],
)
def test_a_file_for_a_source_is_told_with_what_to_do(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / name).write_bytes(b"")

    line = _line("build", "--source", tmp_path / name, "--warehouse", tmp_path / "wh")

    assert line == f"kafka-segments: cannot list {tmp_path / name}: {why}"


def test_settings_are_refused_first(tmp_path: Path) -> None:
    line = _line("build", "--source", tmp_path / "x", "--warehouse", "wh", "--set", "a=1")

    assert line == "kafka-segments: unknown setting a"


def test_what_lies_in_a_store_is_left_to_those_who_ask_it(tmp_path: Path) -> None:
    require_source("s3://bucket/logs")

    assert local_path("s3://bucket/logs") is None
    assert local_path(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert local_path("file://elsewhere/a") is None
    assert local_path("") is None


def test_a_file_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "f").touch()

    with pytest.raises(SourceError, match="it is a file: give the folder that it lies in"):
        require_source(str(tmp_path / "f"))


def test_a_source_that_this_user_may_not_list_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(SourceError, match=r"Permission denied: .*; it is .* run this by `sudo -u "):
        require_source(str(tmp_path))


def _java(home: Path, *, release: str | None = None, says: str = "", jre: bool = False) -> Path:
    program = home / ("jre/bin/java" if jre else "bin/java")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n", "utf-8")
    program.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n', "utf-8")
    return program


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No Java anywhere, and nothing that lets the check pass."""
    for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return tmp_path


def test_without_a_java_one_line_says_what_to_install(no_java: Path) -> None:
    with pytest.raises(UsageError) as refused:
        require_java()

    assert str(refused.value) == (
        "no `java` in PATH, and JAVA_HOME is not set: Spark needs Java 17 or later; install one"
        " (e.g. apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
    )


def test_a_java_home_without_a_java_is_named(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/none")

    with pytest.raises(UsageError, match="JAVA_HOME is /opt/none, and there is no program /opt/no"):
        find_java()


@pytest.mark.parametrize(("release", "spoken"), [("11.0.2", None), (None, "1.8.0_392")])
def test_a_java_that_is_too_old_is_named_with_its_version(
    no_java: Path, monkeypatch: pytest.MonkeyPatch, release: str | None, spoken: str | None
) -> None:
    java = _java(no_java / "jdk", release=release, says=f'openjdk version "{spoken}" 2026-01-20')
    monkeypatch.setenv("JAVA_HOME", str(no_java / "jdk"))

    with pytest.raises(UsageError) as refused:
        require_java()

    assert str(refused.value).startswith(
        f"{java} is Java {release or spoken}, Spark needs 17 or later: install one"
    )


def test_the_file_beside_a_java_tells_its_version_without_a_process(no_java: Path) -> None:
    java = _java(no_java / "jdk", release="21.0.5", says="never asked", jre=True)
    (no_java / "empty").mkdir()
    (no_java / "empty" / "java").symlink_to(java)  # as alternatives link it

    assert java_version(find_java()) == "21.0.5"
    require_java()


def test_a_java_that_says_nothing_is_left_to_spark(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _java(no_java / "jdk", says="hello")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "jdk"))

    require_java()


def test_where_another_process_started_the_jvm_no_java_is_looked_for(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (no_java / "conf").mkdir()
    (no_java / "conf" / "spark-env.sh").touch()
    with monkeypatch.context() as patch:
        patch.setenv("PYSPARK_GATEWAY_PORT", "1")
        require_java()
    monkeypatch.setenv("SPARK_HOME", str(no_java))
    with pytest.raises(UsageError, match="no `java` in PATH"):
        require_java()  # there is no Spark that would read the file
    _java(no_java).rename(no_java / "bin" / "spark-submit")
    require_java()  # Spark's own file may name one


@pytest.mark.parametrize(
    ("version", "release"),
    [("17.0.15", 17), ("17-ea", 17), ("1.8.0_392", 8), ("9", 9), ("25", 25), ("?", 17)],
)
def test_the_number_of_a_version_that_counts(version: str, release: int) -> None:
    assert feature_release(version) == release


@pytest.mark.parametrize(("of_runs", "is_refused"), [(0, True), (1, False), (None, False)])
def test_tables_in_a_store_of_a_first_build_that_did_not_end_are_refused(
    monkeypatch: pytest.MonkeyPatch, of_runs: int | None, is_refused: bool
) -> None:
    versions = {"s3://bucket/wh/segments": 1, "s3://bucket/wh/runs": of_runs}
    for asked in ("log.last_version", "health.version_if_there"):
        monkeypatch.setattr(f"kafka_segments.files.delta.{asked}", versions.get)

    with (
        pytest.raises(UsageError, match="s3://bucket/wh: no build has ended there")
        if is_refused
        else nullcontext()
    ):
        require_tables("s3://bucket/wh", ("segments",))


def test_a_verb_without_its_java_says_so_and_nothing_large_is_imported_for_it(
    no_java: Path,
) -> None:
    program = (
        "import sys\nfrom kafka_segments.cli import cli\n"
        "try:\n    cli(['forensics', '--source', '.'])\n"
        "except SystemExit as end:\n"
        "    large = {'pyspark', 'pyarrow', 'numpy', 'pandas', 'numba'}\n"
        "    print(end.code, sorted(large & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PATH": str(no_java / "empty")}

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=no_java,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "2 []\n"
    assert done.stderr.startswith("kafka-segments: no `java` in PATH")


def test_every_verb_is_of_the_class_that_looks_first() -> None:
    def commands(group: click.Group) -> list[click.Command]:
        found = []
        for command in group.commands.values():
            found += commands(command) if isinstance(command, click.Group) else [command]
        return found

    assert all(isinstance(verb, Command) for verb in commands(cli))


@pytest.mark.parametrize("verb", PLANNED, ids=" ".join)
def test_an_unknown_plan_is_refused_and_what_to_do_is_said(verb: list[str], tmp_path: Path) -> None:
    tables = {"retention": "retention_plans", "migrate": "migration_plans"}
    rows = pa.table({"plan_id": ["p", "q"], "topic": ["t", "t"]})
    write_deltalake(str(tmp_path / tables[verb[0]]), rows)

    line = _line(*verb, "--plan", "x", "--warehouse", tmp_path)

    what = "see table retention_plans" if verb[0] == "retention" else "run `kafka-segments migrate"
    assert line.startswith(f"kafka-segments: {tmp_path} has no plan x: {what}")


@pytest.mark.parametrize("arguments", WRITES)
def test_a_result_that_could_not_be_written_is_refused_first(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option, file = arguments[-1], tmp_path / "file"
    file.write_bytes(b"")
    is_page = option == "--rebuild" or arguments[0] == "report"

    in_place = tmp_path if is_page else file
    there, needed = ("folder", "file") if is_page else ("file", "folder")
    assert _line(*arguments, in_place) == (
        f"kafka-segments: {option} {in_place} is a {there}: the name of a {needed} expected"
    )
    below = file / "name"
    assert _line(*arguments, below) == (
        f"kafka-segments: {option} {below}: {file} is no folder, name another place"
    )
    new = tmp_path / "new" / "name"
    if is_page:
        assert _line(*arguments, new) == (
            f"kafka-segments: {option} {new}: folder {new.parent} is not there, make it first"
        )
        new = tmp_path / "new"
    # Root, as whom tests may run, writes everywhere.
    monkeypatch.setattr("kafka_segments.console.early.os.access", lambda *_: False)
    assert _line(*arguments, new) == (
        f"kafka-segments: {option} {new} cannot be written: folder {tmp_path} is read-only, or not"
        " this user's; make it writable, or name another place"
    )


def test_a_dry_run_and_a_store_name_any_place(tmp_path: Path) -> None:
    require_output("--out", "s3://bucket/page.html", is_file=True)
    require_output("--out", str(tmp_path / "page.html"), is_file=True)
    require_output("--out", str(tmp_path / "new" / "folder"), is_file=False)
    build = ["build", "--source", tmp_path / "none", "--warehouse", "wh", "--dry-run"]

    assert "--source" not in (line := _line(*build, "--index-dir", __file__))
    assert str(tmp_path / "none") in line
