"""Which commits of a Delta table's log took rows back: somebody else's, as no verb makes them.

A commit of ours names us, or is what Delta made of a statement of ours: a ``MERGE`` by the keys
with which all tables of a build begin, or an overwrite of the rows below sources. Each other one
that took files away for rows of its own is held against the version before it, and so is each
``RESTORE``, which may do nothing but bring older rows back. Delta says of a commit that only moves
rows into other files, as of ``OPTIMIZE``, that it changes no data.

Source: delta-io/delta PROTOCOL.md, Add File and Remove File (``dataChange``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.delta_commit import ENGINE
from kafka_segments.files.storage.delta_log import COMMIT, log_of, read_actions
from kafka_segments.files.storage.local_folder import FileEntry

_OF_OURS = {
    "MERGE": re.compile(r"\bcluster#\d+ = cluster#\d+\W.*\bbroker_id#\d+ = broker_id#\d+\W"),
    "WRITE": re.compile(r"\bstartswith\((path|log_dir), ", re.IGNORECASE),
}
"""What stands in the predicate of Delta's commits of our statements, by their operations."""


class TakenBack(NamedTuple):
    """A commit that took rows back.

    Attributes:
        version: of the table.
        operation: as Delta calls it, or ``an overwrite``.
        at_ms: when it was made, in ms since 1970.
        is_sure: the rows are known to be other ones than before.
    """

    version: int
    operation: str
    at_ms: int
    is_sure: bool


def taken_back_since(table: str, entries: list[FileEntry], version: int) -> Iterator[TakenBack]:
    """Yield the commits after a version by which somebody took rows back, or may have.

    A table that was written anew with the rows that it had has lost none, as where somebody
    partitions it. Of stores, and of versions whose files are gone, that is not known.
    A commit that cannot be read is left to whoever reads the table.
    """
    for entry in entries:
        if COMMIT.fullmatch(entry.name) and int(entry.name[:20]) > version:
            with suppress(OSError, SourceError, ValueError):
                found = _taken_back(table, entry.name)
                if found is not None:
                    yield found


def _taken_back(table: str, commit: str) -> TakenBack | None:
    actions = read_actions(log_of(table).child(commit))
    told = _told(actions)
    if told.get("operation") != "RESTORE" and not any(map(_takes_rows, actions)):
        return None
    if _is_ours(told):
        return None
    version, at_ms = int(commit[:20]), told["timestamp"]
    is_same = _is_as_before(table, version, at_ms)
    return None if is_same else TakenBack(version, _operation(told), at_ms, is_same is not None)


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


def _is_ours(told: Mapping[str, Any]) -> bool:
    predicate = str(told["operationParameters"].get("predicate"))
    of_ours = _OF_OURS.get(str(told.get("operation")))
    return told.get("engineInfo") == ENGINE or bool(of_ours and of_ours.search(predicate))


def _operation(told: Mapping[str, Any]) -> str:
    if told.get("operation") == "WRITE" and told["operationParameters"].get("mode") == "Overwrite":
        return "an overwrite"
    return str(told.get("operation") or "a commit that does not say what it did")


@lru_cache(maxsize=64)
def _is_as_before(table: str, version: int, at_ms: int) -> bool | None:
    """Tell whether a commit left the rows as they were; once, though a run asks of it twice."""
    from kafka_segments.files.storage.same_rows import have_same_rows  # noqa: PLC0415

    return have_same_rows(table, version - 1, version)
