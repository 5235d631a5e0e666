"""The JARs of Delta: where they are looked for, how they are fetched, what is said where not."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from kafka_segments import jars as command
from kafka_segments.engine.spark import jars, jars_fetch
from kafka_segments.engine.spark.jars import (
    DELTA,
    S3,
    cached_folder,
    find_jars,
    jars_of,
    pinned,
    require_named_jars,
)
from kafka_segments.engine.spark.jars_fetch import fetch_jars, ready_jars
from kafka_segments.errors import UsageError
from kafka_segments.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = {"delta-spark_4.2_2.13-4.4.0.jar": b"spark", "delta-storage-4.4.0.jar": b"storage"}
# A mvn that puts what a file beside it holds where ours asks it to; the shell is the interpreter.
MAVEN = """#!/bin/sh
for word; do case "$word" in -Djars.folder=*) folder="${word#*=}";; esac; done
mkdir -p "$folder/delta"
cp "${0%/*}"/*.jar "$folder/delta/"
echo "[INFO] ninety-eight lines"
"""
BROKEN = """#!/bin/sh
echo "[INFO] Scanning for projects"
printf '\\033[1m[ERROR]\\033[m Could not transfer artifact: Unknown host\\n'
exit 1
"""


@pytest.fixture(autouse=True)
def _nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that no command has been run in yet: no JARs, and no programs in PATH."""
    monkeypatch.delenv(jars.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr("kafka_segments.engine.spark.home.why_foreign", lambda home: None)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    known = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENTS.items()}
    monkeypatch.setattr(jars_fetch, "pinned", lambda kind: known if kind == DELTA else pinned(kind))
    monkeypatch.setattr(jars_fetch.shutil, "which", lambda name: _program(tmp_path, name))


def _program(folder: Path, name: str) -> str | None:
    file = folder / "bin" / name
    return str(file) if file.exists() else None


def _install(program: Path, text: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(text, "utf-8")
    program.chmod(0o755)


def _put(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in CONTENTS.items():
        (folder / name).write_bytes(data)
    return sorted(folder / name for name in CONTENTS)


def test_the_places_are_the_variable_then_the_checkout_then_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "checkout"
    assert jars_of(root) == []

    cached = _put(tmp_path / "cache" / "kafka-segments" / "jars" / "delta-4.4.0")
    assert jars_of(root) == cached
    in_checkout = _put(root / "jars" / "delta")
    assert jars_of(root) == in_checkout
    named = _put(tmp_path / "named" / "delta")
    for_s3 = tmp_path / "named" / "s3" / "hadoop-aws-3.5.0.jar"
    for_s3.parent.mkdir()
    for_s3.touch()
    monkeypatch.setenv(jars.VARIABLE, str(tmp_path / "named"))
    assert jars_of(root) == [*named, for_s3]
    monkeypatch.setenv(jars.VARIABLE, str(tmp_path / "named" / "delta"))
    assert jars_of(root) == named
    assert Settings.load(None, ()) == Settings()  # the variable is no unknown setting


def test_a_relative_folder_is_that_of_this_process_in_others_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _put(tmp_path / "named")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(jars.VARIABLE, "named")

    assert jars_of(tmp_path / "checkout") == found
    assert jars.absolute_variable() == {jars.VARIABLE: str(tmp_path / "named")}


def test_a_folder_that_has_other_jars_or_none_is_named_with_what_belongs_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "named"
    monkeypatch.setenv(jars.VARIABLE, str(folder))
    needed = (
        f"delta-spark_4.2_2.13-4.4.0.jar and delta-storage-4.4.0.jar are needed there, or in"
        f" {folder}/delta; `python -m kafka_segments.jars {folder}` fetches them"
    )

    for there in ("it is no folder", "it has no JARs", "it has delta-spark_4.1_2.13-4.3.0.jar"):
        if there != "it is no folder":
            folder.mkdir(exist_ok=True)
        if "4.3.0" in there:
            (folder / "delta-spark_4.1_2.13-4.3.0.jar").touch()
        with pytest.raises(UsageError) as refused:
            jars_of(tmp_path)
        assert str(refused.value) == f"{jars.VARIABLE} is {folder}, and {there}: {needed}"


def test_a_verb_refuses_such_a_folder_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jars.VARIABLE, str(tmp_path / "nowhere"))

    with pytest.raises(UsageError, match="nowhere, and it is no folder"):
        require_named_jars()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # spark-submit's job has its own
    require_named_jars()


def test_where_they_are_among_sparks_own_none_are_added_or_fetched(tmp_path: Path) -> None:
    _put(tmp_path / "spark" / "jars")

    assert jars_of(tmp_path / "checkout") == ready_jars(tmp_path / "checkout") == []


def test_they_are_fetched_once_by_maven_with_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _install(tmp_path / "bin" / "mvn", MAVEN)
    _put(tmp_path / "bin")
    folder = cached_folder(DELTA)
    assert folder is not None

    fetched = ready_jars(tmp_path / "checkout")
    again = ready_jars(tmp_path / "checkout")

    assert again == fetched == sorted(folder.glob("*.jar"))
    assert capfd.readouterr() == (
        "",
        f"kafka-segments: fetching Delta's JARs for Spark into {folder}, once … done\n",
    )
    assert [path.name for path in folder.parent.iterdir()] == ["delta-4.4.0"]


def test_without_maven_spark_resolves_them_for_a_program_that_does_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    _install(
        submit,
        """#!/bin/sh
for word; do case "$word" in spark.jars.ivy=*) ivy="${word#*=}";; esac; done
mkdir "$ivy/jars"
for jar in "${0%/*}"/*.jar; do cp "$jar" "$ivy/jars/io.delta_${jar##*/}"; done
printf '%s\\n' "$@" > "${0%/*}/given"
echo ninety-eight lines
""",
    )
    _put(submit.parent)

    assert len(ready_jars(tmp_path / "checkout")) == 2

    given = (submit.parent / "given").read_text("utf-8")
    packages = "io.delta:delta-spark_4.2_2.13:4.4.0,io.delta:delta-storage:4.4.0"
    assert f"spark.jars.packages={packages}\n" in given
    assert capfd.readouterr().err.count("\n") == 1


def test_without_a_network_one_message_says_which_where_and_what_to_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _install(tmp_path / "bin" / "mvn", BROKEN)
    _install(
        tmp_path / "spark" / "bin" / "spark-submit",
        "#!/bin/sh\necho 'RuntimeException: [unresolved dependency: io.delta#x]' >&2\nexit 1\n",
    )

    with pytest.raises(UsageError) as refused:
        ready_jars(tmp_path / "checkout")

    assert str(refused.value) == (
        "JARs are missing and could not be fetched: delta-spark_4.2_2.13-4.4.0.jar and"
        " delta-storage-4.4.0.jar. On a machine with a network and the same release of ours run"
        " `python -m kafka_segments.jars FOLDER`, copy the folder here, and set"
        " KAFKA_SEGMENTS_JARS to it (mvn: [ERROR] Could not transfer artifact: Unknown host;"
        " Spark's Ivy: RuntimeException: [unresolved dependency: io.delta#x]; --verbose shows all)"
    )
    assert capfd.readouterr().err.endswith("… failed\n")
    assert list((tmp_path / "cache").rglob("*.jar")) == []
    assert list((tmp_path / "cache" / "kafka-segments" / "jars").iterdir()) == []


def test_another_file_than_the_pinned_one_is_refused_and_not_kept(tmp_path: Path) -> None:
    _install(tmp_path / "bin" / "mvn", MAVEN)
    _put(tmp_path / "bin")
    (tmp_path / "bin" / "delta-storage-4.4.0.jar").write_bytes(b"another")
    found, expected = (
        hashlib.sha256(data).hexdigest()
        for data in (b"another", CONTENTS["delta-storage-4.4.0.jar"])
    )

    with pytest.raises(UsageError) as refused:
        ready_jars(tmp_path / "checkout")

    assert f"delta-storage-4.4.0.jar has the SHA-256 {found}, {expected} expected" in str(
        refused.value
    )
    assert jars_of(tmp_path / "checkout") == []


def test_a_folder_to_carry_away_is_filled_and_one_that_is_full_left_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path / "bin" / "mvn", MAVEN)
    _put(tmp_path / "bin")
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "carried")])

    assert command.main() == command.main() == 0

    assert capfd.readouterr() == (
        f"{tmp_path}/carried/delta\n" * 2,
        f"kafka-segments: fetching Delta's JARs for Spark into {tmp_path}/carried/delta,"
        " once … done\n",
    )
    monkeypatch.setenv(jars.VARIABLE, str(tmp_path / "carried"))
    assert [jar.name for jar in jars_of(tmp_path)] == sorted(CONTENTS)


def test_those_for_s3_come_by_maven_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(tmp_path / "carried" / "delta")
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path / "carried"), "--s3"])

    assert command.main() == 3

    said = capfd.readouterr().err
    assert "analyticsaccelerator-s3-1.3.1.jar and 36 others" in said
    assert "(mvn is not in PATH; --verbose shows all)" in said


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match="file/jars/delta"):
        fetch_jars(DELTA, tmp_path / "file" / "jars" / "delta")


def test_the_pinned_files_are_those_of_the_pom() -> None:
    pom = (ROOT / "pom.xml").read_text("utf-8")
    versions = dict(re.findall(r"<([\w-]+)\.version>([\d.]+)<", pom))

    assert versions["delta"] == version("delta-spark")
    assert set(pinned(DELTA)) == {
        f"delta-spark_4.2_2.13-{versions['delta']}.jar",
        f"delta-storage-{versions['delta']}.jar",
    }
    for artifact, number in (
        ("hadoop-aws", versions["hadoop"]),
        ("s3", versions["awssdk"]),
        ("analyticsaccelerator-s3", versions["analyticsaccelerator"]),
    ):
        assert f"{artifact}-{number}.jar" in pinned(S3)
    assert (ROOT / "lib" / "kafka_segments" / "engine" / "spark" / "pom.xml").read_text(
        "utf-8"
    ) == pom


@pytest.mark.parametrize("kind", [DELTA, S3])
def test_the_pinned_files_are_those_that_the_tests_run_with(kind: str) -> None:
    found = find_jars(kind, ROOT)

    assert {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in found} == (
        pinned(kind) if found else {}
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["_by_maven", pytest.param("_by_ivy", marks=pytest.mark.long)])
def test_maven_and_ivy_fetch_them_indeed(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    if way == "_by_maven" and shutil.which("mvn") is None:
        pytest.skip("mvn is not in PATH")
    fetch: Callable[[str, Path], Path] = getattr(jars_fetch, way)

    jars_fetch._check(DELTA, fetch(DELTA, tmp_path / "fetched"))


def test_finding_them_imports_no_spark() -> None:
    code = "import sys, kafka_segments.jars; print('pyspark' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
