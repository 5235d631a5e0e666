"""A test that is skipped on a machine that lacks something fails in CI; `.ci/run` has it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.house.ci import skip_but_in_ci

RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"
MADE = [
    "make jars CI=true",
    "make jars-s3 jars-test airflow-setup CI=true",
    "make lint CI=true",
    "make test CI=true",
    "make test-slow CI=true",
]
"""The second and the third at once."""


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [
        (None, pytest.skip.Exception),
        ("", pytest.skip.Exception),
        ("false", pytest.skip.Exception),
        ("true", pytest.fail.Exception),
        ("1", pytest.fail.Exception),
    ],
)
def test_what_is_lacking_is_a_failure_in_ci_alone(
    monkeypatch: pytest.MonkeyPatch, ci: str | None, outcome: type[BaseException]
) -> None:
    if ci is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="this machine has no such thing"):
        skip_but_in_ci("such thing")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH of its own with what `.ci/run` needs; make and apt-get only say how they are run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "env"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name in ("make", "apt-get"):
        _tool(folder, name, f'echo "{name} $* CI=$CI"')
    for name in ("javac", "mvn", "python3"):
        _tool(folder, name)
    return folder


def _tool(folder: Path, name: str, does: str = "true") -> None:
    tool = folder / name
    tool.write_text(f"#!/usr/bin/env bash\n{does}\n")
    tool.chmod(0o755)


def _run(tools: Path, user: int) -> subprocess.CompletedProcess[str]:
    _tool(tools, "id", f"echo {user}")
    environment = {"PATH": str(tools), "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [tools / "bash", RUN], env=environment, capture_output=True, text=True, check=False
    )


def test_ci_installs_what_its_tests_need_where_it_may(tools: Path) -> None:
    _tool(tools, "unshare")

    update, install, *made = _run(tools, user=0).stdout.splitlines()

    assert update == "apt-get update -qq CI=true"
    assert install == "apt-get install -y -qq --no-install-recommends chromium CI=true"
    assert _in_order(made) == MADE


def test_ci_that_has_what_its_tests_need_installs_nothing(tools: Path) -> None:
    _tool(tools, "unshare")
    _tool(tools, "chromium-browser")

    assert _in_order(_run(tools, user=1000).stdout.splitlines()) == MADE


def test_ci_ends_before_the_tests_where_something_cannot_be_fetched(tools: Path) -> None:
    _tool(tools, "unshare")
    _tool(tools, "chromium")
    _tool(tools, "make", 'echo "make $*"; [[ $* != *airflow-setup* ]]')

    done = _run(tools, user=1000)

    assert done.returncode == 1
    assert not {"make test", "make test-slow"}.intersection(done.stdout.splitlines())


def _in_order(made: list[str]) -> list[str]:
    """Return what was made, with the two targets that are made at once by their names."""
    return [made[0], *sorted(made[1:3]), *made[3:]]


def test_ci_installs_java_and_maven_on_a_machine_that_has_nothing(tools: Path) -> None:
    for name in ("javac", "mvn", "python3"):
        (tools / name).unlink()

    install = _run(tools, user=0).stdout.splitlines()[1]

    assert install.endswith(
        " chromium util-linux openjdk-17-jdk-headless maven python3-venv CI=true"
    )


def test_ci_that_may_install_nothing_says_what_it_lacks(tools: Path) -> None:
    done = _run(tools, user=1000)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "the tests need chromium util-linux: run this as root, or install them\n"
