"""The report's map of partitions by copy: the same place in each, what differs is named."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from kafka_segments.engine.tables.catalog import DIVERGENCES
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.tell.report.copies import CopyFacts, copy_maps, gather_copies
from support.spark.filled_tables import fill

OLD, NEW = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))


def _log(partition: int, held: str = "abc", **differing: tuple[bool, str]) -> Row:
    return Row(
        topic="t",
        partition=partition,
        is_finding=any(is_finding for is_finding, _ in differing.values()),
        held=list(held),
        differing=[
            Row(copy=copy, is_finding=is_finding, kind=kind)
            for copy, (is_finding, kind) in differing.items()
        ],
    )


def _facts(*logs: Row) -> CopyFacts:
    return CopyFacts(0, len(logs), list(logs), [], 0)


def _area(path: str) -> int:
    """Count the places that a path covers."""
    return sum(int(width) // 10 for width in re.findall(r"h(\d+)v", path))


def test_each_copy_has_its_map_and_says_what_is_in_it() -> None:
    found = copy_maps(
        _facts(
            _log(0), _log(1, b=(True, "bit rot")), _log(2, "ab"), _log(3, c=(False, "later start"))
        )
    )

    a, b, c = found.maps
    assert [(one.copy, one.says) for one in found.maps] == [
        ("a", "4 equal"),
        ("b", "3 equal, 1 different: look at it"),
        ("c", "2 equal, 1 different, no fault, 1 not held"),
    ]
    assert [(place.x, place.y, place.text) for place in b.named] == [(10, 0, "t-1: bit rot")]
    assert [place.text for place in c.named] == ["t-3: later start"]
    assert dict(c.paths)["absent"] == "M20 0h10v10h-10z"
    assert a.paths == [("equal", "M0 0h40v10h-40z")]
    assert (found.width, found.height) == (200, 10)


def test_ten_thousand_partitions_stay_small_and_each_has_one_place() -> None:
    logs = [
        _log(number, b=(number % 100 == 0, "behind")) if number % 10 == 0 else _log(number)
        for number in range(10_000)
    ]
    found = copy_maps(_facts(*logs))

    assert (found.columns, found.width, found.height) == (100, 1000, 1000)
    for one in found.maps:
        assert sum(_area(path) for _, path in one.paths) == 10_000
        assert sum(len(path) for _, path in one.paths) < 60_000
    assert len(found.maps[1].named) == 300
    assert {place.state for place in found.maps[1].named[:100]} == {"finding"}
    findings, others = found.maps[1].lists
    assert (findings.kind, findings.logs) == ("behind", 100)
    assert findings.partitions.startswith("t: 0, 100, 200, ")
    assert others.logs == 900
    assert others.partitions.endswith("; and 600 more")


def test_what_a_map_shows_is_a_list_by_copy_and_kind() -> None:
    both = {"b": (False, "compaction")}
    logs = [_log(0, b=(True, "fork")), *(_log(number, **both) for number in range(1, 9_000))]
    logs += [_log(9_001, **both), _log(9_002, "ac")]
    logs.append(Row(**{**_log(3, **both).asDict(), "topic": "u"}))

    a, b, _ = copy_maps(_facts(*logs)).maps

    assert a.lists == []
    assert b.lists == [
        ("fork", 1, "t: 0"),
        ("compaction", 9_001, "t: 1 to 8999, 9001; u: 3"),
        ("not held", 1, "t: 9002"),
    ]


@pytest.mark.usefixtures("few")
def test_a_table_of_an_earlier_release_has_no_holders(spark: SparkSession, tmp_path: Path) -> None:
    old = DIVERGENCES._replace(version=1)
    tables = Warehouse(spark, str(tmp_path))
    values = dict.fromkeys(("from_offset", "until_offset", "epoch"))
    values |= {"topic": "t", "partition": 0, "row": 0, "kind": "equal", "is_finding": False}
    values |= {"copies": [], "right_copies": ["a", "b"], "detail": "", "run_id": "r"}
    fill(tables, old, [values | {"decided_at": OLD}])

    facts = gather_copies(tables, logs=10, rows=10)

    assert facts is not None
    assert facts.maps[0]["held"] == ["a", "b"]


@pytest.mark.usefixtures("few")
def test_the_last_comparison_is_folded_by_partition_and_copy(
    spark: SparkSession, tmp_path: Path
) -> None:
    def row(partition: int, kind: str, copies: str, right: str, **more: object) -> dict:
        values = {
            **{"topic": "t", "partition": partition, "row": 0, "kind": kind},
            **{"is_finding": kind in ("behind", "bit rot"), "from_offset": 0, "until_offset": 9},
            **{"copies": list(copies), "right_copies": list(right), "epoch": None},
            **{"detail": "", "run_id": "new", "decided_at": NEW, "held_by": None},
        }
        return values | more

    old = row(9, "bit rot", "a", "b", run_id="old", decided_at=OLD)
    rows = [
        old,
        row(0, "equal", "", "ab", detail="by headers alone"),
        row(1, "later start", "a", ""),
        row(1, "bit rot", "a", "b"),
        row(1, "equal", "", "ab"),
        row(2, "recompressed", "ab", ""),
        row(3, "compaction", "b", "", held_by=["a", "b"]),
    ]
    tables = Warehouse(spark, str(tmp_path))
    assert gather_copies(tables, logs=10, rows=10) is None
    fill(tables, DIVERGENCES, rows)

    facts = gather_copies(tables, logs=10, rows=10)

    assert facts is not None
    assert (facts.logs, facts.findings, facts.decided_ms) == (4, 1, 1_767_312_000_000)
    assert facts.by_headers == 1
    assert [(one["partition"], one["kind"]) for one in facts.worst] == [(1, "bit rot")]
    assert [
        (one["partition"], one["is_finding"], one["held"], [tuple(d) for d in one["differing"]])
        for one in facts.maps
    ] == [
        (0, False, ["a", "b"], []),
        (1, True, ["a", "b"], [("a", True, "bit rot")]),
        (2, False, ["a", "b"], [("a", False, "recompressed"), ("b", False, "recompressed")]),
        (3, False, ["a", "b"], [("b", False, "compaction")]),
    ]
