"""Living processes that a test started, by a variable that they have inherited."""

import time
from pathlib import Path

MARK = "STARTED_BY_A_TEST"
_PATIENCE_SECONDS = 60


def living(mark: str) -> dict[int, str]:
    """Return the command lines, by process id, of those whose variable ``MARK`` has this value."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in variables and line:
            found[int(folder.name)] = line
    return found


def left_in_the_end(mark: str) -> list[str]:
    """Wait for them to end; return those that do not."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while living(mark) and time.monotonic() < until:
        time.sleep(0.2)
    return sorted(living(mark).values())
