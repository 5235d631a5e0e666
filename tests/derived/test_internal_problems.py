"""Of which partitions of coordinators' topics it is not known what is current."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.views import CURRENT, PROBLEMS, view_names, view_of
from kafka_segments.engine.tables.catalog import (
    INTERNAL_FILES,
    INTERNAL_RECORDS,
    LOGS,
    METADATA_PARTITIONS,
    SEGMENTS,
)
from kafka_segments.engine.tables.delta import Warehouse
from support.spark.filled_tables import fill

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few")]

LOG = {"cluster": "c", "broker_id": 1, "log_dir": "/d", "topic": "__consumer_offsets"}
Rows = list[tuple[int, int | None, str]]


def _record(partition: int, offset: int, base: int, **other: Any) -> dict[str, Any]:
    said = {"kind": "OffsetCommit", "key_json": f"k{offset}", "producer_id": -1, "leader_epoch": 1}
    place = {"partition": partition, "base_offset": base, "file": f"{base:020d}.log"}
    return {**LOG, **place, "offset": offset, "row": offset, "is_tombstone": False, **said, **other}


def _file(partition: int, base: int, end: int, size: int = 90) -> dict[str, Any]:
    counts = {
        "records": end - base,
        "rows": end - base,
        "to_offset": end - 1 if end > base else None,
    }
    place = {"partition": partition, "base_offset": base, "file": f"{base:020d}.log"}
    return {**LOG, **place, **counts, "size_bytes": size, "is_snapshot": False, "is_active": False}


def _segment(partition: int, base: int, end: int, **other: Any) -> dict[str, Any]:
    counts = {"next_offset": end, "record_count": end - base, "size_bytes": 90}
    place = {"partition": partition, "base_offset": base, "path": f"/d/{partition}/{base}.log"}
    told = {"is_active": False, "largest_timestamp_source": "record"}
    return {**LOG, **place, **counts, **told, **other}


def _found(spark: SparkSession, folder: Path, *, built: bool = True) -> tuple[Rows, set[Any]]:
    """Give the problems, and which current records have one."""
    tables = Warehouse(spark, str(folder))
    ends = {  # segments of each partition: its base offset, and the offset behind it
        0: [(0, 5), (5, 9)],  # whole
        1: [(0, 5), (7, 9)],  # a segment is missing
        2: [(3, 9)],  # the first one is
        3: [(0, 5), (5, 9)],  # damaged
        4: [(0, 5), (5, 9)],  # the last ones are
        5: [(0, 5), (5, 9)],  # read before it was built
        6: [(0, 0)],  # empty
        8: [(0, 5)],  # left over from a topic that was deleted
    }
    fill(
        tables,
        INTERNAL_RECORDS,
        [
            _record(partition, offset, base)
            for partition, segments in ends.items()
            for base, end in segments
            for offset in range(base, end)
            if (partition, base) != (5, 5)
        ],
    )
    files = [
        _file(partition, base, end, 0 if base == end else 90)
        for partition, segments in ends.items()
        for base, end in segments
        if (partition, base) != (5, 5)
    ]
    fill(tables, INTERNAL_FILES, [{**one, "records_version": 1} for one in files])
    if built:
        damage = {"damage": {"kind": "corrupt_batch", "position": 7, "message": "checksum is 1"}}
        fill(
            tables,
            SEGMENTS,
            [
                _segment(partition, base, end, **(damage if (partition, base) == (3, 0) else {}))
                | ({"size_bytes": 0} if partition == 6 else {})
                for partition, segments in ends.items()
                for base, end in segments
            ],
        )
        marks = [{**LOG, "partition": number, "high_watermark": 9} for number in range(6)]
        marks[4]["high_watermark"] = 12
        marks.append({**LOG, "partition": 8, "topic_id": "deleted"})
        fill(tables, LOGS, marks)
        named = [{**LOG, "partition": number} for number in range(9)]
        told = {"topic_id": "t", "replicas": [1], "isr": [1], "elr": [], "from_offset": 0}
        fill(tables, METADATA_PARTITIONS, [{**one, **told} for one in named])
    assert PROBLEMS in view_names(str(folder))
    problems = view_of(tables, PROBLEMS).orderBy("partition").collect()
    current = view_of(tables, CURRENT).where("problem IS NOT NULL").collect()
    assert all("not known whether it is current: " in row["problem"] for row in current)
    return (
        [(row["partition"], row["until_offset"], row["problem"]) for row in problems],
        {(row["partition"], row["offset"]) for row in current},
    )


def test_what_is_current_is_known_or_told_of_each_partition(
    spark: SparkSession, tmp_path: Path
) -> None:
    problems, current = _found(spark, tmp_path)

    told = {partition: (until, problem) for partition, until, problem in problems}
    assert told.keys() == {1, 2, 3, 4, 5, 7, 8}
    assert told[1] == (7, "offsets 5 to 6 are in no segment: a segment is missing")
    assert told[2] == (3, "it begins at offset 3, its first segments are missing")
    assert told[3] == (5, "/d/3/0.log cannot be read from byte 0 on: checksum is 1")
    assert (told[4][0], "below the high watermark 12" in told[4][1]) == (None, True)
    assert (told[5][0], "/d/5/5.log was not read by `internals`" in told[5][1]) == (None, True)
    assert told[7] == told[8]
    assert told[7][1].startswith("no log of it was read")
    in_front = {(number, offset) for number in (1, 3) for offset in range(5)}
    assert current == (
        in_front | {(4, offset) for offset in range(9)} | {(5, offset) for offset in range(5)}
    )


def test_without_a_build_the_files_tell(spark: SparkSession, tmp_path: Path) -> None:
    problems, current = _found(spark, tmp_path, built=False)

    assert [(partition, until) for partition, until, _ in problems] == [(1, 7), (2, 3)]
    assert current == {(1, offset) for offset in range(5)}
