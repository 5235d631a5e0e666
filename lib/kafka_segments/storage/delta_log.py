"""Read what the file names in a Delta table's log tell, without Spark."""

import re

from kafka_segments.errors import SourceError
from kafka_segments.storage.files import list_folder, place
from kafka_segments.storage.local_folder import FileEntry
from kafka_segments.storage.publishing import remove_folder
from kafka_segments.storage.uris import join_uri

COMMIT = re.compile(r"([0-9]{20})\.json")
CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
"""Names in a table's log; the group is the version."""
_OF_NO_COMMIT = (".", "_staged_commits")


def last_version(table: str) -> int | None:
    """Return the version of the last commit of the table at a URI, None without a table."""
    commits = [entry.name for entry in _entries(table) or () if COMMIT.fullmatch(entry.name)]
    return int(commits[-1][:20]) if commits else None


def remove_log_without_commit(table: str) -> None:
    """Remove the log of a table that was killed while it was made: Delta takes it for a table.

    The log is removed only if it holds nothing but temporary names.
    """
    entries = _entries(table)
    if entries is not None and all(entry.name.startswith(_OF_NO_COMMIT) for entry in entries):
        remove_folder(place(_log(table)))


def _log(table: str) -> str:
    return join_uri(table, "_delta_log")


def _entries(table: str) -> list[FileEntry] | None:
    try:
        return list_folder(place(_log(table)))
    except SourceError:
        return None
