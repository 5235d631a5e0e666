"""What ``lag`` prints."""

import sys

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.output import duration
from kafka_segments.console.tables import or_dash, print_result
from kafka_segments.lag.decide import BEHIND, UP_TO_DATE

_ORDER = ("cluster", "group_id", "topic", "partition")
_NAMES = ("group", "topic-partition", "committed>", "end>", "behind>", "time behind>", "status")
_NUMBERS = ("committed_offset", "end_offset", "offset_lag")


def print_lag(lags: DataFrame, output: str) -> int:
    """Print lags; return how many commits are neither up to date nor simply behind."""
    lags = lags.persist()
    try:
        order = [F.desc_nulls_last("time_lag_ms")] if output == "table" else []
        print_result(lags.orderBy(*order, *_ORDER), output, names=_NAMES, cells=_cells)
        found = lags.where(~F.col("status").isin(UP_TO_DATE, BEHIND)).count()
        sys.stderr.write(f"{lags.count()} commits, {found} that someone must look at\n")
        return found
    finally:
        lags.unpersist()


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row["group_id"],
        f"{row['topic']}-{row['partition']}",
        *(or_dash(row[name]) for name in _NUMBERS),
        _time_lag(row),
        _note(row),
    )


def _time_lag(row: Row) -> str:
    lag_ms: int | None = row["time_lag_ms"]
    if lag_ms is None:
        return "-"
    least = "more than " if row["is_time_lag_least"] else ""
    sign = "-" if lag_ms < 0 else ""
    return f"{least}{sign}{duration(abs(lag_ms))}"


def _note(row: Row) -> str:
    gone = f": {row['gone_offsets']} offsets" if row["gone_offsets"] else ""
    problem = f": {row['problem']}" if row["problem"] else ""
    return f"{row['status']}{gone}{problem}"
