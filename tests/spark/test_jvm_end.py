"""A JVM that ends under its command, told in one line: a plain process stands for it here."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from kafka_segments.console.options import run
from kafka_segments.engine.spark import session as sessions
from kafka_segments.engine.spark.jvm_end import jvm_end
from kafka_segments.errors import SparkEndedError, TerminatedError, UsageError


class FakeSpark:
    """A session as far as its start and its end need one."""

    def __init__(self, process: subprocess.Popen[bytes] | None, port: int = 0) -> None:
        self.process = process
        self.stopped = 0
        where = SimpleNamespace(address="127.0.0.1", port=port)
        gateway = SimpleNamespace(proc=process, java_parameters=where)
        self.sparkContext = SimpleNamespace(_gateway=gateway)

    def stop(self) -> None:
        self.stopped += 1
        if self.process is not None and self.process.poll() is not None:
            raise ConnectionRefusedError("[Errno 111] Connection refused")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeps) as started:
        yield started
        started.kill()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]) -> FakeSpark:
    spark = FakeSpark(process)
    builder = SimpleNamespace(getOrCreate=lambda: spark)
    builder.appName = builder.config = lambda *_, **__: builder
    found = SimpleNamespace(getActiveSession=lambda: None, builder=builder)
    monkeypatch.setattr(sessions, "SparkSession", found)
    monkeypatch.setattr(sessions, "has_jvm", lambda: False)
    monkeypatch.setattr(sessions, "ready_jars", lambda root: [])  # else they were fetched
    monkeypatch.setattr(sessions, "let_jvm_remove", lambda *_: None)  # of a JVM there is none
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return spark


def test_a_command_whose_jvm_is_killed_says_so_and_ends_with_3(
    fake: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        with sessions.spark_session("test", root=tmp_path):
            os.kill(fake.process.pid, signal.SIGKILL)
            raise Py4JNetworkError("Answer from Java side is empty")

    with pytest.raises(SystemExit) as ended:
        run(command, verbose=False)

    assert ended.value.code == 3
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("kafka-segments: Spark's JVM ended: SIGKILL, as the kernel")


def test_an_error_beside_a_jvm_that_lives_stays_what_it_is(fake: Any, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="no such topic"),
        sessions.spark_session("test", root=tmp_path),
    ):
        raise UsageError("no such topic")

    assert fake.stopped == 1


@pytest.mark.parametrize(
    ("interrupt", "status", "how"),
    [(KeyboardInterrupt, 130, "interrupted"), (TerminatedError, 143, "ended by SIGTERM")],
)
def test_an_interrupt_is_told_whatever_fails_on_the_way_out(
    fake: Any,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    interrupt: type[KeyboardInterrupt],
    status: int,
    how: str,
) -> None:
    def command() -> int:
        with sessions.spark_session("test", root=tmp_path):
            os.kill(fake.process.pid, signal.SIGKILL)
            fake.process.wait()
            try:
                raise interrupt
            finally:
                raise Py4JNetworkError("Answer from Java side is empty")

    with pytest.raises(SystemExit) as ended:
        run(command, verbose=False)

    assert ended.value.code == status
    told = f"kafka-segments: {how}; what was done is kept, run it again"
    assert told in capfd.readouterr().err.splitlines()


def test_a_session_that_cannot_be_stopped_leaves_what_the_command_ended_by(
    fake: Any, tmp_path: Path
) -> None:
    with (
        pytest.raises(TerminatedError),
        sessions.spark_session("test", root=tmp_path),
    ):
        os.kill(fake.process.pid, signal.SIGKILL)
        fake.process.wait()
        raise TerminatedError

    assert fake.stopped == 1


def test_a_full_disk_does_not_wait_for_the_jvm_to_end(fake: Any, tmp_path: Path) -> None:
    waited: list[float] = []
    wait = fake.process.wait

    def noted_wait(seconds: float) -> int:
        waited.append(seconds)
        return wait(0)

    fake.process.wait = noted_wait
    with (
        pytest.raises(OSError, match="No space left"),
        sessions.spark_session("test", root=tmp_path),
    ):
        raise OSError("No space left on device")

    fake.process.wait = wait
    assert waited == [0]


def test_a_submitted_command_tells_by_the_closed_port() -> None:
    ended = jvm_end(FakeSpark(None, port=1), ConnectionResetError())  # type: ignore[arg-type]

    assert isinstance(ended, SparkEndedError)
    assert str(ended).startswith("Spark's JVM ended: its log says why; what was done is kept")
