"""Whether a warehouse can be written, looked at before the work and not after it."""

import os
from pathlib import Path

from kafka_segments.console.lines import say
from kafka_segments.errors import UsageError


def keeps_nothing(warehouse: str | None, *, dry_run: bool) -> bool:
    """Tell whether a verb gives its answer without keeping it.

    So it is with --dry-run, and where this user cannot write the warehouse, which is said.
    """
    why = None if dry_run or warehouse is None else _why_not_writable(warehouse)
    if why is None:
        return dry_run
    say(f"{warehouse} cannot be written ({why}): the answer is given, and not kept there")
    return True


def require_writable(warehouse: str) -> None:
    """Refuse to begin work whose result goes to a warehouse that cannot be written.

    Raises:
        UsageError: this user cannot write it.
    """
    why = _why_not_writable(warehouse)
    if why is not None:
        raise UsageError(
            f"{warehouse} cannot be written ({why}): make it writable, or take a copy or another"
            " --warehouse"
        )


def _why_not_writable(warehouse: str) -> str | None:
    """Return why a local folder, or the one that it would be made in, cannot be written.

    A store says it at the first write. Root may write what is no read-only file system.
    """
    from kafka_segments.files.storage.refused_calls import refused_call  # noqa: PLC0415
    from kafka_segments.files.storage.stores import store_of  # noqa: PLC0415

    if not store_of(warehouse).is_local:
        return None
    folder = Path(warehouse)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return "read-only, or not this user's"
    refused = refused_call(folder)
    return None if refused is None else f"its file system has no {refused}"
