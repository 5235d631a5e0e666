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
    """Return the struct of a check: as SQL it takes PySpark one call to the JVM, not sixty."""
    row = f"struct({', '.join((*keys, check.column))})"
    examples = f"min_by({row}, CASE WHEN {check.failure} THEN {row} END, {MOST_EXAMPLES})"
    as_json = "row -> to_json(row, map('ignoreNullFields', 'false'))"
    return F.expr(
        f"struct(count({check.column}) AS measured_rows, count_if({check.failure}) AS failed_rows,"
        f" coalesce(transform({examples}, {as_json}), CAST(array() AS array<string>)) AS examples)"
    )
