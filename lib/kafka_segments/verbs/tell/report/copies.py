"""The report's map of partitions by copy: what the last comparison of copies found."""

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from math import ceil, sqrt
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.engine.tables.catalog import DIVERGENCES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.engine.tables.last_run import of_last_run
from kafka_segments.verbs.tell.report.decide import copies as decide_copies
from kafka_segments.verbs.tell.report.number_texts import count_text

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
_MOST_RANGES = 300  # of the partitions of a copy that differ in one way


@dataclass(frozen=True)
class CopyFacts:
    """The last comparison: its moment in ms, partitions as ``decide_copies.map_logs`` gives them.

    ``logs`` is the number of partitions, of which ``maps`` has the first; ``worst`` has the first
    findings. ``by_headers``: in how many only the headers of batches were compared.
    """

    decided_ms: int
    logs: int
    maps: list[Row]
    worst: list[Row]
    findings: int
    by_headers: int = 0


class Named(NamedTuple):
    """A place of a map with a text: its corner, its state, its text."""

    x: int
    y: int
    state: str
    text: str


class DifferingPartitions(NamedTuple):
    """Partitions of a copy that differ in one way: how many, and in words which."""

    kind: str
    logs: int
    partitions: str


class CopyMap(NamedTuple):
    """The map of one copy: paths by state, places that differ, a caption, the same as lists."""

    copy: str
    says: str
    paths: list[tuple[str, str]]
    named: list[Named]
    lists: list[DifferingPartitions]


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
    kept = tables.read(DIVERGENCES)
    if "held_by" not in kept.columns:  # version 1
        kept = kept.withColumn("held_by", F.lit(None).cast("array<string>"))
    compared = of_last_run(tables, DIVERGENCES, kept)
    mapped = compared.transform(decide_copies.map_logs)
    found = collect_together(
        {
            "maps": mapped.orderBy(*decide_copies.first_to_look_at()).limit(logs),
            "logs": mapped.agg(F.count("*")),
            "worst": _findings(compared).orderBy("topic", "partition", "row").limit(rows),
            "totals": compared.agg(
                F.unix_millis(F.max("decided_at")),
                F.count_if("is_finding"),
                F.count_distinct(
                    F.when(decide_copies.is_by_headers(), F.struct("topic", "partition"))
                ),
            ),
        }
    )
    decided_ms, findings, by_headers = found["totals"][0]
    if decided_ms is None:
        return None
    maps = sorted(found["maps"], key=lambda row: (row["topic"], row["partition"]))
    return CopyFacts(decided_ms, found["logs"][0][0], maps, found["worst"], findings, by_headers)


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
    return CopyMap(copy, says, paths, named, _lists(copy, logs))


def _lists(copy: str, logs: list[Row]) -> list[DifferingPartitions]:
    """List the partitions that a copy lacks or that differ in it, the findings first."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for row in logs:
        state, kind = _state(copy, row)
        if state != EQUAL:
            topics = found.setdefault((state, kind or dict(KINDS)[ABSENT]), {})
            topics.setdefault(row["topic"], []).append(row["partition"])
    order = (FINDING, OTHER, ABSENT)
    return [
        DifferingPartitions(kind, sum(map(len, topics.values())), _ranges_text(topics))
        for (state, kind), topics in sorted(
            found.items(), key=lambda one: (order.index(one[0][0]), one[0][1])
        )
    ]


def _ranges_text(topics: dict[str, list[int]]) -> str:
    """Name partitions by topic, as in "orders: 0, 7 to 9; users: 3"."""
    ranges = [
        (topic, low, high) for topic, numbers in topics.items() for low, high in _ranges(numbers)
    ]
    shown = ranges[:_MOST_RANGES]
    words = "; ".join(
        f"{topic}: "
        + ", ".join(f"{low} to {high}" if low < high else f"{low}" for _, low, high in same)
        for topic, same in groupby(shown, key=lambda one: one[0])
    )
    left = sum(high - low + 1 for _, low, high in ranges[_MOST_RANGES:])
    return f"{words}; and {count_text(left)} more" if left else words


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as ranges, both ends included."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] + 1 == number:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


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
