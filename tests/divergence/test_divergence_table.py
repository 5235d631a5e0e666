"""The tables of ``divergence`` and ``backup verify``: what is alike is one row, with the first."""

from typing import cast

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.copies.backup.decide.ends import Moment
from kafka_segments.verbs.copies.backup.report import print_backup
from kafka_segments.verbs.copies.backup.run import Verified
from kafka_segments.verbs.copies.divergence.read_copies import ReadCopies
from kafka_segments.verbs.copies.divergence.report import print_divergence
from kafka_segments.verbs.copies.divergence.run import Compared
from support.spark.rows_of import rows_of

_ROWS = (
    "topic string, partition int, row int, from_offset long, until_offset long, kind string,"
    " epoch int, is_finding boolean, copies array<string>, right_copies array<string>,"
    " detail string"
)
_MISS = "struct<kind:string,from_offset:bigint,until_offset:bigint,detail:string>"
_LOGS = (
    f"topic string, partition int, verdict string, complete_until long, misses array<{_MISS}>,"
    " doubt string, since array<string>"
)


def test_differences_in_the_same_copies_are_one_row(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(partition: int, kind: str, *, is_finding: bool = True) -> tuple:
        detail = f"b ends at {partition + 10}"
        return ("t", partition, 0, 5, 9, kind, 3, is_finding, ["a", "b"], ["a"], detail)

    rows = [row(2, "behind"), row(1, "behind"), row(0, "compaction", is_finding=False)]
    compared = Compared(rows_of(spark, rows, _ROWS), cast("ReadCopies", None), 3, 0, 90, 9)

    found = print_divergence(compared, "table")

    told = capsys.readouterr()
    lines = [line.split() for line in told.out.splitlines()[1:]]
    assert [line[:4] for line in lines] == [
        ["2", "such,", "e.g.", "t-1"],
        ["t-0", "5", "9", lines[1][3]],
    ]
    assert (found, "findings: 2" in told.err) == (2, True)


def test_logs_that_miss_the_same_of_a_backup_are_one_row(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(partition: int, kind: str) -> tuple:
        misses = [(kind, partition, partition + 5, f"ends at {partition}")]
        return ("t", partition, "incomplete", partition, misses, None, [])

    rows = [row(2, "behind"), row(1, "behind"), row(3, "bit rot")]
    rows.append(("t", 4, "complete", 9, [], None, []))
    logs = rows_of(spark, rows, _LOGS)
    compared = Compared(logs, cast("ReadCopies", None), 4, 0, 90, 9)
    verified = Verified(
        logs, Moment(0, is_given=True), {"incomplete": 3, "complete": 1}, 0, 0, compared
    )

    print_backup(verified, "table")

    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[:4] for line in lines] == [
        ["2", "such,", "e.g.", "t-1"],
        ["t-3", "incomplete", "3", "bit"],
    ]
