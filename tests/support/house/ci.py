"""What a machine lacks: a test is skipped for it, and fails in CI, where nobody reads of skips."""

import os
import shutil
import subprocess

import pytest

_NO = {"", "0", "false"}
OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount")
"""Runs a command that mounts what it alone sees."""


def is_ci() -> bool:
    """Tell whether tests run as CI runs them."""
    return os.environ.get("CI", "").lower() not in _NO


def require_own_mounts() -> None:
    """Skip a test where a command cannot have mounts of its own, as ``skip_but_in_ci`` does."""
    if not (shutil.which("unshare") and not subprocess.call([*OWN_MOUNTS, "true"])):
        skip_but_in_ci("unshare (apt-get install util-linux) that may mount a disk of its own")


def skip_but_in_ci(lacking: str) -> None:
    """Skip a test for what this machine lacks; with CI set, fail it."""
    reason = f"this machine has no {lacking}"
    if not is_ci():
        pytest.skip(reason)
    pytest.fail(f"{reason}; CI is set, so that is no reason to skip")
