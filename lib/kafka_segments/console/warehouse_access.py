"""Whether a warehouse can be written, looked at before the work and not after it."""

import os
from pathlib import Path

from kafka_segments.console.lines import say
from kafka_segments.errors import UsageError


def keeps_nothing(warehouse: str | None, *, dry_run: bool) -> bool:
    """Tell whether a verb gives its answer without keeping it.

    So it is with --dry-run, and where this user cannot write the warehouse, which is said.
    """
    if dry_run or warehouse is None or _is_writable(warehouse):
        return dry_run
    say(f"{warehouse} cannot be written (read-only): the answer is given, and not kept there")
    return True


def require_writable(warehouse: str) -> None:
    """Refuse to begin work whose result goes to a warehouse that cannot be written.

    Raises:
        UsageError: this user cannot write it.
    """
    if not _is_writable(warehouse):
        raise UsageError(
            f"{warehouse} cannot be written (read-only, or not this user's): make it writable, or"
            " take a copy or another --warehouse"
        )


def _is_writable(warehouse: str) -> bool:
    """Tell whether a local folder, or the one that it would be made in, can be written.

    A store says it at the first write. Root may write what is no read-only file system.
    """
    from kafka_segments.files.storage.stores import store_of  # noqa: PLC0415

    if not store_of(warehouse).is_local:
        return True
    folder = Path(warehouse)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)
