"""What numba compiles is kept where a process may write, and taken where it may only read."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LIBRARY
from support.house.other_user import USER, give, open_folder, require_other_user, run_as_other

SOURCE = """from kafka_segments.compiling import njit


@njit(cache=True)
def one():
    return 1
"""
"""A function that is soon compiled."""
ASK = (
    "from kafka_segments.small import one;"
    "assert one() == 1;"
    "print(sum(one.stats.cache_hits.values()))"
)
COPIED = ("__init__.py", "release.py", "errors.py", "compiled_sources.py", "compiling.py")
"""What of the package a compiled function needs."""
NO_TEMPORARY = "import tempfile; tempfile.tempdir = '/nowhere';"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a part of the package, root's, and one that the other user may write to."""
    require_other_user()
    with open_folder(Path("/tmp")) as folder:
        package = folder / "lib" / "kafka_segments"
        package.mkdir(parents=True)
        for name in (
            "__init__.py",
            "release.py",
            "errors.py",
            "compiled_sources.py",
            "compiling.py",
        ):
            shutil.copy(LIBRARY / "kafka_segments" / name, package)
        (package / "small.py").write_text(SOURCE)
        (folder / "own").mkdir()
        give(folder / "own")
        yield folder


def _hits(folder: Path, before: str = "", **environment: str) -> int:
    """Call the function as the other user; return how often it was taken from a cache."""
    done = run_as_other(
        [sys.executable, "-c", before + ASK],
        {"PYTHONPATH": str(folder / "lib"), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        folder,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
def test_without_a_home_it_is_kept_among_the_users_own_temporary_files(folder: Path) -> None:
    hits = [_hits(folder, TMPDIR=str(folder / "own")) for _ in range(2)]

    (kept,) = (folder / "own").iterdir()
    assert hits == [0, 1]
    assert (kept.name, kept.stat().st_mode & 0o777) == (f"kafka-segments-compiled-{USER}", 0o700)
    assert sorted(path.name for path in folder.iterdir()) == ["lib", "own"]  # no folder named ~


def test_a_folder_of_somebody_elses_is_not_taken_for_the_users_own(folder: Path) -> None:
    foreign = folder / "own" / f"kafka-segments-compiled-{USER}"
    foreign.mkdir()
    foreign.chmod(0o777)

    assert _hits(folder, TMPDIR=str(folder / "own")) == 0

    assert list(foreign.iterdir()) == []


@pytest.mark.slow
def test_while_a_function_is_compiled_the_process_says_so(folder: Path) -> None:
    ask = (
        "from kafka_segments.compiling import COMPILED_NOW; from kafka_segments.small import one;"
        "seen = []; load = one._cache.load_overload;"
        "one._cache.load_overload = lambda *a: (load(*a), seen.append(set(COMPILED_NOW)))[0];"
        "one(); print(*seen, COMPILED_NOW)"
    )
    environment = {"PYTHONPATH": str(folder / "lib"), "NUMBA_CACHE_DIR": str(folder / "own")}

    told = [
        subprocess.run(
            [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]

    assert told == ["{'kafka_segments.small.one'} set()\n", "set() set()\n"]


def test_where_nothing_may_be_written_each_process_compiles(folder: Path) -> None:
    assert _hits(folder, NO_TEMPORARY) == 0


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "given"])
def test_what_root_compiled_is_taken_where_it_may_only_be_read(
    folder: Path, given: str | None
) -> None:
    environment = {} if given is None else {"NUMBA_CACHE_DIR": str(folder / given)}
    own = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run(
        [sys.executable, "-c", ASK],
        env={**own, "PYTHONPATH": str(folder / "lib"), **environment},
        check=True,
    )

    assert _hits(folder, NO_TEMPORARY, **environment) == 1


@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_what_was_compiled_of_another_file_before_is_not_run(
    tmp_path: Path, is_packed: bool
) -> None:
    """A checkout is updated in place: the file of the function that is called stays as it was."""
    lib, archive = tmp_path / "lib", tmp_path / "package.zip"
    wire = lib / "kafka_segments" / "kafka" / "wire"
    wire.mkdir(parents=True)
    for name in COPIED:
        shutil.copy(LIBRARY / "kafka_segments" / name, lib / "kafka_segments")
    (wire / "outer.py").write_text(
        "from kafka_segments.compiling import njit\n"
        "from kafka_segments.kafka.wire.inner import number\n\n\n"
        "@njit(cache=True)\ndef told():\n    return number()\n"
    )
    environment = os.environ | {
        "PYTHONPATH": str(archive if is_packed else lib),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "compiled"),
    }

    def told(number: int) -> str:
        inner = "from kafka_segments.compiling import njit\n\n\n@njit\ndef number():\n"
        (wire / "inner.py").write_text(f"{inner}    return {number}\n")
        shutil.make_archive(str(archive.with_suffix("")), "zip", lib)
        ask = "from kafka_segments.kafka.wire.outer import told; print(told())"
        done = subprocess.run(
            [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert [told(1), told(2), told(1)] == ["1", "2", "1"]
