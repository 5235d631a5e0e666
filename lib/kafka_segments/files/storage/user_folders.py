"""The folders that a user's own files lie in. Source: XDG Base Directory Specification."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return where files lie that can be made again."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """Return where a history lies."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    """Return the folder that a variable names by its absolute path, else the usual one at home."""
    named = Path(os.environ.get(variable, ""))
    return (named if named.is_absolute() else Path.home() / usual) / "kafka-segments"
