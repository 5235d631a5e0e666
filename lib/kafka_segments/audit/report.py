"""What ``audit`` prints."""

import sys
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from rich.markup import escape

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows
from kafka_segments.console.tables import made_table
from kafka_segments.spark.collected import collect_together
from kafka_segments.tables import columns as F

_SHOWN = ("path", "verdict", "kind", "message", "consequence", "action")
_LINES = {"found": "message", "consequence": "consequence", "action": "action"}
_COUNTED = ("suffix", "verdict", "kind", "effect")


def print_audit(audits: DataFrame, output: str) -> None:
    """Print findings and counts, or all rows as JSON lines or CSV."""
    ordered = audits.orderBy("log_dir", "topic", "partition", "base_offset", "path")
    if output != "table":
        print_rows(ordered, output)
        return
    findings = ordered.where("is_finding").select(*_SHOWN).limit(MOST_ROWS_SHOWN + 1)
    found = collect_together({"findings": findings, "counts": _counted(audits)})
    for row in found["findings"][:MOST_ROWS_SHOWN]:
        _print_finding(row)
    if len(found["findings"]) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
    _print_counts(found["counts"])


def _print_finding(row: Row) -> None:
    kind = f" ({row['kind']})" if row["kind"] else ""
    console().print(f"{escape(row['path'])}: [bold]{row['verdict']}[/bold]{kind}")
    for name, column in _LINES.items():
        console().print(f"  {name}: {escape(row[column])}")


def _counted(audits: DataFrame) -> DataFrame:
    """Count how many files have which verdict and consequence."""
    counted = audits.groupBy(*_COUNTED).agg(
        F.count("*").alias("files"), F.count_if("is_finding").alias("findings")
    )
    return counted.orderBy(*_COUNTED)


def _print_counts(counted: Sequence[Row]) -> None:
    table = made_table("suffix", "verdict", "kind", "consequence", "files>", "findings>")
    for row in counted:
        table.add_row(*("" if value is None else str(value) for value in row))
    console().print(table)
