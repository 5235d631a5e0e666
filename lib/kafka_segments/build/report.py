"""What ``build`` prints."""

import sys
from collections.abc import Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.markup import escape
from rich.table import Table as RichTable

from kafka_segments.build.options import BuildOptions
from kafka_segments.build.summary import BuildSummary
from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows, utc
from kafka_segments.index.formats import KAFKAS_OWN
from kafka_segments.storage.index_files import IndexOutput
from kafka_segments.tables import catalog as tables
from kafka_segments.tables.delta import Warehouse

_SHOWN = (
    "topic",
    "partition",
    "base_offset",
    "next_offset",
    "valid_bytes",
    "truncated_bytes",
    "batch_count",
    "largest_timestamp_ms",
    "index_entries",
    "time_index_entries",
    "damage",
)


def segments_of_run(spark: SparkSession, warehouse: str, done: BuildSummary, output: str) -> None:
    """Print the segments that a run read."""
    if not done.segments_scanned and output != "csv":  # which has its header at least
        return
    segments = (
        Warehouse(spark, warehouse)
        .read(tables.SEGMENTS)
        .where(F.col("run_id") == done.run_id)
        .drop("producers", "transaction_steps")
        .orderBy("log_dir", "topic", "partition", "base_offset")
    )
    if output == "table":
        _print_segments(segments)
    else:
        print_rows(segments, output)


def _print_segments(segments: DataFrame) -> None:
    rows = segments.select(*_SHOWN).take(MOST_ROWS_SHOWN + 1)
    if not rows:
        return
    table = RichTable(box=None, pad_edge=False)
    for name in (
        "topic-partition",
        "base offset",
        "next offset",
        "valid bytes",
        "cut off",
        "batches",
        "largest timestamp (UTC)",
        "index",
        "time index",
        "damage",
    ):
        is_text = name in ("topic-partition", "largest timestamp (UTC)", "damage")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in rows[:MOST_ROWS_SHOWN]:
        damage = row["damage"]
        table.add_row(
            escape(f"{row['topic']}-{row['partition']}"),
            *(_number(row[name]) for name in _SHOWN[2:7]),
            utc(row["largest_timestamp_ms"]),
            _number(row["index_entries"]),
            _number(row["time_index_entries"]),
            "" if damage is None else escape(_damage(damage)),
        )
    console().print(table)
    if len(rows) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: table segments has them, --output csv prints them all\n")


def _damage(damage: Row) -> str:
    return f"{damage['kind']} at byte {damage['position']}: {damage['message']}"


def _not_taken(done: BuildSummary) -> Iterator[str]:
    """Yield lines about damage and other files: those to look at, and those any broker leaves."""
    damaged = done.segments_damaged - done.segments_open
    unrecognized = done.files_unrecognized - done.files_left_over
    if damaged:
        yield f"{damaged} damaged segments: column damage of table segments"
    if done.segments_open:
        yield (
            f"{done.segments_open} segments end as a running broker leaves them, torn or"
            " preallocated: no finding, column damage has them"
        )
    if unrecognized:
        yield f"{unrecognized} files or folders not taken: table unrecognized_files"
    if done.files_left_over:
        yield (
            f"{done.files_left_over} files left over, which a broker resolves at its start: no"
            " finding, table unrecognized_files has them"
        )


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _would_write(options: BuildOptions) -> Iterator[str]:
    if options.in_place:
        yield "would write index files beside the segments"
    elif options.index_dir is not None:
        yield f"would write index files below {options.index_dir}, format {options.index_format}"
    yield f"would write the tables of {options.warehouse}"


def summary(done: BuildSummary, options: BuildOptions, *, dry_run: bool) -> None:
    """Print on stderr, in a few lines, what a build did and where its files are."""
    verb = "would read" if dry_run else "read"
    steps = ", ".join(f"{step} {spent:.1f}" for step, spent in done.seconds_by_step.items())
    lines = [
        f"{verb} {done.segments_scanned} of {done.segments_found} segments"
        f" ({done.bytes_scanned} bytes), {done.segments_unchanged} unchanged,"
        f" {done.segments_vanished} vanished, in {done.seconds:.1f} s"
        + (f" ({steps})" if steps else "")
    ]
    if done.segments_found == 0:
        lines.append(f"no segments under {', '.join(options.sources)}")
    lines += _not_taken(done)
    if not dry_run:
        output: IndexOutput | None = options.index_output(done.run_id)
        if output is not None:
            lines.append(f"index files: {output.index_dir or 'beside the segments'}")
            if options.index_format != KAFKAS_OWN:
                note = options.index_format.note
                lines.append(f"their format: {options.index_format}{note and f', {note}'}")
        lines.append(f"tables: {options.warehouse}")
    elif done.segments_scanned:
        lines += _would_write(options)
    sys.stderr.write("\n".join(lines) + "\n")
