"""What is said where a table, or the plan that a verb is to carry out, is not there."""

from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kafka_segments.errors import SourceError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_NAMES = 3
_MAKES_PLANS = {"migration_plans": "migrate plan", "retention_plans": "retention plan"}
_MADE_BY = {
    "internal_": "internals --source",
    "metadata_": "internals --source",
    "offset_ranges": "build --digests",
    "remote_segments": "internals tier",
}
_WITHOUT_PLAN = {
    "migration_plans": "run `kafka-segments migrate plan`",
    "retention_plans": "see table retention_plans",
}


def missing_table(warehouse: str, name: str) -> str:
    """Return in words that a table is missing, and which verb makes it."""
    if name in _MAKES_PLANS:
        return f"{warehouse} has no plans: run `kafka-segments {_MAKES_PLANS[name]}`"
    made_by = next((verb for start, verb in _MADE_BY.items() if name.startswith(start)), "build")
    return f"{warehouse} has no table {name}: run `kafka-segments {made_by}`"


def missing_tables(warehouse: str) -> str:
    """Return in words that a warehouse is empty."""
    return f"{warehouse} has no tables: run `kafka-segments build`"


def missing_plan(warehouse: str, table: str, plan_id: str) -> str:
    """Return in words that no row of a table of plans has the id."""
    return f"{warehouse} has no plan {plan_id}: {_WITHOUT_PLAN[table]}"


def require_names(warehouse: str, what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names of which the tables have nothing.

    Raises:
        UsageError: as ``missing_name``, of the first.
    """
    there = set(known)
    for name in names:
        if name not in there:
            raise UsageError(missing_name(warehouse, what, name, there))


def require_values(
    warehouse: str, what: str, names: Iterable[str | int], known: "DataFrame"
) -> None:
    """Refuse names that the one column of ``known`` has not, as ``require_names`` does."""
    values = (row[0] for row in known.distinct().collect())
    there = (str(value) for value in values if value is not None)
    require_names(warehouse, what, map(str, names), there)


def missing_name(warehouse: str, what: str, name: str, known: Iterable[str]) -> str:
    """Return in words that the tables have nothing of a name, and the nearest that they have."""
    near = nearest(name, known)
    there = f": it has {near}" if near else ""
    return f"{warehouse} has no {what} {name}{there}{but_altered(warehouse)}"


def but_altered(warehouse: str) -> str:
    """Return in words that somebody took rows of a build's tables back since; "": nobody did."""
    from kafka_segments.files.delta.notes import OF_SOURCES  # noqa: PLC0415
    from kafka_segments.files.delta.table_versions import taken_back  # noqa: PLC0415

    with suppress(OSError, ValueError, SourceError):  # whoever reads the tables says so
        for why in taken_back(warehouse, OF_SOURCES):
            return f". But {why}: `kafka-segments build` of each source makes it whole"
    return ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return in words the names that are nearest to one, and how many others are known."""
    names = sorted(set(known))
    near = get_close_matches(name, names, _MOST_NAMES, cutoff=0) or names[:_MOST_NAMES]
    more = f" and {len(names) - len(near)} others" if len(names) > len(near) else ""
    return f"{', '.join(near)}{more}"
