"""Locks of folders: a warehouse's own, and the one that a broker holds on a log directory."""

import fcntl  # POSIX locks, which Java takes too
import logging
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka_segments.errors import SetAsideError, UsageError
from kafka_segments.files.storage.stores import store_of
from kafka_segments.kafka.text.checkpoints import LOCK

_LOG = logging.getLogger(__name__)
_NAME = "_lock"
_CREATION = "_locks"
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux


class LockState(NamedTuple):
    """Whether somebody holds the lock of a log directory.

    ``is_held`` None: not known, ``reason`` says why. ``pid``: of the process that holds it; None:
    it is on another machine, or in another container.
    """

    is_held: bool | None
    pid: int | None = None
    reason: str = ""


@contextmanager
def warehouse_lock(warehouse: str, *, alone: bool) -> Iterator[None]:
    """Wait for the lock of a warehouse, and hold it; a wait is logged.

    The kernel releases it when the process ends, however it ends. A store without locks has none.
    """
    if not store_of(warehouse).has_locks:
        yield
        return
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with _locked(os.path.join(warehouse, _NAME), kind, waits_for=f"other runs on {warehouse}"):
        yield


@contextmanager
def creation_lock(warehouse: str, table: str) -> Iterator[None]:
    """Wait for the lock under which a table is made, and hold it, as ``warehouse_lock``."""
    if not store_of(warehouse).has_locks:
        yield
        return
    with _locked(os.path.join(warehouse, _CREATION, table), fcntl.LOCK_EX):
        yield


@contextmanager
def commit_lock(table: str) -> Iterator[None]:
    """Wait for the lock under which a version of a table is committed, and hold it.

    Spark's commit to a local disk asks whether the version is there and then renames, and a rename
    replaces what came in between (Delta's HDFSLogStore by Hadoop's FileContext; no other one of
    Delta's, nor a file system of Hadoop's, does better). So all commits of ours wait for each
    other, those by ``os.link`` too.

    Args:
        table: the path or URI of the table's folder. In a store without locks nothing is held.
    """
    if not store_of(table).has_locks:
        yield
        return
    warehouse, name = os.path.split(table.rstrip("/"))
    with _locked(os.path.join(warehouse, _CREATION, f"{name}.commits"), fcntl.LOCK_EX):
        yield


@contextmanager
def internals_lock(warehouse: str) -> Iterator[None]:
    """Wait until no other run reads internal topics, as ``warehouse_lock``.

    A history is folded from all replicas in the tables: two runs at the same time would each
    miss the other's.
    """
    with creation_lock(warehouse, "_internals"):
        yield


@contextmanager
def _locked(path: str, kind: int, *, waits_for: str = "") -> Iterator[None]:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if waits_for:
                _LOG.warning("waiting until %s end", waits_for)
            fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def held_lock(lock: Path, *, creates: bool = False) -> Iterator[None]:
    """Hold the lock file of a log directory, so that no broker starts on it.

    A log directory without a lock file is a copy. With ``creates`` it gets one, as from a broker
    that starts, and keeps it: a broker may have opened it meanwhile. Else nothing is held.

    Raises:
        SetAsideError: a running broker on this machine, or a run of ours, holds it; or it cannot be
            made or locked.
    """
    try:
        descriptor = _opened(lock, creates=creates)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise SetAsideError(lock, f"cannot be opened: {error.strerror}") from None
    except ValueError:  # a name with a NUL
        raise SetAsideError(lock, "no name of a file") from None
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise SetAsideError(lock.parent, "its .lock is held: stop its broker first") from None
        except OSError as error:
            raise SetAsideError(lock, f"cannot be locked: {error.strerror}") from None
        yield
    finally:
        os.close(descriptor)


def lock_state(log_dir: str) -> LockState:
    """Ask whether a broker on this machine holds the lock of a log directory; none is taken."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe is not waited for
        descriptor = os.open(os.path.join(log_dir, LOCK), flags)
    except FileNotFoundError:
        return LockState(False)
    except OSError as error:
        return LockState(None, reason=f"{LOCK} cannot be opened: {error.strerror}")
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except OSError as error:
        return LockState(None, reason=f"{LOCK} cannot be asked: {error.strerror}")
    finally:
        os.close(descriptor)
    return LockState(kind != fcntl.F_UNLCK, pid if kind != fcntl.F_UNLCK and pid > 0 else None)


@contextmanager
def lock_or_reason(
    log_dir: Path, *, creates: bool = False, check: Callable[[], None] = lambda: None
) -> Iterator[str | None]:
    """Hold the lock of a log directory as ``held_lock``; yield why it is left alone, None: held.

    ``check`` is asked once it is held, and raises a SetAsideError to have it left alone.
    """
    with ExitStack() as lock:
        reason = None
        try:
            lock.enter_context(held_lock(log_dir / LOCK, creates=creates))
            check()
        except SetAsideError as error:
            reason = str(error)
        yield reason


def _opened(lock: Path, *, creates: bool) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        if not creates:
            raise
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    owner = lock.parent.stat()
    try:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)  # its broker opens it to write
    except PermissionError:
        os.close(descriptor)
        lock.unlink()
        raise
    return descriptor


@contextmanager
def held_log_dirs(log_dirs: Iterable[str]) -> Iterator[None]:
    """Hold the lock files of several log directories; those on stores without locks have none.

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
    """Check that no running broker holds a log directory.

    Raises:
        UsageError: see ``held_log_dirs``.
    """
    with held_log_dirs(log_dirs):
        pass
