"""Read what the commits of a Delta table's log and their names tell, without Spark."""

import json
import re

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.files import list_folder, place, read_whole
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.publishing import remove_folder
from kafka_segments.files.storage.uris import join_uri

COMMIT = re.compile(r"([0-9]{20})\.json")
CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
"""Names in a table's log; the group is the version."""
_MOST_COMMITS = 100
_MOST_COMMIT_BYTES = 64 * 1024 * 1024
_OF_NO_COMMIT = (".", "_staged_commits")


def last_version(table: str) -> int | None:
    """Return the version of the last commit of the table at a URI, None without a table."""
    commits = [entry.name for entry in _entries(table) or () if COMMIT.fullmatch(entry.name)]
    return int(commits[-1][:20]) if commits else None


def last_appended(table: str, column: str) -> str | None:
    """Return the value of a column in all rows that were written last.

    Files that were only joined (OPTIMIZE) are not written anew. The columns of a table's key have
    statistics, which commits name.
    None: they have several values, or the last commits wrote none, are gone or do not tell.
    """
    version = last_version(table)
    try:
        for number in range(version or 0, max(-1, (version or 0) - _MOST_COMMITS), -1):
            file = place(join_uri(_log(table), f"{number:020d}.json"))
            lines = read_whole(file, most_bytes=_MOST_COMMIT_BYTES).decode("utf-8").splitlines()
            added = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
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
