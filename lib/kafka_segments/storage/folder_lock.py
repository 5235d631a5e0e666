"""One lock a warehouse: builds share it, what rewrites their index files has it alone."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = "_lock"


@contextmanager
def warehouse_lock(warehouse: str, *, alone: bool) -> Iterator[None]:
    """Wait for the lock of a warehouse on a local or shared disk and hold it.

    It goes when its process ends, however that ends. On object stores there is none.
    """
    if "://" in warehouse:
        yield
        return
    Path(warehouse).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(os.path.join(warehouse, _NAME), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
