"""An archive of classes that the JVM really makes, and what real sessions take of it."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_segments.engine.spark import archive
from kafka_segments.engine.spark.jars import VARIABLE, jars_of
from kafka_segments.engine.spark.java import feature_release, find_java, java_version

pytestmark = [pytest.mark.long, pytest.mark.spark]
ROOT = Path(__file__).resolve().parents[2]
SESSION = """
from pathlib import Path
import sys
from kafka_segments.engine.spark.session import spark_session
with spark_session("archive", root=Path(sys.argv[1])) as spark:
    print(spark.range(3).count())
"""
OF_THE_ARCHIVE = "source: shared objects file (top)"
SECONDS = 600


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def made(cache: Path) -> Path:
    """The archive of this checkout, as ``make setup`` has it made."""
    done = _python(cache, "-m", "kafka_segments.class_archive", ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (file,) = cache.rglob("kafka-segments/*")
    return file


@pytest.fixture
def other_jars(tmp_path: Path) -> Path:
    """Delta's JARs at another place."""
    shutil.copytree(ROOT / "jars" / "delta", tmp_path / "jars")
    return tmp_path / "jars"


def _python(cache: Path, *words: object, **variables: object) -> subprocess.CompletedProcess[str]:
    """Run Python with a cache folder of its own; no session makes an archive when it ends."""
    inherited = {key: text for key, text in os.environ.items() if key != archive.SWITCH}
    ours = {"XDG_CACHE_HOME": cache, "CI": "true", "PYTHONPATH": ROOT / "lib", **variables}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={**inherited, **{key: str(value) for key, value in ours.items()}},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def _taken(cache: Path, folder: Path, **variables: object) -> int:
    """Run a session; return how many classes its JVM took from an archive of ours."""
    loaded = folder / "loaded"
    loaded.mkdir()
    said = f"-Xlog:class+load:file={loaded}/%p:none"
    done = _python(cache, "-c", SESSION, ROOT, JDK_JAVA_OPTIONS=said, **variables)

    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    assert not [line for line in done.stderr.splitlines() if "JDK_JAVA_OPTIONS" not in line]
    logs = [file.read_text() for file in loaded.iterdir()]
    assert max(log.count("\n") for log in logs) > 5000
    return sum(log.count(OF_THE_ARCHIVE) for log in logs)


def test_a_session_takes_its_classes_from_the_archive(
    made: Path, cache: Path, tmp_path: Path
) -> None:
    assert made.stat().st_size > 50_000_000
    assert _taken(cache, tmp_path) > 5000


def test_one_of_other_jars_is_passed_over(
    made: Path, cache: Path, other_jars: Path, tmp_path: Path
) -> None:
    assert _taken(cache, tmp_path, **{VARIABLE: other_jars}) == 0
    assert made.exists()


@pytest.mark.parametrize("is_renamed", [False, True], ids=["by its name", "by the JVM"])
def test_one_of_another_java_is_passed_over(
    made: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_renamed: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_other_java()))
    if is_renamed:
        _put_for(made, cache, monkeypatch)

    assert _taken(cache, tmp_path) == 0
    assert made.exists()


def test_one_that_the_jvm_finds_not_to_fit_is_passed_over_by_it(
    made: Path, cache: Path, other_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(other_jars))
    _put_for(made, cache, monkeypatch)

    assert _taken(cache, tmp_path) == 0


def test_a_later_java_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = _other_java()
    if feature_release(java_version(java / "bin" / "java") or "") < archive._KEEPS_ITS_OWN:
        pytest.skip("no later Java on this machine")
    monkeypatch.setenv("JAVA_HOME", str(java))
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    cache = tmp_path / "cache"

    assert _taken(cache, tmp_path / "first", CI="") == 0
    until = time.monotonic() + SECONDS
    while not [*cache.rglob("*.jsa")] or _is_at_work(cache):
        assert time.monotonic() < until
        time.sleep(1)

    assert _taken(cache, tmp_path / "second", CI="") > 5000


def _is_at_work(cache: Path) -> bool:
    """Tell whether a JVM is still writing its archive."""
    command = ["pgrep", "-f", f"SharedArchiveFile={cache}"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _other_java() -> Path:
    taken = find_java().resolve()
    for java in sorted(Path("/usr/lib/jvm").glob("*/bin/java")):
        if java.resolve() != taken:
            return java.parents[1]
    pytest.skip("there is one Java on this machine")


def _put_for(made: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an archive the name of the one that fits what the environment names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv(archive.SWITCH, raising=False)
    wrong = archive.class_archive(ROOT, jars_of(ROOT))
    assert wrong != made
    shutil.copy(made, wrong)
    assert archive.usable_archive(ROOT, jars_of(ROOT)) == wrong
