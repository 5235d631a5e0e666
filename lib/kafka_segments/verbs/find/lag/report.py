"""What ``lag`` prints."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import duration, utc
from kafka_segments.console.prometheus import PROMETHEUS, give_figures
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.verbs.find.lag.decide.commits import (
    NO_FINDINGS,
    NOT_KNOWN,
    NOT_READABLE,
)
from kafka_segments.verbs.find.lag.decide.share import NO_SHARE_FINDINGS
from kafka_segments.verbs.find.lag.report_figures import figures_of, share_figures_of

_ORDER = ("cluster", "group_id", "topic", "partition")
_NAMES = ("group", "topic-partition", "committed>", "end>", "behind>", "time behind>", "status")
_SHARE_NAMES = (
    *("group", "topic-partition", "start>", "done behind it>", "end>", "behind>"),
    *("written (UTC)", "status"),
)
_SHARE_NUMBERS = ("start_offset", "delivery_complete_count", "end_offset", "offset_lag")
_NUMBERS = ("committed_offset", "end_offset", "offset_lag")


def print_lag(lags: DataFrame, output: str) -> int:
    """Print lags; return how many commits are neither up to date nor simply behind."""
    with ExitStack() as caches:
        lags = computed_once(lags, caches)
        found = lags.where(~F.col("status").isin(*NO_FINDINGS)).count()
        if output == PROMETHEUS:
            unknown = lags.where(F.col("status").isin(NOT_KNOWN, NOT_READABLE)).count()
            give_figures(figures_of(lags), findings=found, unknowns=unknown)
        else:
            order = [F.desc_nulls_last("time_lag_ms")] if output == "table" else []
            print_result(lags.orderBy(*order, *_ORDER), output, names=_NAMES, cells=_cells)
        say(f"{lags.count()} commits, {found} that someone must look at")
        return found


def print_share_lag(lags: DataFrame, output: str) -> int:
    """Print lags of share groups; return how many states someone must look at."""
    with ExitStack() as caches:
        lags = computed_once(lags, caches)
        found = lags.where(~F.col("status").isin(*NO_SHARE_FINDINGS)).count()
        if output == PROMETHEUS:
            unknown = lags.where(F.col("status") == NOT_KNOWN).count()
            give_figures(share_figures_of(lags), findings=found, unknowns=unknown)
        else:
            order = [F.desc_nulls_last("offset_lag")] if output == "table" else []
            ordered = lags.orderBy(*order, *_ORDER)
            print_result(ordered, output, names=_SHARE_NAMES, cells=_share_cells)
        say(f"{lags.count()} share partitions, {found} that someone must look at")
        return found


def _share_cells(row: Row) -> tuple[str, ...]:
    return (
        row["group_id"],
        f"{row['topic']}-{row['partition']}",
        *(or_dash(row[name]) for name in _SHARE_NUMBERS),
        utc(row["state_ms"]),
        row["problem"] or row["status"],
    )


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
    if row["status"] == NOT_KNOWN:
        return str(row["problem"])
    problem = f": {row['problem']}" if row["problem"] else ""
    return f"{row['status']}{gone}{problem}"
