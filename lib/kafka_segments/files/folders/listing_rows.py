"""The rows of a listing, and how to read the small files that a broker keeps in a folder.

Nothing is left out in silence: a file that is no segment gets a row that says why.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kafka_segments.errors import CorruptTextError
from kafka_segments.files.folders.kinds import NOT_FOLLOWED, UNRECOGNIZED
from kafka_segments.files.storage.durable_files import TEMPORARY
from kafka_segments.files.storage.files import Place, first_line, read_whole
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.kafka.text import checkpoints

MOST_LEVELS = 4
MOST_TEXT_BYTES = 64 * 1024 * 1024
_T = TypeVar("_T")


class Listed(NamedTuple):
    """One row of a listing; values that its kind does not have are None.

    ``relative_path`` is the path of the folder below its source, ``""`` for the source itself.
    """

    kind: str
    source: str
    relative_path: str
    name: str = ""
    log_dir: str = ""
    topic: str | None = None
    partition: int | None = None
    folder_state: str | None = None
    base_offset: int | None = None
    size_bytes: int | None = None
    mtime_ns: int | None = None
    is_active: bool = False
    next_base_offset: int | None = None
    reason: str | None = None
    topic_id: str | None = None
    leader_epochs: list[checkpoints.EpochStart] | None = None
    meta: dict[str, Any] | None = None
    offsets: list[dict[str, Any]] | None = None


def unrecognized(
    source: str, relative_path: str, entry: FileEntry, reason: str, kind: str = UNRECOGNIZED
) -> Listed:
    """Return the row of a file or folder that is no segment; ``kind``: one of ``NOT_TAKEN``."""
    is_link = entry.link is not None and entry.oddity is not None
    return Listed(
        NOT_FOLLOWED if is_link else kind,
        source,
        relative_path,
        name=entry.name,
        size_bytes=None if entry.is_folder else entry.size_bytes,
        reason=reason,
    )


def why_strange(entry: FileEntry) -> str | None:
    """Return why an entry of a partition's folder is none that a broker or a tier makes there.

    None: its name does not rule it out.
    """
    if entry.is_folder:
        return "a folder inside a partition's folder"
    if entry.oddity is not None:
        return entry.oddity
    if entry.name.endswith(TEMPORARY):
        return "unfinished file of a kafka-segments run that was stopped; may be removed"
    return None


def leads_nowhere(entry: FileEntry) -> bool:
    """Tell whether an entry is a link to what is not there: to a broker there is no such file."""
    return entry.link is not None and not Path(entry.link).exists()


class BrokerFiles:
    """The small text files that a broker keeps in a folder."""

    def __init__(self, folder: Place, entries: list[FileEntry]) -> None:
        self._folder = folder
        self._present = {entry.name: entry for entry in entries}
        self._problems: list[str] = []

    def __contains__(self, name: str) -> bool:
        """Tell whether a broker finds such a file in the folder, whatever it is."""
        return name in self._present and not leads_nowhere(self._present[name])

    def parse(self, name: str, parse: Callable[[str], _T], *, encoding: str = "utf-8") -> _T | None:
        """Parse a file; None if it does not exist or cannot be parsed (``problems`` says why)."""
        if name not in self._present:
            return None
        if self._present[name].oddity is not None:
            self._problems.append(f"{name}: {self._present[name].oddity}")
            return None
        try:
            data = read_whole(self._folder.child(name), most_bytes=MOST_TEXT_BYTES)
            return parse(data.decode(encoding))
        except CorruptTextError as error:
            self._problems.append(str(error))
        except (OSError, UnicodeDecodeError) as error:
            self._problems.append(f"{name}: {first_line(error)}")
        return None

    def note(self, name: str, problem: str) -> None:
        """Note what a file lacks though it was parsed."""
        self._problems.append(f"{name}: {problem}")

    @property
    def problems(self) -> str | None:
        """What could not be read so far, and why."""
        return "; ".join(self._problems) or None
