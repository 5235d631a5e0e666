"""Which commits of a Delta table's log took rows back: somebody else's, as no verb makes them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.delta_log import COMMIT, log_of, read_actions
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.stores import store_of

_TAKE_BACK = re.compile(r"RESTORE|DELETE|TRUNCATE|UPDATE")
_WRITE_ANEW = re.compile(r"an overwrite|(CREATE OR )?REPLACE TABLE.*")


class TakenBack(NamedTuple):
    """A commit that took rows back.

    Attributes:
        version: of the table.
        operation: as Delta calls it, or ``an overwrite``.
        at_ms: when it was made, in ms since 1970.
    """

    version: int
    operation: str
    at_ms: int


def taken_back_since(table: str, entries: list[FileEntry], version: int) -> Iterator[TakenBack]:
    """Yield the commits after a version by which somebody took rows back.

    A table that was written anew has lost none if it has as many rows as before, as where somebody
    partitions it; of stores, and of files that do not tell their rows, that is not known.
    A commit that cannot be read is left to whoever reads the table.
    """
    for entry in entries:
        if COMMIT.fullmatch(entry.name) and int(entry.name[:20]) > version:
            with suppress(OSError, SourceError, ValueError, TypeError):
                for action in read_actions(log_of(table).child(entry.name)):
                    if told := action.get("commitInfo"):
                        at_ms = int(told.get("timestamp") or 0)
                        found = TakenBack(int(entry.name[:20]), _operation(told), at_ms)
                        if _takes_back(table, found):
                            yield found


def _operation(told: Mapping[str, Any]) -> str:
    how = told.get("operationParameters") or {}
    is_overwrite = told.get("operation") == "WRITE" and how.get("mode") == "Overwrite"
    if is_overwrite and not how.get("predicate"):  # a verb names the rows that it overwrites
        return "an overwrite"
    return str(told.get("operation"))


def _takes_back(table: str, commit: TakenBack) -> bool:
    if not _WRITE_ANEW.fullmatch(commit.operation):
        return bool(_TAKE_BACK.fullmatch(commit.operation))
    before, after = (_rows_at(table, commit.version + by) for by in (-1, 0))
    return before is None or after is None or after < before


def _rows_at(table: str, version: int) -> int | None:
    """Return how many rows a version has, as its files' statistics tell; None: not known."""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    if not store_of(table).is_local:
        return None
    try:
        found = DeltaTable(log_of(table).path.removesuffix("_delta_log"), version=version)
        if found.protocol().min_reader_version > 1:  # deletion vectors, say
            return None
        counts = found.get_add_actions(flatten=True).column("num_records")
        return None if counts.null_count else sum(counts.to_pylist())
    except (DeltaError, OSError, ValueError, KeyError):
        return None
