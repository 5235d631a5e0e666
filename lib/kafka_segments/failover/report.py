"""What ``search failover`` and ``search restore`` print."""

import csv
import sys
from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.tables import or_dash, print_result
from kafka_segments.search.command_options import RESET_OFFSETS
from kafka_segments.spark.held import held
from kafka_segments.spark.row_stream import stream_rows

_HIDDEN = ("cluster", "broker_id", "log_dir")


def print_failover(plan: DataFrame, output: str) -> int:
    """Print a failover plan; return how many partitions someone must look at."""
    with ExitStack() as caches:
        plan = held(plan, caches)
        ordered = plan.orderBy("topic", "partition")
        if output == RESET_OFFSETS:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            for row in stream_rows(ordered.where("to_offset IS NOT NULL")):
                writer.writerow([row["topic"], row["partition"], row["to_offset"]])
        else:
            _print_plan(ordered, output)
        is_short = ~F.col("is_margin_enough")
        is_unknown = F.col("to_offset").isNull() | F.col("problem").isNotNull()
        partitions, short, unknown = plan.agg(
            F.count("*"), F.count_if(is_short), F.count_if(is_unknown)
        ).collect()[0]
        sys.stderr.write(
            f"{partitions} partitions; in {short} a message older than the margin is unread, the"
            f" search goes back to it; {unknown} not known\n"
        )
        return int(short + unknown)


def print_restore(plan: DataFrame, output: str) -> int:
    """Print a restore plan; return for how many logs it is not known."""
    with ExitStack() as caches:
        plan = held(plan, caches)
        _print_plan(plan.orderBy("log_dir", "topic", "partition"), output)
        segments, size_bytes, unknown = plan.agg(
            F.sum("segments_needed"), F.sum("bytes_needed"), F.count("problem")
        ).collect()[0]
        sys.stderr.write(f"{segments or 0} segments needed, {size_bytes or 0} bytes\n")
        return int(unknown)


def _print_plan(rows: DataFrame, output: str) -> None:
    shown = [name for name in rows.columns if name not in _HIDDEN]

    def cells(row: Row) -> list[str]:
        return [or_dash(row[name]) for name in shown]

    print_result(rows, output, names=[name.replace("_", " ") for name in shown], cells=cells)
