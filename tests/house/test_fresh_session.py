"""A test that ran out of time does not take the tests behind it along."""

import subprocess
import sys
from pathlib import Path

TESTS_ROOT = Path(__file__).resolve().parents[1]
CONFTEST = """
import pytest
from support.spark import fresh_session

MADE = []

def pytest_configure(config):
    config.pluginmanager.register(fresh_session)

@pytest.fixture(scope="session")
def spark():
    MADE.append(len(MADE))
    yield MADE[-1]
    raise ConnectionError("nobody answers")

@pytest.fixture(scope="session")
def table(spark):
    return f"of session {spark}"
"""
TESTS = """
import time
import pytest

def test_before(table):
    assert table == "of session 0"

@pytest.mark.timeout(1)
def test_without_end(table):
    time.sleep(60)

def test_behind(table):
    assert table == "of session 1"

def test_a_failure_keeps_the_session(table):
    assert table == "of session 2"

def test_behind_it(table):
    assert table == "of session 1"
"""


def test_the_session_of_a_test_that_ran_out_of_time_is_no_other_tests(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_them.py").write_text(TESTS)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(TESTS_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    told = [line for line in done.stdout.splitlines() if line[:6] in ("PASSED", "FAILED")]
    assert [line.partition(" - ")[0].replace("test_them.py::", "") for line in told] == [
        "PASSED test_before",
        "PASSED test_behind",
        "PASSED test_behind_it",
        "FAILED test_without_end",
        "FAILED test_a_failure_keeps_the_session",
    ], done.stdout
