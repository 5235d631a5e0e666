"""What ``search`` prints."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_csv, say
from kafka_segments.console.log_options import RESET_OFFSETS
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.output import MOST_ROWS_SHOWN, utc
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.engines import persisted_if_many
from kafka_segments.engine.frames.local_rows import stream_rows

_ORDER = ("log_dir", "topic", "partition", "target_ms", "question")
_NAMES = ("topic-partition", "asked", "asked (UTC)", "Kafka's>", "true>", "its time (UTC)", "note")


def print_search(answers: DataFrame, output: str) -> int:
    """Print answers; return how many are not the true ones, or not known."""
    with ExitStack() as caches:
        answers = persisted_if_many(answers, caches)
        shown: list[Row] = []
        if output == RESET_OFFSETS:
            _print_reset_offsets(answers)
        else:
            shown = print_result(answers.orderBy(*_ORDER), output, names=_NAMES, cells=_cells)
        is_all = 0 < len(shown) < MOST_ROWS_SHOWN
        counts = _counts_of(shown) if is_all else _counts(answers)
    say(
        f"{counts.answers} answers, {counts.differences} where Kafka's is not the true one,"
        f" {counts.problems} not known; {counts.bytes_read} bytes of log read"
    )
    return counts.problems + counts.differences


class _Counts(NamedTuple):
    answers: int
    differences: int
    problems: int
    bytes_read: int


def _counts(answers: DataFrame) -> _Counts:
    found = answers.agg(
        F.count("*"),
        F.count("difference"),
        F.count("problem"),
        F.coalesce(F.sum("bytes_read"), F.lit(0)),
    )
    return _Counts(*found.collect()[0])


def _counts_of(answers: Sequence[Row]) -> _Counts:
    """Return the counts of answers that Python has, without asking Spark once more."""
    return _Counts(
        answers=len(answers),
        differences=sum(row["difference"] is not None for row in answers),
        problems=sum(row["problem"] is not None for row in answers),
        bytes_read=sum(row["bytes_read"] for row in answers),
    )


def _cells(row: Row) -> tuple[str, ...]:
    true_ms = row["true_timestamp_ms"]
    return (
        f"{row['topic']}-{row['partition']}",
        row["question"],
        utc(row["target_ms"]),
        or_dash(row["kafka_offset"]),
        or_dash(row["true_offset"]),
        utc(row["kafka_timestamp_ms"] if true_ms is None else true_ms),
        row["problem"] or row["difference"] or "",
    )


def _print_reset_offsets(answers: DataFrame) -> None:
    """Print topic,partition,offset lines for ``kafka-consumer-groups --from-file``.

    A partition whose answer is not known is left out, and named on stderr.
    """
    for row in stream_rows(answers.orderBy("topic", "partition")):
        name = f"{row['topic']}-{row['partition']}"
        if row["problem"] is not None:
            say_not_known(f"{name} is left out: {row['problem']}")
            continue
        if row["true_offset"] is None:
            say(f"{name}: no record at or after {row['question']}, its end is given")
        offset = row["log_end_offset"] if row["true_offset"] is None else row["true_offset"]
        print_csv([row["topic"], row["partition"], offset])
