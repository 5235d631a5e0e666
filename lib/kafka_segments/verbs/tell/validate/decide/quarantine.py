"""Decide which segments are quarantined."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import SEGMENT_KEYS, Transform
from kafka_segments.verbs.tell.validate.decide.checks import (
    Severity,
    Suite,
    failed_checks,
    fails_any,
)


def quarantining(suite: Suite) -> list[tuple[str, str]]:
    """Return table and name of the checks whose failing rows are segments to quarantine."""
    if suite.keys != SEGMENT_KEYS:
        return []
    return [(suite.table, check.name) for check in suite.checks if check.severity is Severity.FATAL]


def failing_segments(measured: Mapping[str, DataFrame], suites: Sequence[Suite]) -> DataFrame:
    """Return the segments that fail a fatal check of a suite whose rows are segments.

    Needs: ``measured``: the measured columns of each suite's table, by its name.
    Gives: ``SEGMENT_KEYS`` and ``expectations`` (the names of the failed checks, as
        ``<table>.<check>``, sorted).
    """
    parts = []
    for suite in suites:
        if quarantining(suite):
            failing = measured[suite.table].where(fails_any(suite.checks, Severity.FATAL))
            names = F.explode(failed_checks(suite.checks, Severity.FATAL))
            named = failing.select(*SEGMENT_KEYS, names.alias("_name"))
            expectation = F.concat_ws(".", F.lit(suite.table), "_name")
            parts.append(named.select(*SEGMENT_KEYS, expectation.alias("expectation")))
    together = reduce(DataFrame.unionByName, parts)
    return together.groupBy(*SEGMENT_KEYS).agg(
        F.sort_array(F.collect_set("expectation")).alias("expectations")
    )


def with_whole_rows(segments: DataFrame) -> Transform:
    """Add ``segment``: the rows of a failing segment, as a JSON array.

    Needs: ``SEGMENT_KEYS``; ``segments``: rows of table ``segments``.
    """
    keys = list(SEGMENT_KEYS)

    def transform(failing: DataFrame) -> DataFrame:
        rows = segments.join(failing.select(*keys), keys, how="left_semi")
        whole = rows.groupBy(*keys).agg(
            F.to_json(F.collect_list(F.struct(*rows.columns))).alias("segment")
        )
        # By its size alone Spark would broadcast what may be the whole table, as text.
        return failing.join(whole.hint("merge"), keys, how="left")

    return transform


def rows_that_differ(there: DataFrame) -> Transform:
    """Return which segments are quarantined anew, for other reasons, as other rows, or no more.

    Needs: ``SEGMENT_KEYS``, expectations and segment; ``there``: the same, of the rows until now.
    Gives: the same columns.
    """
    columns = [*SEGMENT_KEYS, "expectations", "segment"]

    def transform(quarantined: DataFrame) -> DataFrame:
        sides = quarantined.select(*columns, F.lit(1).alias("_side")).unionByName(
            there.select(*columns, F.lit(-1).alias("_side"))
        )
        return sides.groupBy(*columns).agg(F.sum("_side").alias("_side")).where("_side != 0")

    return transform
