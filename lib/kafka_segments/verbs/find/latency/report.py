"""What ``latency`` prints."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import utc
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once

_NUMBERS = {
    "batches": "batches",
    "p50 ms": "p50_ms",
    "p90 ms": "p90_ms",
    "p99 ms": "p99_ms",
    "max ms": "max_ms",
    "0 ms": "equal_batches",
    "negative": "negative_batches",
    "least ms": "most_negative_ms",
}
_NAMES = ("topic", "hour (UTC)", *(f"{name}>" for name in _NUMBERS))


def print_latency(measured: DataFrame, output: str) -> int:
    """Print latencies; return how many batches have a negative one, and segments are not read."""
    with ExitStack() as caches:
        measured = computed_once(measured, caches)
        findings = [F.sum("negative_batches"), F.sum("unread_segments")]
        negative, unread = measured.agg(*findings).collect()[0]
        by_hour = measured.where("hour_ms IS NOT NULL").drop("unread_segments")
        if output == "table" and by_hour.isEmpty():
            say("no batch v2 with LogAppendTime: the latency cannot be told")
        else:
            ordered = by_hour.orderBy("cluster", "topic", "hour_ms")
            print_result(ordered, output, names=_NAMES, cells=_cells)
        if unread:
            say(
                f"{unread} segments not read to their end, their rest is not measured: see column"
                " damage of table segments, then build again"
            )
        return (negative or 0) + (unread or 0)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row["topic"],
        utc(row["hour_ms"]),
        *(or_dash(row[name]) for name in _NUMBERS.values()),
    )
