"""What ``search`` prints."""

import csv
import sys

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows, utc
from kafka_segments.spark.row_stream import stream_rows

_ORDER = ("log_dir", "topic", "partition", "target_ms", "question")


def print_answers(answers: DataFrame, output: str) -> int:
    """Print answers; gives how many are not the true ones, or not known."""
    answers = answers.persist()
    try:
        if output == "reset-offsets":
            print_reset_offsets(answers)
        elif output == "table":
            _print_table(answers.orderBy(*_ORDER))
        else:
            print_rows(answers.orderBy(*_ORDER), output)
        return _print_findings(answers)
    finally:
        answers.unpersist()


def _print_findings(answers: DataFrame) -> int:
    found = answers.agg(
        F.count("problem").alias("problems"),
        F.count("difference").alias("differences"),
        F.count("*").alias("answers"),
        F.coalesce(F.sum("bytes_read"), F.lit(0)).alias("bytes_read"),
    ).first()
    if found is None:
        return 0
    sys.stderr.write(
        f"{found['answers']} answers, {found['differences']} where Kafka's is not the true one,"
        f" {found['problems']} not known; {found['bytes_read']} bytes of log read\n"
    )
    return int(found["problems"] + found["differences"])


def _print_table(answers: DataFrame) -> None:
    rows = answers.take(MOST_ROWS_SHOWN + 1)
    table = RichTable(box=None, pad_edge=False)
    for name in ("topic-partition", "asked", "asked (UTC)", "Kafka's", "true", "its time (UTC)"):
        is_number = name in ("Kafka's", "true")
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    table.add_column("note", overflow="fold")
    for row in rows[:MOST_ROWS_SHOWN]:
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            escape(row["question"]),
            utc(row["target_ms"]),
            _offset(row["kafka_offset"]),
            _offset(row["true_offset"]),
            utc(_time(row)),
            escape(row["problem"] or row["difference"] or ""),
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")


def _time(row: Row) -> int | None:
    true: int | None = row["true_timestamp_ms"]
    return row["kafka_timestamp_ms"] if true is None else true


def _offset(offset: int | None) -> str:
    return "-" if offset is None else str(offset)


def print_reset_offsets(answers: DataFrame) -> None:
    """Print topic,partition,offset lines, for ``kafka-consumer-groups --from-file``.

    Of several replicas of a partition the one with the greatest end counts. Partitions whose
    answer is not known are left out, and named on stderr.
    """
    order = Window.partitionBy("topic", "partition").orderBy(
        F.desc("log_end_offset"), "cluster", "broker_id", "log_dir"
    )
    chosen = (
        answers.withColumn("_replica", F.row_number().over(order))
        .where(F.col("_replica") == 1)
        .orderBy("topic", "partition")
    )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in stream_rows(chosen):
        name = f"{row['topic']}-{row['partition']}"
        if row["problem"] is not None:
            sys.stderr.write(f"{name} is left out: {row['problem']}\n")
            continue
        if row["true_offset"] is None:
            sys.stderr.write(f"{name}: no record at or after {row['question']}, its end is given\n")
        offset = row["log_end_offset"] if row["true_offset"] is None else row["true_offset"]
        writer.writerow([row["topic"], row["partition"], offset])
