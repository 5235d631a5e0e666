"""A test that ran out of time leaves no Spark behind: the next test gets a session of its own.

What timed out may still run in the JVM, hold its only cores, and answer calls of later tests.
"""

import contextlib
import gc
import warnings
from collections.abc import Generator

import pytest

_FIXTURE = "spark"
_TIMED_OUT = pytest.StashKey[pytest.FixtureRequest]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Kill the JVM of a test that ran out of time."""
    is_timeout = call.excinfo is not None and str(call.excinfo.value).startswith("Timeout (")
    if is_timeout and _FIXTURE in item.fixturenames:
        item.stash[_TIMED_OUT] = item._request
        _kill_jvm()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Function) -> Generator[None, object, object]:
    """Let the next test have another session, and other things that were made with it."""
    done = yield
    request = item.stash.get(_TIMED_OUT, None)
    if request is not None:
        for definition in item.session._fixturemanager.getfixturedefs(_FIXTURE, item) or ():
            with contextlib.suppress(Exception):  # nobody answers who stops it
                definition.finish(request)
        _forget_jvm()
    return done


def _kill_jvm() -> None:
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        process = SparkContext._gateway.proc
        process.kill()
        process.communicate()  # waits, and closes its pipe


def _forget_jvm() -> None:
    """Forget what stopping could not, as nobody answered, and what Python still says of it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    with warnings.catch_warnings(action="ignore"):
        gc.collect()
