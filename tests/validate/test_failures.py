"""What fails the checks of a suite, counted in one row; which segments are quarantined anew."""

import json
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.verbs.tell.validate.decide.checks import (
    KEYS_UNIQUE,
    ROWS_OF_KEY,
    Check,
    Severity,
    Suite,
)
from kafka_segments.verbs.tell.validate.decide.failures import MOST_EXAMPLES, count_failures
from kafka_segments.verbs.tell.validate.decide.quarantine import rows_that_differ
from kafka_segments.verbs.tell.validate.decide.suites import SUITES
from support.spark.rows_of import rows_of

BOUNDED = Check("bounded", "value", Severity.WARNING, "0 to 9", least=0, most=9)
COLUMNS = "cluster string, number int, value long"


def _counted(spark: SparkSession, suite: Suite, rows: list[tuple[Any, ...]]) -> Row:
    (row,) = rows_of(spark, rows, COLUMNS).transform(count_failures(suite)).collect()
    return row


def test_rows_out_of_bounds_are_counted_and_the_least_keys_are_examples(
    spark: SparkSession,
) -> None:
    suite = Suite("t", ("cluster", "number"), (BOUNDED,), has_measured_keys=True)
    rows = [(None if n % 2 else "c", n, 10 + n) for n in range(50, 0, -1)]
    inside = [("c", 100, 0), ("c", 101, 9), ("c", 102, None)]

    row = _counted(spark, suite, [*rows, *inside, ("c", 103, -1)])

    (found,) = row["checks"]
    assert (row["table"], row["checked_rows"]) == ("t", 54)
    assert (found["measured_rows"], found["failed_rows"]) == (53, 51)
    assert [json.loads(one) for one in found["examples"]] == [
        {"cluster": None, "number": n, "value": 10 + n} for n in range(1, 2 * MOST_EXAMPLES, 2)
    ]


def test_rows_of_the_same_key_are_counted_where_no_check_does(spark: SparkSession) -> None:
    suite = Suite("t", ("cluster", "number"), (BOUNDED,))

    row = _counted(spark, suite, [("c", 1, 1), ("c", 1, 2), ("c", 2, 3), (None, 1, 4)])

    names = [check.name for check in suite.all_checks()]
    assert names == [KEYS_UNIQUE, "bounded"]
    assert [found["failed_rows"] for found in row["checks"]] == [2, 0]
    twice = {"cluster": "c", "number": 1, ROWS_OF_KEY: 2}
    assert [json.loads(one) for one in row["checks"][0]["examples"]] == [twice, twice]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.table)
def test_each_check_has_a_name_and_a_column_of_its_own(suite: Suite) -> None:
    checks = suite.all_checks()

    assert len({check.name for check in checks}) == len(checks)
    assert len({check.column for check in checks}) == len(checks)


def test_quarantined_segments_differ_by_key_reason_or_row(spark: SparkSession) -> None:
    columns = "cluster string, broker_id int, log_dir string, topic string, partition int,"
    columns += " base_offset long, expectations array<string>, segment string"

    def rows(*given: tuple[int, str, str | None]) -> Any:
        values = [("c", 1, "/d", "t", 0, base, [check], text) for base, check, text in given]
        return rows_of(spark, values, columns)

    there = rows((0, "a", None), (1, "a", "x"), (2, "a", "x"), (3, "a", "x"))
    now = rows((0, "a", None), (1, "b", "x"), (2, "a", "y"), (4, "a", "x"))

    differing = now.transform(rows_that_differ(there)).select(*SEGMENT_KEYS).collect()

    assert sorted(row["base_offset"] for row in differing) == [1, 1, 2, 2, 3, 4]
    assert now.transform(rows_that_differ(now)).isEmpty()
