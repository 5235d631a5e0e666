"""Locks of folders: a warehouse's own, and the one that a broker holds on a log directory."""

import fcntl  # POSIX locks, which Java takes too
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_segments.errors import UsageError
from kafka_segments.wire.checkpoints import LOCK

_NAME = "_lock"
_CREATION = "_locks"


@contextmanager
def warehouse_lock(warehouse: str, *, alone: bool) -> Iterator[None]:
    """Wait for the lock of a warehouse on a local or shared disk and hold it.

    It goes when its process ends, however that ends. On object stores there is none.
    """
    if "://" in warehouse:
        yield
        return
    with _locked(os.path.join(warehouse, _NAME), fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
        yield


@contextmanager
def creation_lock(warehouse: str, table: str) -> Iterator[None]:
    """Wait for the lock under which a table is made, as ``warehouse_lock``."""
    if "://" in warehouse:
        yield
        return
    with _locked(os.path.join(warehouse, _CREATION, table), fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(path: str, kind: int) -> Iterator[None]:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def refuse_locked(log_dirs: Iterable[str]) -> None:
    """Refuse log directories whose lock file a running broker on this machine holds.

    Raises:
        UsageError: one is locked.
    """
    for log_dir in log_dirs:
        if "://" in log_dir:
            continue
        descriptor = os.open(os.path.join(log_dir, LOCK), os.O_RDWR)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"{log_dir} is locked: stop its broker first") from None
        finally:
            os.close(descriptor)
