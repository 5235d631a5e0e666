"""Which commits of a Delta table's log left other rows in it: somebody else's, as no verb does.

A commit of ours is signed: by who made it, or by the metadata that a session gives the commits of
its statements. Each other one that took files away for rows of its own is held against the version
before it, and so is each ``RESTORE``, which may do nothing but bring older rows back. What only
adds files says how many rows these have. Delta says of a commit that only moves rows into other
files, as of ``OPTIMIZE``, that it changes no data.

Releases before 0.13 signed nothing that Delta made of their statements: until it is known that a
table is written by a later one, rows that were only added may be theirs, and so may a ``MERGE`` by
the keys with which all tables of a build begin, or an overwrite of the rows below sources.

Source: delta-io/delta PROTOCOL.md, Add File and Remove File (``dataChange``), Per-file Statistics,
Commit Provenance Information.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from kafka_segments.errors import SourceError
from kafka_segments.files.delta.commit import ENGINE, SIGNED
from kafka_segments.files.delta.log import COMMIT, TableLog, version_of

_OF_OLDER = {
    "MERGE": re.compile(r"\bcluster#\d+ = cluster#\d+\W.*\bbroker_id#\d+ = broker_id#\d+\W"),
    "WRITE": re.compile(r"\bstartswith\((path|log_dir), ", re.IGNORECASE),
}
"""What stands in the predicate of Delta's commits of older releases, by their operations."""


class TakenBack(NamedTuple):
    """A commit that left other rows in a table.

    Attributes:
        version: of the table.
        operation: as Delta calls it, or ``an overwrite``, ``an append``.
        at_ms: when it was made, in ms since 1970.
        is_sure: the rows are known to be other ones than before.
        is_added: all rows that there were are still there.
    """

    version: int
    operation: str
    at_ms: int
    is_sure: bool
    is_added: bool = False

    @property
    def text(self) -> str:
        """Return in words what the commit did."""
        were = "were" if self.is_sure else "may have been"
        what = "added" if self.is_added else "taken back"
        return f"rows {were} {what} by {self.operation} in version {self.version}"


def taken_back_since(
    log: TableLog, version: int, *, is_signed: bool = False
) -> Iterator[TakenBack]:
    """Yield the commits after a version by which somebody left other rows, or may have.

    A table that was written anew with the rows that it had has lost none, as where somebody
    partitions it. Of stores, and of versions whose files are gone, that is not known.
    A commit that cannot be read is left to whoever reads the table.

    ``is_signed``: what is not signed is not ours. It is known as well after a first signed commit.
    """
    for entry in log.entries:
        if COMMIT.fullmatch(entry.name) and version_of(entry) > version:
            with suppress(OSError, SourceError, ValueError):
                actions = log.actions(entry)
                told = _told(actions)
                found = _taken_back(
                    log.table, version_of(entry), actions, told, is_signed=is_signed
                )
                if found is not None:
                    yield found
                is_signed = is_signed or told.get(SIGNED) == ENGINE


def _taken_back(
    table: str,
    version: int,
    actions: Iterable[Mapping[str, Any]],
    told: Mapping[str, Any],
    *,
    is_signed: bool,
) -> TakenBack | None:
    is_added = told.get("operation") != "RESTORE" and not any(map(_takes_rows, actions))
    added = _added_rows(actions) if is_added else None
    if added == 0 or (is_added and not is_signed) or _is_ours(told, is_signed=is_signed):
        return None
    at_ms = told["timestamp"]
    is_same = False if added else _is_as_before(table, version, at_ms)
    if is_same:
        return None
    return TakenBack(version, _operation(told), at_ms, is_same is not None, is_added)


def _added_rows(actions: Iterable[Mapping[str, Any]]) -> int | None:
    """Return how many rows a commit adds; None: it does not say so of each of its files."""
    added = [action["add"] for action in actions if "add" in action]
    try:
        counts = [
            json.loads(add["stats"])["numRecords"] for add in added if add.get("dataChange", True)
        ]
        return sum(map(int, counts))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _told(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a commit says of itself, as much as is in Delta's form: nobody has to say it."""
    said = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    told = said if isinstance(said, dict) else {}
    how, at_ms = told.get("operationParameters"), told.get("timestamp")
    return told | {
        "operationParameters": how if isinstance(how, dict) else {},
        "timestamp": at_ms if isinstance(at_ms, int) else 0,
    }


def _takes_rows(action: Mapping[str, Any]) -> bool:
    removed = action.get("remove", {"dataChange": False})
    return not isinstance(removed, dict) or bool(removed.get("dataChange", True))


def _is_ours(told: Mapping[str, Any], *, is_signed: bool) -> bool:
    if ENGINE in (told.get("engineInfo"), told.get(SIGNED)):
        return True
    predicate = str(told["operationParameters"].get("predicate"))
    of_older = None if is_signed else _OF_OLDER.get(str(told.get("operation")))
    return bool(of_older and of_older.search(predicate))


def _operation(told: Mapping[str, Any]) -> str:
    how = told["operationParameters"].get("mode")
    if told.get("operation") == "WRITE" and how in ("Overwrite", "Append"):
        return f"an {how.lower()}"
    return str(told.get("operation") or "a commit that does not say what it did")


@lru_cache(maxsize=64)
def _is_as_before(table: str, version: int, at_ms: int) -> bool | None:
    """Tell whether a commit left the rows as they were; once, though a run asks of it twice."""
    from kafka_segments.files.delta.same_rows import have_same_rows  # noqa: PLC0415

    return have_same_rows(table, version - 1, version)
