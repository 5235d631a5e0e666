"""Read what the commits of a Delta table's log and their names tell, without Spark.

What a version of a table holds is told by ``rows``, which has the library deltalake read it.
"""

import json
import re
import zlib
from typing import Any, NamedTuple, Self

from kafka_segments.errors import NoFolderError, SourceError
from kafka_segments.files.storage.files import Place, list_folder, place, read_whole
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.publishing import remove_folder
from kafka_segments.files.storage.uris import join_uri

COMMIT = re.compile(r"([0-9]{20})\.json")
CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
"""Names in a table's log; the group is the version."""
MOST_COMMIT_BYTES = 64 * 1024 * 1024
_MOST_COMMITS = 100
_LAST_CHECKPOINT = "_last_checkpoint"
_MOST_LAST_CHECKPOINT_BYTES = 4 * 1024 * 1024
# The last one is deltalake's: a commit before it gets its name.
_OF_NO_COMMIT = re.compile(r"\..*|_staged_commits|[0-9]{20}\.json#[0-9]+")


class WrittenCheckpoint(NamedTuple):
    """What a table's log says of the checkpoint that was written last: its version, its bytes."""

    version: int
    size_bytes: int


class TableLog(NamedTuple):
    """What lay in the log of a table when it was listed, by name; nothing without a table."""

    table: str
    entries: list[FileEntry]

    @property
    def version(self) -> int | None:
        """The last version of which there is the commit or a checkpoint; None: of none."""
        of_versions = (
            COMMIT.fullmatch(entry.name) or CHECKPOINT.fullmatch(entry.name)
            for entry in self.entries
        )
        return max((int(found[1]) for found in of_versions if found), default=None)

    @property
    def checkpoint(self) -> FileEntry | None:
        """The newest checkpoint that is one file; None: there is none."""
        found = (entry for entry in self.entries if CHECKPOINT.fullmatch(entry.name))
        return max(found, key=lambda entry: entry.name, default=None)

    @property
    def commits(self) -> list[FileEntry]:
        """The commits that no checkpoint stands for."""
        last = self.checkpoint.name[:20] if self.checkpoint is not None else ""
        commits = (entry for entry in self.entries if COMMIT.fullmatch(entry.name))
        return [entry for entry in commits if entry.name[:20] > last]

    @property
    def written_checkpoint(self) -> WrittenCheckpoint | None:
        """What ``_last_checkpoint`` says; None: nothing, or it is not whole, as Delta takes it.

        Source: delta-io/delta PROTOCOL.md, Last Checkpoint File.
        """
        if not any(entry.name == _LAST_CHECKPOINT for entry in self.entries):
            return None
        try:
            data = read_whole(self.file(_LAST_CHECKPOINT), most_bytes=_MOST_LAST_CHECKPOINT_BYTES)
            told = json.loads(data)
            return WrittenCheckpoint(int(told["version"]), int(told["sizeInBytes"]))
        except (OSError, SourceError, KeyError, TypeError, ValueError, RecursionError):
            return None

    def file(self, name: str) -> Place:
        """Return where a file of the log lies."""
        return log_of(self.table).child(name)

    def actions(self, commit: FileEntry) -> list[dict[str, Any]]:
        """Return the actions of a commit; the errors are those of ``read_actions``."""
        return read_actions(self.file(commit.name))

    def crc(self, commit: FileEntry) -> int | None:
        """Return the CRC-32 of a commit's bytes; None: it is too large for it, or unreadable."""
        if commit.size_bytes > MOST_COMMIT_BYTES:
            return None
        try:
            return zlib.crc32(read_whole(self.file(commit.name), most_bytes=MOST_COMMIT_BYTES))
        except OSError:
            return None

    def without(self, entry: FileEntry) -> Self:
        """Return the same without one of its files."""
        return self._replace(entries=[other for other in self.entries if other is not entry])


def log_of(table: str) -> Place:
    """Return where the log of the table at a URI lies."""
    return place(join_uri(table, "_delta_log"))


def version_of(entry: FileEntry) -> int:
    """Return the version of a commit or a checkpoint."""
    return int(entry.name[:20])


def list_log(table: str) -> TableLog:
    """List the log of the table at a URI.

    Raises:
        SourceError: there is a log, or may be one, and it cannot be listed.
    """
    try:
        return TableLog(table, list_folder(log_of(table)))
    except NoFolderError:
        return TableLog(table, [])


def last_version(table: str) -> int | None:
    """Return the last version of the table at a URI, None without a table."""
    return list_log(table).version


def read_actions(file: Place) -> list[dict[str, Any]]:
    """Return the actions of a commit, each by its kind.

    Raises:
        ValueError: it is no whole commit; says in words what it is.
        OSError: it cannot be read.
    """
    actions = []
    data = read_whole(file, most_bytes=MOST_COMMIT_BYTES)
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            actions.append(json.loads(line))
        except (ValueError, RecursionError):
            text = f"is cut off or spoilt in line {number} ({len(data)} bytes)"
            raise ValueError(text) from None
        if not isinstance(actions[-1], dict):
            raise ValueError(f"has no action in line {number}")  # noqa: TRY004
    return actions


def last_appended(table: str, column: str) -> str | None:
    """Return the value of a column in all rows that were written last.

    Files that were only joined (OPTIMIZE) are not written anew. The columns of a table's key have
    statistics, which commits name.
    None: they have several values, or the last commits wrote none, are gone or do not tell.
    """
    version = last_version(table)
    try:
        for number in range(version or 0, max(-1, (version or 0) - _MOST_COMMITS), -1):
            actions = read_actions(log_of(table).child(f"{number:020d}.json"))
            added = [action["add"] for action in actions if "add" in action]
            written = [add for add in added if add.get("dataChange")]
            if written:
                stats = [json.loads(add["stats"]) for add in written]
                values = {stat[end][column] for stat in stats for end in ("minValues", "maxValues")}
                return str(values.pop()) if len(values) == 1 else None
    except (OSError, SourceError, KeyError, TypeError, ValueError):
        return None
    return None


def remove_log_without_commit(table: str) -> None:
    """Remove the log of a table that was killed while it was made: Delta takes it for a table.

    The log is removed only if it holds nothing but temporary names.
    """
    try:
        entries = list_folder(log_of(table))
    except NoFolderError:
        return
    if all(_OF_NO_COMMIT.fullmatch(entry.name) for entry in entries):
        remove_folder(log_of(table))
