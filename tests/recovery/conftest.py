"""A node's log directories, for tests that spoil one thing in them."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def node(cluster: Path, tmp_path: Path) -> Path:
    """The two log directories of a node that was killed, without what was to be deleted."""
    target = tmp_path / "node"
    found = next(cluster.rglob("node-1"))
    shutil.copytree(found, target)
    for folder in target.glob("*/*-delete"):
        shutil.rmtree(folder)
    return target
