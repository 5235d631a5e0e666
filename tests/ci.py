"""What a machine lacks: a test is skipped for it, and fails in CI, where nobody reads of skips."""

import os

import pytest

_NO = {"", "0", "false"}


def skip_but_in_ci(lacking: str) -> None:
    """Skip a test for what this machine lacks; with CI set, fail it."""
    reason = f"this machine has no {lacking}"
    if os.environ.get("CI", "").lower() in _NO:
        pytest.skip(reason)
    pytest.fail(f"{reason}; CI is set, so that is no reason to skip")
