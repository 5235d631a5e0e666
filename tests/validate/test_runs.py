"""Which run the rows of a warehouse are those of: moments of runs do not tell it alone."""

import datetime as dt

import pytest
from pyspark.sql import SparkSession

from kafka_segments.verbs.tell.validate.decide.measure_others import measure_runs

MOMENT = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
BEFORE = MOMENT - dt.timedelta(days=1)
RUNS = {
    "of-its-own-source": (MOMENT, ["/b"], 1),
    "first-try": (MOMENT, ["/a"], 5),
    "cleared": (MOMENT, ["/a"], 2),
    "backfill": (BEFORE, ["/a"], 3),
}
"""When each began, by ``--now-ms``; its sources, and the segments that it found."""


@pytest.mark.parametrize(
    ("last_run", "missing"),
    [
        ("cleared", {"cleared": 0, "of-its-own-source": 0}),
        ("first-try", {"first-try": 3, "of-its-own-source": 0}),
        ("backfill", {"backfill": 1, "of-its-own-source": 0}),
        ("of-its-own-source", {"of-its-own-source": 0}),  # which of two tries came last?
        (None, {"of-its-own-source": 0}),
    ],
)
def test_rows_are_those_of_the_run_that_was_written_last(
    spark: SparkSession, last_run: str | None, missing: dict[str, int]
) -> None:
    told = [
        (run_id, "build", sources, at, at, found, found, 0, 0)
        for run_id, (at, sources, found) in RUNS.items()
    ]
    runs = spark.createDataFrame(
        told,
        "run_id string, command string, sources array<string>, started_at timestamp,"
        " finished_at timestamp, segments_found long, segments_scanned long,"
        " segments_unchanged long, segments_damaged long",
    )
    segments = spark.createDataFrame([("/a/t-0/0.log",), ("/a/t-1/0.log",), ("/b/t-0/0.log",)])

    measured = runs.transform(measure_runs(segments.toDF("path"), last_run=last_run)).collect()

    found = {row["run_id"]: row["rows_missing"] for row in measured}
    assert {name: rows for name, rows in found.items() if rows is not None} == missing
