"""PySpark's daemon of Python workers: quicker to start, and silent where the JVM hangs up on one.

The JVM names an archive of PySpark's sources to it, which Python compiles anew in each process.
Where that lies in an installed package, the daemon imports the package: it is compiled already.
What each worker needs it imports before it forks the first one.

The JVM hangs up on a worker that it needs no more rows of (a limit), and on one idle for a minute.
PySpark takes the write that then fails for a fault, and prints a traceback for each.
"""

import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_ARCHIVE = "/pyspark/python/lib/pyspark.zip"
_OF_EACH_WORKER = ("pandas", "pyarrow", "numba")
_HUNG_UP = 1  # as the exit code of a worker: it is not used again
Worker = Callable[[socket.socket, bool], int]


def without_archive(paths: list[str]) -> list[str]:
    """Return where modules are looked for, without archives of packages that are found there."""
    return [path for path in paths if path.removesuffix(_ARCHIVE) not in set(paths) - {path}]


def quiet(worker: Worker) -> Worker:
    """Return a worker that ends without a fault where the JVM hangs up on it."""

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return _HUNG_UP

    return run


if __name__ == "__main__":
    sys.path[:] = without_archive(sys.path)
    for name in _OF_EACH_WORKER:
        import_module(name)
    daemon: Any = import_module("pyspark.daemon")
    daemon.worker = quiet(daemon.worker)
    daemon.manager()
