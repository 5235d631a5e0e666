"""PySpark's daemon of Python workers, silent where the JVM hangs up on one.

The JVM hangs up on a worker that it needs no more rows of (a limit), and on one idle for a minute.
PySpark takes the write that then fails for a fault, and prints a traceback for each.
"""

import socket

from pyspark import daemon

_HUNG_UP = 1  # as the exit code of a worker: it is not used again
_run_worker = daemon.worker


def _worker(sock: socket.socket, authenticated: bool) -> int:
    try:
        return _run_worker(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):
        return _HUNG_UP


if __name__ == "__main__":
    daemon.worker = _worker
    daemon.manager()
