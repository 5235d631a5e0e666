"""The daemon of Python workers, where the JVM hangs up on one."""

import socket

import pytest

from kafka_segments.engine.spark import worker_daemon


@pytest.mark.parametrize("hung_up", [BrokenPipeError, ConnectionResetError])
def test_a_worker_that_the_jvm_hung_up_on_ends_without_a_fault(
    monkeypatch: pytest.MonkeyPatch, hung_up: type[OSError]
) -> None:
    def write_last_bytes(sock: socket.socket, authenticated: bool) -> int:
        raise hung_up

    monkeypatch.setattr(worker_daemon, "_run_worker", write_last_bytes)
    ours, jvms = socket.socketpair()

    with ours, jvms:
        assert worker_daemon._worker(ours, authenticated=True) != 0
