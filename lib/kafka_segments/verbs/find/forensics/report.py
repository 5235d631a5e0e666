"""What ``forensics`` prints."""

from collections.abc import Iterable
from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.grouping import counted
from kafka_segments.console.lines import say
from kafka_segments.console.output import MOST_ROWS_SHOWN, print_rows
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import alike_rows, print_result, without_numbers
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.verbs.find.forensics.decide import sum_by_producer
from kafka_segments.verbs.find.forensics.run import Forensics

_NUMBERS = {
    "batches": "batches",
    "future": "future_batches",
    "ahead by (ms)": "largest_ahead_ms",
    "back": "regressions",
    "back by (ms)": "largest_regression_ms",
    "gap (ms)": "largest_step_ms",
    "skew to (ms)": "skew_most_ms",
    "too old": "refused_before_batches",
    "too new": "refused_after_batches",
    "too far": "refused_difference_batches",
}
_NAMES = ("topic-partition", "producer", "unit", *(f"{name}>" for name in _NUMBERS))
_IN_ORDER = ("topic", "partition", "segment_base_offset", "position", "path")


def print_forensics(found: Forensics, output: str) -> int:
    """Print a row for each topic, partition and producer; return how many are findings.

    Segments that were not read to their end are named on stderr, and count where they are
    findings.
    """
    with ExitStack() as caches:
        summed = computed_once(found.judged.transform(sum_by_producer()), caches)
        ordered = summed.orderBy("topic", "partition", "producer_id")
        print_result(ordered, output, names=_NAMES, cells=_cells)
        odd = summed.where("first_refused_offset IS NOT NULL OR unit != 'ms'").count()
    return odd + _print_unread(found.unread, output)


def print_refused(found: Forensics, output: str) -> int:
    """Print each batch that a limit would have refused; return the number of findings."""
    refused = found.judged.where("size(refused_by) > 0")
    print_rows(refused.orderBy(*_IN_ORDER), "csv" if output == "table" else output)
    return int(not refused.isEmpty()) + _print_unread(found.unread, output)


def _print_unread(unread: DataFrame, output: str) -> int:
    with ExitStack() as caches:
        unread = computed_once(unread, caches)
        counts = unread.agg(F.count("*"), F.count_if("is_finding")).collect()[0]
        for row in _lines_of(unread, output):
            say(counted(row["alike"], f"{row['path']}: {row['error']}"))
        if counts[0]:
            say(
                f"{counts[0]} segments or folders not read to their end, {counts[1]} of them"
                " findings: the timestamps in the rest of them are not judged"
            )
        return int(counts[1])


def _lines_of(unread: DataFrame, output: str) -> Iterable[Row]:
    """Return rows of segments with ``alike``: those that are alike are one, but for programs."""
    if output != "table":
        return stream_rows(unread.withColumn("alike", F.lit(1)).orderBy("path"))
    words = (F.col("is_finding"), without_numbers(F.col("error")))
    return alike_rows(unread, *words, order=[F.col("path")]).take(MOST_ROWS_SHOWN)


def _cells(row: Row) -> tuple[str, ...]:
    producer = row["producer_id"]
    return (
        f"{row['topic']}-{row['partition']}",
        "-" if producer is None or producer < 0 else str(producer),
        "-" if row["unit"] is None else f"{row['unit']} ({row['unit_share']:.0%})",
        *(or_dash(row[name]) for name in _NUMBERS.values()),
    )
