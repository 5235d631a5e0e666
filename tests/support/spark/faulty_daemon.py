"""PySpark's daemon of Python workers, with the faults that a test has armed.

A file in the folder that ``FAULTS`` names arms one; the first task that comes to its place
takes the file away and suffers it. The file of a change to a segment holds the segment's path.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import daemon

from kafka_segments.files.storage import files_ahead as in_turn
from kafka_segments.files.storage.files import OpenSegment, Place, open_segment
from kafka_segments.verbs.scan import tasks
from kafka_segments.verbs.scan.entry_files import EntryFiles

FAULTS = Path(os.environ["FAULTS"])
EXECUTOR = os.getppid()
_MOST_SECONDS = 300


def _is_armed(fault: str, path: str = "") -> bool:
    try:
        if (FAULTS / fault).read_text() != path:
            return False
        (FAULTS / fault).rename(FAULTS / f"{fault}.suffered")
    except FileNotFoundError:
        return False
    return True


def _aside(log: Path) -> Path:
    """Give where a segment's file lies that is not in its folder: no build lists it there."""
    return log.parents[2] / f"{log.parent.name}-{log.name}"


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _wait_for_the_end() -> None:
    time.sleep(_MOST_SECONDS)
    raise TimeoutError("not killed")


@contextmanager
def _open(file: Place, *, at_end: Callable[[], None]) -> Iterator[OpenSegment]:
    log = Path(file.path)
    if _is_armed("vanish", file.path):
        log.rename(_aside(log))
    with open_segment(file, at_end=at_end) as segment:
        if _is_armed("truncate", file.path):
            os.truncate(file.path, segment.size_bytes - 10_000)
        if _is_armed("replace", file.path):
            _aside(log).rename(log)

        def read_into(position: int, view: memoryview) -> int:
            read = segment.read_into(position, view)
            if _is_armed("kill_worker"):
                os.kill(_parent(EXECUTOR), signal.SIGKILL)
                os.kill(EXECUTOR, signal.SIGKILL)
                _wait_for_the_end()
            return read

        yield segment._replace(read_into=read_into, fetched_at=None)


class _EntryFiles(EntryFiles):
    """Its end is the task's: index files and entries are written, its rows not yet sent."""

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[arg-type]
        if _is_armed("kill_executor"):
            os.kill(EXECUTOR, signal.SIGKILL)
            _wait_for_the_end()
        if _is_armed("straggle"):
            _wait_for_the_end()


if __name__ == "__main__":
    in_turn.open_segment = _open
    tasks.EntryFiles = _EntryFiles  # type: ignore[misc]
    daemon.manager()
