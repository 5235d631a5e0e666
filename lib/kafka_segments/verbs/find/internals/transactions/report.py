"""What ``internals transactions`` prints."""

from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_line, say
from kafka_segments.console.output import size_text, utc
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.verbs.find.internals.transactions.decide.transactions import (
    HANGING,
    NOT_KNOWN,
    OVERDUE,
)

_OPEN = (
    *("topic-partition", "producer>", "transactional id", "state", "since (UTC)", "offset>"),
    *("held>", "held bytes>", "uncleaned>", "status"),
)


def print_transactions(opened: DataFrame, output: str) -> int:
    """Print open transactions, and commands that end hanging ones; return how many are findings."""
    with ExitStack() as caches:
        opened = computed_once(opened, caches)
        ordered = opened.orderBy("since_ms", "topic", "partition", "producer_id")
        shown = print_result(ordered, output, names=_OPEN, cells=_open)
        found = opened.where(F.col("status").isin(HANGING, OVERDUE, NOT_KNOWN)).count()
        total = opened.count()
    commands = [row["command"] for row in shown if row["command"] is not None]
    for command in commands:
        print_line(f"{command}")
    if commands:
        say(
            "the commands abort what nothing else ends: readers of committed records never get the"
            " records of these transactions, and get on with those behind them"
        )
    say(f"{total} open transactions, {found} that someone must look at")
    return found


def _open(row: Row) -> tuple[str, ...]:
    first = ", holds the last stable offset" if row["is_first"] else ""
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["producer_id"]),
        or_dash(row["transactional_id"]),
        f"{or_dash(row['state'])}{', forgotten' if row['is_forgotten'] else ''}",
        utc(row["since_ms"]),
        str(row["first_offset"]),
        str(row["held_offsets"]),
        size_text(row["held_bytes"]),
        _uncleaned(row),
        row["problem"] or f"{row['status']}{first}",
    )


def _uncleaned(row: Row) -> str:
    """Return how many bytes compaction cannot reach; a dash where there is no compaction."""
    if row["cleanup_policy"] is None:
        return "not known"
    return "-" if row["uncleaned_bytes"] is None else size_text(row["uncleaned_bytes"])
