"""The heap's ceiling by the limits of a container, of which files stand in for the kernel's."""

import os
from pathlib import Path

import pytest

from kafka_segments.engine.spark import memory
from kafka_segments.engine.spark.memory import heap_ceiling

GIB = 1024**3
V1, V2 = "9:cpu,memory:/docker/a\n", "0::/pod/a\n"


def _group(root: Path, groups: str, limits: dict[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in limits.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return root


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 16 GiB."""
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 * GIB // 4096}
    monkeypatch.setattr(memory.os, "sysconf", lambda name: sizes.get(name) or os.sysconf(name))


@pytest.mark.parametrize(
    ("groups", "limits", "ceiling"),
    [
        (V2, {}, "2048m"),
        (V2, {"pod/a/memory.max": "max"}, "2048m"),
        (V2, {"pod/a/memory.max": str(8 * GIB)}, "2048m"),
        (V2, {"pod/a/memory.max": str(3 * GIB)}, "1536m"),
        (V2, {"pod/a/memory.max": "max", "pod/memory.max": str(GIB)}, "512m"),
        ("0::/\n", {"memory.max": str(2 * GIB)}, "1024m"),
        (V1, {"memory/docker/a/memory.limit_in_bytes": str(GIB)}, "512m"),
        (V1, {"memory/memory.limit_in_bytes": str(3 * GIB)}, "1536m"),
        (V1, {"memory/docker/a/memory.limit_in_bytes": "9223372036854771712"}, "2048m"),
        ("9:cpu:/a\n", {"memory/a/memory.limit_in_bytes": str(GIB)}, "2048m"),
        (V2, {"pod/a/memory.max": str(GIB // 8)}, "512m"),
    ],
)
def test_half_of_the_least_limit_is_the_heaps(
    tmp_path: Path, groups: str, limits: dict[str, str], ceiling: str
) -> None:
    assert heap_ceiling(_group(tmp_path, groups, limits)) == ceiling


def test_without_groups_the_machine_is_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heap_ceiling(tmp_path) == "2048m"
    monkeypatch.setattr(memory.os, "sysconf", lambda name: {"SC_PAGE_SIZE": GIB}.get(name, 3))
    assert heap_ceiling(tmp_path) == "1536m"
