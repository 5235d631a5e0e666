"""What ``lag --explain`` prints."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import say
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, console, print_text, utc
from kafka_segments.console.table_form import made_table, or_dash, print_table
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import computed_once
from kafka_segments.kafka.text.names import OFFSETS_TOPIC
from kafka_segments.verbs.find.lag.decide.resets import Next, next_in_words
from kafka_segments.verbs.find.lag.decide.whereabouts import Whereabouts

_NAMES = (
    *("topic-partition", "where", "offset>", "committed (UTC)", "gone (UTC)"),
    *("a consumer goes on", "why"),
)
_HISTORY = ("topic-partition", "record>", "written (UTC)", "offset>", "epoch>", "metadata")
_NEXT = (
    *("is_reset", "next_offset", "earliest_offset", "latest_offset"),
    *("read_again", "passed_over", "gone_unread"),
)


def print_explained(found: DataFrame, output: str) -> int:
    """Print where a group's offsets went; return how many someone must look at."""
    with ExitStack() as caches:
        found = computed_once(found, caches).orderBy("cluster", "topic", "partition")
        if output == "table":
            for line in _heads(found):
                print_text(line)
            console().print()
        shown = print_result(found, output, names=_NAMES, cells=_cells)
        if shown:
            _print_history(shown)
        is_well = (F.col("where") == Whereabouts.COMMITTED) & F.coalesce(
            ~F.col("is_reset"), F.lit(False)
        )
        count = found.where(~is_well & (F.col("where") != Whereabouts.NEVER)).count()
        say(f"{found.count()} partitions, {count} that someone must look at")
        return count


def _heads(found: DataFrame) -> Iterator[str]:
    """Yield a line about the group in each cluster."""
    names = ("cluster", "group_id", "group_state", "group_state_ms", "offsets_partition")
    complete = ("complete_from_offset", "complete_from_ms")
    for row in found.select(*names, *complete).distinct().orderBy("cluster").collect():
        state = row["group_state"] or "nothing but commits"
        since = "" if row["group_state_ms"] is None else f" since {utc(row['group_state_ms'])}"
        whole, whole_ms = row["complete_from_offset"], utc(row["complete_from_ms"])
        left = "all of it was compacted"
        if whole is not None:
            left = "nothing of it was compacted" if not whole else ""
            left = left or f"what lies before offset {whole} ({whole_ms}) was compacted"
        cluster = f" of cluster {row['cluster']}" if row["cluster"] else ""
        yield (
            f"group {row['group_id']}{cluster}: {state}{since};"
            f" {OFFSETS_TOPIC}-{row['offsets_partition']}: {left}"
        )


def _cells(row: Row) -> tuple[str, ...]:
    log = f"; log: {row['log_problem']}" if row["log_problem"] else ""
    return (
        f"{row['topic']}-{row['partition']}",
        row["where"],
        or_dash(row["committed_offset"]),
        utc(row["committed_ms"]),
        utc(row["gone_ms"]),
        next_in_words(Next(*(row[name] for name in _NEXT))),
        f"{row['why']}{log}".removeprefix("; "),
    )


def _print_history(rows: Sequence[Row]) -> None:
    """Print the last records of each partition."""
    lines = list(chain.from_iterable(map(_history, rows)))
    table = made_table(*_HISTORY)
    for line in lines[:MOST_ROWS_SHOWN]:
        table.add_row(*map(cell, line))
    console().print()
    print_table(table, len(lines))


def _history(row: Row) -> Iterator[tuple[str, ...]]:
    for one in row["commits"]:
        yield (
            f"{row['topic']}-{row['partition']}",
            str(one["record_offset"]),
            utc(one["record_ms"]),
            "deleted" if one["committed_offset"] is None else str(one["committed_offset"]),
            or_dash(one["leader_epoch"]),
            one["metadata"] or "",
        )
