"""The daemon of Python workers, where the JVM hangs up on one."""

import socket

import pytest

from kafka_segments.spark import worker_daemon


def test_a_worker_that_the_jvm_hung_up_on_ends_without_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE", "1")  # Spark's default
    ours, jvms = socket.socketpair()
    jvms.close()

    with pytest.raises(BrokenPipeError):
        worker_daemon._run_worker(ours, authenticated=True)
    assert worker_daemon._worker(ours, authenticated=True) != 0

    ours.close()
