"""What ``migrate inventory`` prints."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, print_rows, utc
from kafka_segments.console.table_form import made_table, or_dash, show_table
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.verbs.change.migrate.decide import inventory as decided
from kafka_segments.verbs.change.migrate.inventory.run import Inventory

LEVELS = {
    "cluster": ("cluster",),
    "topic": ("cluster", "topic"),
    "partition": ("cluster", "broker_id", "topic", "partition"),
    "segment": ("cluster", "broker_id", "topic", "partition", "base_offset"),
}
_FORMAT = ("magic", "codec", "timestamp_type")
SEGMENT_ROWS = "segments"
CLIENTS = {
    decided.READS_LEGACY: "messages v0 and v1 come as they lie: a client must decode them. Every"
    " Java client that 4.x lets in (2.1 and later) does; one that knows v2 alone does not.",
    decided.LZ4_V0: "lz4 of v0 has a wrong header checksum by design: a client that verifies it"
    " refuses the set.",
    decided.NO_TIMESTAMPS: "messages without a timestamp: a search by time that meets the segment"
    " by its mtime finds nothing there nor behind it; Kafka Streams' own extractor throws at -1.",
    decided.V2_BESIDE_LEGACY: "batches v2 beside v0 or v1: clients before 0.11 read v2 only through"
    " down-conversion, which 4.0 removed; it refuses all clients before 2.1.",
}
_NUMBERS = {"segments", "batches", "records", "bytes", "by mtime", "count", "magic"}


def print_inventory(inventory: Inventory, output: str, *, by: str, rows: str) -> bool:
    """Print the inventory: as tables for a person, or its rows as JSON lines or CSV.

    Return whether something stands in the way of Kafka 4.
    """
    if output != "table":
        chosen = inventory.segments if rows == SEGMENT_ROWS else inventory.obstacles
        print_rows(chosen.orderBy(*_order(rows)), output)
        return not inventory.obstacles.isEmpty()
    found = collect_together(
        {
            "formats": _sum_formats(inventory.segments, by).limit(MOST_ROWS_SHOWN + 1),
            "ends": _sum_ends(inventory.segments, by).limit(MOST_ROWS_SHOWN + 1),
            "clients": _sum_clients(inventory.segments),
            "obstacles": _sum_obstacles(inventory.obstacles),
        }
    )
    _print_formats(found["formats"], by)
    _print_ends(found["ends"], by)
    _print_clients(found["clients"])
    _print_obstacles(found["obstacles"])
    return bool(found["obstacles"])


def _order(rows: str) -> Sequence[str]:
    last = ("base_offset",) if rows == SEGMENT_ROWS else ("code", "example")
    return ("cluster", "broker_id", "log_dir", "topic", "partition", *last)


def _sum_formats(segments: DataFrame, by: str) -> DataFrame:
    keys = LEVELS[by]
    return (
        segments.select(*keys, F.inline("formats"))
        .groupBy(*keys, *_FORMAT)
        .agg(
            F.count("*").alias("segments"),
            F.sum("batch_count").alias("batches"),
            _sum_if_known("record_count").alias("records"),
            F.sum("bytes").alias("bytes"),
        )
        .orderBy(*keys, *_FORMAT)
    )


def _print_formats(found: Sequence[Row], by: str) -> None:
    keys = LEVELS[by]
    names = (*keys, "magic", "codec", "timestamps", "segments", "batches", "records", "bytes")
    _print(
        found,
        names,
        lambda row: [*(row[name] for name in (*keys, *_FORMAT)), *list(row)[-4:]],
    )


def _sum_if_known(name: str) -> Column:
    return F.when(F.count(name) == F.count("*"), F.sum(name))


def _sum_ends(segments: DataFrame, by: str) -> DataFrame:
    keys = LEVELS[by]
    is_never = F.col("goes") == decided.NEVER
    return (
        segments.groupBy(*keys, "goes")
        .agg(
            F.count("*").alias("segments"),
            F.sum("size_bytes").alias("bytes"),
            F.count_if("relies_on_mtime").alias("by_mtime"),
            F.min("deletes_at_ms").alias("first_ms"),
            F.max("deletes_at_ms").alias("last_ms"),
            F.min(F.when(is_never, F.col("reason"))).alias("reason"),
        )
        .orderBy(*keys, "goes")
    )


def _print_ends(found: Sequence[Row], by: str) -> None:
    keys = LEVELS[by]
    names = (*keys, "goes", "segments", "bytes", "by mtime", "first (UTC)", "last (UTC)", "why not")
    _print(
        found,
        names,
        lambda row: [
            *(row[name] for name in (*keys, "goes", "segments", "bytes", "by_mtime")),
            utc(row["first_ms"]),
            utc(row["last_ms"]),
            row["reason"] or "",
        ],
    )


def _print(
    found: Sequence[Row], names: Sequence[str], cells: Callable[[Row], Sequence[Any]]
) -> None:
    if not found:
        return
    table = made_table(*(f"{name}>" if name in _NUMBERS else name for name in names))
    for row in found[:MOST_ROWS_SHOWN]:
        table.add_row(*(cell(or_dash(value)) for value in cells(row)))
    show_table(table)
    if len(found) > MOST_ROWS_SHOWN:
        print_line("… and more: --output csv prints them all")
    print_line("")


def _sum_clients(segments: DataFrame) -> DataFrame:
    return (
        segments.select("size_bytes", F.explode("clients").alias("code"))
        .groupBy("code")
        .agg(F.count("*").alias("segments"), F.sum("size_bytes").alias("bytes"))
    )


def _print_clients(found: Sequence[Row]) -> None:
    for row in sorted(found, key=lambda row: row["code"]):
        print_line(f"clients: {row['code']} ({row['segments']} segments, {row['bytes']} bytes)")
        print_line(f"  {CLIENTS[row['code']]}")


def _sum_obstacles(obstacles: DataFrame) -> DataFrame:
    return obstacles.groupBy("is_blocking", "code", "obstacle", "action").agg(
        F.sum("count").alias("count"), F.min("example").alias("example")
    )


def _print_obstacles(found: Sequence[Row]) -> None:
    if not found:
        print_line("nothing stands in the way of a 4.x broker")
    for row in sorted(found, key=lambda row: (not row["is_blocking"], row["code"])):
        _print_obstacle(row)


def _print_obstacle(row: Row) -> None:
    mark = "blocks" if row["is_blocking"] else "note"
    print_line(f"{mark}: {row['code']} ({row['count']}, e.g. {row['example']})")
    print_line(f"  {row['obstacle']}")
    print_line(f"  action: {row['action']}")
