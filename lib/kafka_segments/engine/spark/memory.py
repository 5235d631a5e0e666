"""How much heap a local session's JVM may take, beside Python, on this machine or in its container.

A JVM whose heap's ceiling lies above the limit of its container may grow beyond it: it is killed.
"""

import os
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")
_MOST_MIB = 2048  # a ceiling, taken only where needed
_LEAST_MIB = 512  # Spark does not start with less than 450
_MIB = 1024**2


def heap_ceiling(root: Path = _ROOT) -> str:
    """Return ``spark.driver.memory``: half of what this process may take, 512 MiB to 2 GiB.

    The other half is Python's, and what a JVM needs besides its heap.
    ``root``: where the file systems ``proc`` and ``sys`` are.
    """
    half = min(_limits(root)) // (2 * _MIB)
    return f"{max(_LEAST_MIB, min(half, _MOST_MIB))}m"


def _limits(root: Path) -> Iterator[int]:
    """Yield this machine's memory, and the limits of the control groups that this process is in."""
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        groups = (root / "proc/self/cgroup").read_text("ascii", "replace").splitlines()
    except OSError:
        groups = []
    for line in groups:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from _limits_above(root / "sys/fs/cgroup", path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_above(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")


def _limits_above(mount: Path, path: str, name: str) -> Iterator[int]:
    """Yield the limits of a group and of those above it: a container sees its own as the root."""
    group = Path(path.strip("/"))
    for folder in (group, *group.parents):
        try:
            text = (mount / folder / name).read_text("ascii", "replace").strip()
        except OSError:
            continue
        if text.isdecimal():  # else "max": none
            yield int(text)
