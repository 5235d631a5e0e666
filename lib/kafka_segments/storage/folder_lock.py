"""Locks of a warehouse: builds share one, what rewrites their index files has it alone."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
