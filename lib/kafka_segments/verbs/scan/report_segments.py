"""What ``build`` prints of the segments that it read."""

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, print_rows, utc
from kafka_segments.console.table_form import made_table, show_table
from kafka_segments.console.tables import cluster_column
from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.scan.summary import BuildSummary

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


def print_segments(warehouse: Warehouse, done: BuildSummary, output: str) -> None:
    """Print the segments that a run read."""
    if not done.segments_scanned and output != "csv":  # which has its header at least
        return
    is_of_run = F.col("run_id") == done.run_id if done.segments_scanned else F.lit(False)
    segments = (
        warehouse.read(tables.SEGMENTS)
        .where(is_of_run)
        .drop("producers", "transaction_steps")
        .orderBy("log_dir", "topic", "partition", "base_offset")
    )
    if output == "table":
        _print_table(segments)
    else:
        print_rows(segments, output)


def _print_table(segments: DataFrame) -> None:
    rows = segments.select("cluster", *_SHOWN).take(MOST_ROWS_SHOWN + 1)
    if not rows:
        return
    heading, cluster_of = cluster_column(rows)
    table = made_table(
        *(*heading, "topic-partition", "base offset>", "next offset>", "valid bytes>", "cut off>"),
        *("batches>", "largest timestamp (UTC)", "index>", "time index>", "damage"),
    )
    for row in rows[:MOST_ROWS_SHOWN]:
        damage = row["damage"]
        table.add_row(
            *map(cell, cluster_of(row)),
            cell(f"{row['topic']}-{row['partition']}"),
            *(_number(row[name]) for name in _SHOWN[2:7]),
            utc(row["largest_timestamp_ms"]),
            _number(row["index_entries"]),
            _number(row["time_index_entries"]),
            "" if damage is None else cell(_damage(damage)),
        )
    show_table(table)
    if len(rows) > MOST_ROWS_SHOWN:
        print_line("… and more: table segments has them, --output csv prints them all")


def _damage(damage: Row) -> str:
    return f"{damage['kind']} at byte {damage['position']}: {damage['message']}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
