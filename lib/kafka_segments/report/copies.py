"""The report's map of partitions by copy: what the last comparison of copies found."""

from collections import Counter
from dataclasses import dataclass
from math import ceil, sqrt
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.report import decide_copies
from kafka_segments.report.words import count_text
from kafka_segments.spark.collected import collect_together
from kafka_segments.tables.catalog import DIVERGENCES
from kafka_segments.tables.delta import Warehouse

EQUAL, OTHER, FINDING, ABSENT = "equal", "other", "finding", "absent"
KINDS = (
    (EQUAL, "equal"),
    (OTHER, "different, no fault"),
    (FINDING, "different: look at it"),
    (ABSENT, "not held"),
)
_CELL = 10
_LEAST_COLUMNS, _MOST_COLUMNS = 20, 100
_MOST_NAMED = 300  # places of a copy that say by themselves what they are


@dataclass(frozen=True)
class CopyFacts:
    """The last comparison: its moment in ms, partitions as ``decide_copies.map_logs`` gives them.

    ``logs`` counts all, of which ``maps`` has the first; ``worst`` are the first findings.
    """

    decided_ms: int
    logs: int
    maps: list[Row]
    worst: list[Row]
    findings: int


class Named(NamedTuple):
    """A place that says what it is: its corner in a map, its state, its text."""

    x: int
    y: int
    state: str
    text: str


class CopyMap(NamedTuple):
    """The map of one copy: paths by state, places that differ, and what it says."""

    copy: str
    says: str
    paths: list[tuple[str, str]]
    named: list[Named]


class CopyMaps(NamedTuple):
    """A map for each copy, of the same size: a partition has the same place in all."""

    maps: list[CopyMap]
    width: int
    height: int
    columns: int


def gather_copies(tables: Warehouse, *, logs: int, rows: int) -> CopyFacts | None:
    """Gather what the last comparison found; None: the warehouse has none."""
    if not tables.version(DIVERGENCES):
        return None
    compared = tables.read(DIVERGENCES).transform(decide_copies.last_comparison)
    mapped = compared.transform(decide_copies.map_logs)
    found = collect_together(
        {
            "maps": mapped.orderBy(*decide_copies.first_to_look_at()).limit(logs),
            "logs": mapped.agg(F.count("*")),
            "worst": _findings(compared).orderBy("topic", "partition", "row").limit(rows),
            "totals": compared.agg(F.unix_millis(F.max("decided_at")), F.count_if("is_finding")),
        }
    )
    decided_ms, findings = found["totals"][0]
    if decided_ms is None:
        return None
    maps = sorted(found["maps"], key=lambda row: (row["topic"], row["partition"]))
    return CopyFacts(decided_ms, found["logs"][0][0], maps, found["worst"], findings)


def _findings(compared: DataFrame) -> DataFrame:
    return compared.where("is_finding").select(
        *("topic", "partition", "row", "kind", "copies", "right_copies"),
        *("from_offset", "until_offset", "detail"),
    )


def copy_maps(facts: CopyFacts) -> CopyMaps:
    """Return the map of each copy: rows of partitions, by topic and number."""
    copies = sorted({name for row in facts.maps for name in row["held"]})
    columns = min(max(ceil(sqrt(len(facts.maps))), _LEAST_COLUMNS), _MOST_COLUMNS)
    height = -(-len(facts.maps) // columns) * _CELL
    maps = [_map(name, facts.maps, columns) for name in copies]
    return CopyMaps(maps, columns * _CELL, height, columns)


def _map(copy: str, logs: list[Row], columns: int) -> CopyMap:
    states, named = [], []
    for at, row in enumerate(logs):
        state, kind = _state(copy, row)
        states.append(state)
        if state in (FINDING, OTHER):
            x, y = _CELL * (at % columns), _CELL * (at // columns)
            named.append(Named(x, y, state, f"{row['topic']}-{row['partition']}: {kind}"))
    counts = Counter(states)
    says = ", ".join(
        f"{count_text(counts[state])} {name}" for state, name in KINDS if counts[state]
    )
    named = sorted(named, key=lambda one: one.state != FINDING)[:_MOST_NAMED]
    paths = [
        (state, path) for state, _ in KINDS if (path := "".join(_runs(states, state, columns)))
    ]
    return CopyMap(copy, says, paths, named)


def _state(copy: str, row: Row) -> tuple[str, str]:
    if copy not in row["held"]:
        return ABSENT, ""
    for differing in row["differing"]:
        if differing["copy"] == copy:
            return FINDING if differing["is_finding"] else OTHER, differing["kind"]
    return EQUAL, ""


def _runs(states: list[str], state: str, columns: int) -> list[str]:
    """Return a rectangle for each run of neighbours in a row that are in a state."""
    found, at = [], 0
    while at < len(states):
        end = at
        row_end = min(at - at % columns + columns, len(states))
        while end < row_end and states[end] == state:
            end += 1
        if end > at:
            x, y = _CELL * (at % columns), _CELL * (at // columns)
            width = _CELL * (end - at)
            found.append(f"M{x} {y}h{width}v{_CELL}h-{width}z")
        at = max(end, at + 1)
    return found
