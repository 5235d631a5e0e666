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
    console().print("".join(map(_finding, found["findings"][:MOST_ROWS_SHOWN])), end="")
    if len(found["findings"]) > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")
    _print_counts(found["counts"])


def _finding(row: Row) -> str:
    """Return the lines of a finding; all are printed at once, which is quicker."""
    kind = f" ({row['kind']})" if row["kind"] else ""
    lines = [f"{escape(row['path'])}: [bold]{row['verdict']}[/bold]{kind}"]
    lines += (f"  {name}: {escape(row[column])}" for name, column in _LINES.items())
    return "".join(f"{line}\n" for line in lines)


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
