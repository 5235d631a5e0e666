"""Where tests keep files for a moment: in memory, if the machine has plenty."""

import os
import re
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
_PLENTY_BYTES = 16 * 2**30  # two heaps of Spark take ten of them


def has_plenty() -> bool:
    """Tell whether all that a run of the tests writes can lie in memory."""
    known = Path("/proc/meminfo")
    if not os.access(MEMORY, os.W_OK) or not known.exists():
        return False
    available = re.search(r"^MemAvailable: +(\d+) kB$", known.read_text(), re.MULTILINE)
    available_bytes = int(available[1]) * 1024 if available else 0
    return min(available_bytes, shutil.disk_usage(MEMORY).free) > _PLENTY_BYTES
