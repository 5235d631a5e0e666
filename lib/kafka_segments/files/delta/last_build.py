"""Which versions the tables of a warehouse had when a build ended last, by its row in ``runs``.

It tells of a table that is older than that where the notes beside the tables are lost.
"""

import json

import pyarrow as pa

from kafka_segments.errors import SourceError
from kafka_segments.files.delta.log import COMMIT, list_log
from kafka_segments.files.storage.files import opened_for_arrow, place
from kafka_segments.files.storage.uris import join_uri

_VERSIONS = "table_versions"
"""The column of ``runs``: versions by the names of tables, as JSON."""
_RUNS = "runs"
_NOT_TOLD = (
    *(OSError, SourceError, pa.ArrowException),
    *(AttributeError, LookupError, TypeError, ValueError),  # what it says has another form
)


def versions_of_last_build(warehouse: str) -> dict[str, int]:
    """Return the versions of tables by name; none where the last build does not tell.

    So it is before the first build, and where a release before 0.18 made the last one. The row is
    in the file that was added last.
    """
    from pyarrow import parquet  # noqa: PLC0415

    table = join_uri(warehouse, _RUNS)
    try:
        log = list_log(table)
        commits = [entry for entry in log.entries if COMMIT.fullmatch(entry.name)]
        for commit in sorted(commits, key=lambda entry: entry.name, reverse=True):
            added = [action["add"] for action in log.actions(commit) if "add" in action]
            written = [add["path"] for add in added if add.get("dataChange", True)]
            if not written:
                continue
            with opened_for_arrow(place(table).child(written[-1])) as file:
                rows = parquet.read_table(file, columns=[_VERSIONS])
            told = json.loads(rows[_VERSIONS].to_pylist()[-1])
            return {str(name): int(version) for name, version in told.items()}
    except _NOT_TOLD:
        return {}
    return {}
