"""The archive of classes: where it lies, what it fits, who makes it and who must not."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_segments import class_archive as making
from kafka_segments.engine.spark import archive, session
from kafka_segments.engine.spark.session import _LOCAL, _jar_settings, _java_options
from kafka_segments.errors import SparkEndedError
from kafka_segments.settings import Settings

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with two JARs, and a cache folder of its own."""
    monkeypatch.setattr(making, "jars_of", _jars)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(archive.SWITCH, raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(archive, "java_version", lambda _: "17.0.15")
    for name in ("a", "b"):
        (tmp_path / f"{name}.jar").write_text(name, "utf-8")
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that would have been started."""
    found: list[Any] = []
    monkeypatch.setattr(
        archive.subprocess, "Popen", lambda command, **how: found.append((command, how))
    )
    return found


def _jars(root: Path) -> list[Path]:
    return sorted(root.glob("*.jar"))


def _made(root: Path) -> Path:
    """Put an archive in its place."""
    file = archive.class_archive(root, _jars(root))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("classes", "utf-8")
    return file


def _of_java_25(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "java_version", lambda _: "25.0.1")


def test_it_is_used_where_there_is_one_and_not_switched_off(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = _jars(root)
    assert archive.usable_archive(root, jars) is None
    file = _made(root)

    assert file.is_relative_to(root / "cache" / "kafka-segments")
    assert archive.usable_archive(root, jars) == file
    monkeypatch.setenv(archive.SWITCH, "off")
    assert archive.usable_archive(root, jars) is None
    assert Settings.load(None, ()) == Settings()  # the switch is no unknown setting


def test_a_java_that_keeps_its_own_is_told_where_before_there_is_one(
    root: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    _of_java_25(monkeypatch)

    file = archive.usable_archive(root, _jars(root))

    assert file is not None
    assert file.parent.is_dir()
    assert "-XX:+AutoCreateSharedArchive" in archive.archive_options(file)
    archive.make_archive_later(root, _jars(root))
    assert started == []
    monkeypatch.setenv("CI", "true")
    assert archive.usable_archive(root, _jars(root)) is None


def test_with_one_the_jars_are_on_the_class_path_that_it_was_made_for(root: Path) -> None:
    jars = _jars(root)

    assert _jar_settings(jars, None) == {"spark.jars": f"{jars[0]},{jars[1]}"}
    assert _jar_settings(jars, root / "x.jsa") == {
        "spark.driver.extraClassPath": f"{jars[0]}:{jars[1]}"
    }
    assert _jar_settings([], root / "x.jsa") == {}  # Delta is among Spark's own


def test_the_options_of_the_jvm_name_it_and_a_long_session_has_both_compilers(root: Path) -> None:
    plain = _java_options(None, None, is_long=False)
    used = _java_options(root / "x.jsa", None, is_long=False)
    dumped = _java_options(None, root / "x.new", is_long=False)

    assert plain == _LOCAL[JAVA_OPTIONS]
    assert used.startswith(f'{plain} -XX:SharedArchiveFile="{root}/x.jsa" -Xlog:cds=off')
    assert f'-XX:ArchiveClassesAtExit="{root}/x.new"' in dumped
    assert "TieredStopAtLevel" in plain
    assert "TieredStopAtLevel" not in _java_options(None, None, is_long=True)


def test_another_jar_java_or_installation_has_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = archive.class_archive(root, _jars(root))
    (root / "b.jar").write_text("changed", "utf-8")
    other_jar = archive.class_archive(root, _jars(root))
    _of_java_25(monkeypatch)
    other_java = archive.class_archive(root, _jars(root))

    assert len({before, other_jar, other_java}) == 3
    installation = before.name[:8]
    assert all(file.name.startswith(installation) for file in (other_jar, other_java))
    assert not archive.class_archive(root / "other", _jars(root)).name.startswith(installation)


def test_where_the_jvm_does_not_start_with_it_it_is_deleted_and_spark_starts_without(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _made(root)
    starts: list[bool] = []

    def start(*_: Any) -> str:
        starts.append(file.exists())
        if file.exists():
            raise SparkEndedError("Spark's JVM did not start", "see above")
        return "a session"

    monkeypatch.setattr(session, "_start", start)
    monkeypatch.setattr(session, "jars_of", _jars)

    assert session._start_own("x", root, dict, None) == "a session"  # type: ignore[arg-type]
    assert starts == [True, False]
    monkeypatch.setattr(session, "usable_archive", lambda *_: None)
    file.touch()
    with pytest.raises(SparkEndedError):
        session._start_own("x", root, dict, None)  # type: ignore[arg-type]


def test_it_is_made_by_a_process_of_its_own_and_tried_once(root: Path, started: list[Any]) -> None:
    archive.make_archive_later(root, _jars(root))
    archive.make_archive_later(root, _jars(root))

    ((command, how),) = started
    assert command[-3:] == ["-m", "kafka_segments.class_archive", str(root)]
    assert how["start_new_session"]
    assert how["stdin"] == how["stdout"] == how["stderr"] == subprocess.DEVNULL


def test_none_is_made_where_there_is_one_or_none_is_wanted_or_there_is_no_room(
    root: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _made(root)
    archive.make_archive_later(root, _jars(root))
    file.unlink()
    with monkeypatch.context() as patch:
        patch.setenv("CI", "true")
        archive.make_archive_later(root, _jars(root))
    with monkeypatch.context() as patch:
        patch.setenv(archive.SWITCH, "off")
        archive.make_archive_later(root, _jars(root))
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "a.jar"))  # no folder
    archive.make_archive_later(root, _jars(root))

    assert started == []
    assert archive.usable_archive(root, _jars(root)) is None


def test_a_relative_cache_folder_counts_as_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")

    assert archive.cache_folder() == Path.home() / ".cache" / "kafka-segments"


def test_it_appears_whole_and_its_installations_older_ones_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = archive.class_archive(root, _jars(root))
    file.parent.mkdir(parents=True)
    other = file.parent / "fedcba98-0123.jsa"
    for path in (file.parent / f"{file.name[:8]}-0123.jsa", file.with_suffix(".tried"), other):
        path.touch()

    def load(root: Path, written: Path, folder: Path) -> None:
        assert not file.exists()
        written.write_text("classes", "utf-8")

    monkeypatch.setattr(making, "_load_classes", load)
    monkeypatch.setattr(making, "end_jvm", lambda: None)

    making.make_class_archive(root, file)

    assert sorted(file.parent.iterdir()) == sorted((file, other))
    assert file.read_text("utf-8") == "classes"


def test_a_failure_leaves_nothing_and_is_said_in_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(root: Path, written: Path, folder: Path) -> None:
        written.write_text("classes", "utf-8")
        raise OSError("no space left")

    monkeypatch.setattr(making, "_load_classes", load)
    monkeypatch.setattr(making, "end_jvm", lambda: None)
    monkeypatch.setattr(making.signal, "alarm", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["x", str(root)])
    monkeypatch.setattr(making, "keeps_its_own", lambda: False)

    assert making.main() == 0
    assert capsys.readouterr().err == "no archive of classes: no space left\n"
    assert list((root / "cache" / "kafka-segments").iterdir()) == []


def test_the_switch_keeps_the_module_from_doing_anything(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(archive.SWITCH, "OFF")
    monkeypatch.setattr(making.signal, "alarm", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["x", str(root)])

    assert making.main() == 0
    assert not (root / "cache").exists()
