"""What ``search failover`` and ``search restore`` print."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_csv, say
from kafka_segments.console.log_options import RESET_OFFSETS
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import stream_rows

_HIDDEN = ("cluster", "broker_id", "log_dir")


def print_failover(plan: DataFrame, output: str) -> int:
    """Print a failover plan; return how many partitions someone must look at."""
    with ExitStack() as caches:
        plan = computed_once(plan, caches)
        ordered = plan.orderBy("topic", "partition")
        if output == RESET_OFFSETS:
            _print_reset_offsets(ordered)
        else:
            _print_plan(ordered, output)
        is_short = ~F.col("is_margin_enough")
        is_unknown = F.col("to_offset").isNull() | F.col("problem").isNotNull()
        partitions, short, unknown = plan.agg(
            F.count("*"), F.count_if(is_short), F.count_if(is_unknown)
        ).collect()[0]
        say(
            f"{partitions} partitions; in {short} of the {partitions - unknown} that are known a"
            " message older than the margin is unread, the search goes back to it;"
            f" {unknown} not known"
        )
        return int(short + unknown)


def _print_reset_offsets(plan: DataFrame) -> None:
    """Print topic,partition,offset lines; name on stderr what is not known, and left out."""
    for row in stream_rows(plan):
        if row["problem"] is not None:
            say_not_known(f"{row['topic']}-{row['partition']} is left out: {row['problem']}")
        elif row["to_offset"] is not None:
            print_csv([row["topic"], row["partition"], row["to_offset"]])


def print_restore(plan: DataFrame, output: str) -> int:
    """Print a restore plan; return for how many logs it is not known."""
    with ExitStack() as caches:
        plan = computed_once(plan, caches)
        _print_plan(plan.orderBy("log_dir", "topic", "partition"), output)
        segments, size_bytes, known, unknown = plan.agg(
            F.sum("segments_needed"),
            F.sum("bytes_needed"),
            F.count("segments_needed"),
            F.count("problem"),
        ).collect()[0]
        left_out = f" of {known} logs; {unknown} logs with a problem" if unknown else ""
        say(f"{segments or 0} segments needed, {size_bytes or 0} bytes{left_out}")
        return int(unknown)


def _print_plan(rows: DataFrame, output: str) -> None:
    shown = [name for name in rows.columns if name not in _HIDDEN]

    def cells(row: Row) -> list[str]:
        return [or_dash(row[name]) for name in shown]

    print_result(rows, output, names=[name.replace("_", " ") for name in shown], cells=cells)
