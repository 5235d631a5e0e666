"""Count for every check of a table the rows that fail it: one row for the whole table."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.engine.tables.windows import whole_log
from kafka_segments.verbs.tell.validate.decide.checks import ROWS_OF_KEY, Check, Suite

MOST_EXAMPLES = 20


def count_failures(suite: Suite) -> Transform:
    """Count for every check of a suite the rows that fail it, and keep some as examples.

    Examples are the failing rows with the least keys, at most 20 of a check.

    Needs: the measured rows of the suite's table.
    Gives: one row: table (string), checked_rows (long), and checks (array of struct, in the order
        of ``all_checks``): measured_rows (long, without those where there is nothing to measure),
        failed_rows (long), examples (array of string: keys and measured value as JSON).
    """

    def transform(measured: DataFrame) -> DataFrame:
        if not suite.has_measured_keys:
            same_key = F.count(F.lit(1)).over(whole_log(suite.keys))
            measured = measured.withColumn(ROWS_OF_KEY, same_key)
        return measured.agg(
            F.lit(suite.table).alias("table"),
            F.count("*").alias("checked_rows"),
            F.array(*(_failures(check, suite.keys) for check in suite.all_checks())).alias(
                "checks"
            ),
        )

    return transform


def _failures(check: Check, keys: tuple[str, ...]) -> Column:
    row, is_failing = F.struct(*keys, check.column), check.fails()
    examples = F.min_by(row, F.when(is_failing, row), MOST_EXAMPLES)
    return F.struct(
        F.count(check.column).alias("measured_rows"),
        F.count_if(is_failing).alias("failed_rows"),
        F.coalesce(F.transform(examples, _as_json), F.array().cast("array<string>")).alias(
            "examples"
        ),
    )


def _as_json(row: Column) -> Column:
    return F.to_json(row, {"ignoreNullFields": "false"})
