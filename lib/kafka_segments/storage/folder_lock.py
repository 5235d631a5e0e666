"""Locks of folders: a warehouse's own, and the one that a broker holds on a log directory."""

import fcntl  # POSIX locks, which Java takes too
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.storage.stores import store_of
from kafka_segments.wire.checkpoints import LOCK

_NAME = "_lock"
_CREATION = "_locks"


@contextmanager
def warehouse_lock(warehouse: str, *, alone: bool) -> Iterator[None]:
    """Wait for the lock of a warehouse on a local or shared disk, and hold it.

    It goes when its process ends, however that ends. Stores without locks have none.
    """
    if not store_of(warehouse).has_locks:
        yield
        return
    with _locked(os.path.join(warehouse, _NAME), fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
        yield


@contextmanager
def creation_lock(warehouse: str, table: str) -> Iterator[None]:
    """Wait for the lock under which a table is made, as ``warehouse_lock``."""
    if not store_of(warehouse).has_locks:
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


@contextmanager
def held_lock(lock: Path) -> Iterator[None]:
    """Hold a log directory's lock file, so that no broker starts on it; none there: a copy.

    Raises:
        SetAsideError: a running broker on this machine holds it.
    """
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetAsideError(lock.parent, "its .lock is held: stop its broker first") from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def held_log_dirs(log_dirs: Iterable[str]) -> Iterator[None]:
    """Hold the lock files of several log directories, those on stores with locks.

    Raises:
        UsageError: a running broker on this machine holds one.
    """
    with ExitStack() as locks:
        for log_dir in log_dirs:
            if store_of(log_dir).has_locks:
                try:
                    locks.enter_context(held_lock(Path(log_dir) / LOCK))
                except SetAsideError:
                    raise UsageError(f"{log_dir} is locked: stop its broker first") from None
        yield


def refuse_locked(log_dirs: Iterable[str]) -> None:
    """Refuse log directories that a running broker holds now.

    Raises:
        UsageError: as ``held_log_dirs``.
    """
    with held_log_dirs(log_dirs):
        pass
