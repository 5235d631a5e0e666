"""Findings that are alike are one line, with a count and the first; JSON and CSV have all."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.console.output import print_records
from kafka_segments.console.tables import alike_rows, without_numbers


@dataclass(frozen=True)
class _Log:
    name: str
    why: str


LOGS = [
    _Log("t-0", "ends at 90"),
    _Log("t-1", ""),
    _Log("t-2", "ends at 7"),
    _Log("t-3", "is gone"),
]


def _print(logs: Iterator[_Log], output: str) -> None:
    printed = print_records(
        logs, _Log, output, lambda log: f"{log.name} {log.why}", state=lambda log: log.why or None
    )
    assert list(printed) == LOGS


def test_records_that_are_alike_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _print(iter(LOGS), "table")

    assert capsys.readouterr().out.splitlines() == [
        "t-1 ",
        "2 such, e.g. t-0 ends at 90",
        "t-3 is gone",
    ]


def test_for_programs_each_record_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    _print(iter(LOGS), "json")

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["t-0", "t-1", "t-2", "t-3"]


def test_what_was_found_before_an_error_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> Iterator[_Log]:
        yield LOGS[0]
        raise OSError

    with pytest.raises(OSError):
        _print(failing(), "table")

    assert capsys.readouterr().out == "t-0 ends at 90\n"


def test_rows_that_are_alike_are_one_row_a_cluster(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", 3, "ends at 9"), ("a", 2, "ends at 7"), ("b", 1, "ends at 9"), ("a", 4, "is gone")],
        "cluster string, partition int, why string",
    )

    found = alike_rows(rows, without_numbers(F.col("why")), order=[F.col("partition")]).collect()

    assert [tuple(row) for row in found] == [
        ("b", 1, "ends at 9", 1),
        ("a", 2, "ends at 7", 2),
        ("a", 4, "is gone", 1),
    ]
