"""What ``audit`` prints."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_line
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, console, print_rows
from kafka_segments.console.table_form import made_table, show_table
from kafka_segments.engine.frames.collected import collect_together
from kafka_segments.verbs.judge.audit.decide.consequences import MENDED, NORMAL, RIGHT

_BY_LOG = ("log_dir", "topic", "partition", "base_offset")
_SAME = ("suffix", "verdict", "kind", "consequence", "action")
_LINES = {"found": "message", "consequence": "consequence", "action": "action"}
_COUNTED = ("suffix", "verdict", "kind", "effect")


def print_audit(audits: DataFrame, output: str) -> None:
    """Print findings, notes and counts, or all rows as JSON lines or CSV.

    Findings of one kind, with the same consequence and action, are one, with a count. Notes are of
    files that are not right and need no action.
    """
    ordered = audits.orderBy(*_BY_LOG, "path")
    if output != "table":
        print_rows(ordered, output)
        return
    findings = _alike(audits.where(F.col("is_finding") | _is_note())).limit(MOST_ROWS_SHOWN + 1)
    found = collect_together({"findings": findings, "counts": _counted(audits)})
    console().print("".join(map(_finding, found["findings"][:MOST_ROWS_SHOWN])), end="")
    if len(found["findings"]) > MOST_ROWS_SHOWN:
        print_line("… and more: --output csv prints them all")
    _print_counts(found["counts"])


def _is_note() -> Column:
    """Tell whether a file is worth a word though nobody must act on it."""
    is_mended = F.col("effect").isin(*MENDED) & F.col("verdict").isin(*RIGHT)
    return ~F.col("effect").isin(*NORMAL) & ~is_mended


def _alike(findings: DataFrame) -> DataFrame:
    """Count the findings that differ by their place alone, with the first of each as example."""
    example = F.min(F.struct(*_BY_LOG, "path", "message")).alias("example")
    counted = findings.groupBy(*_SAME, "is_finding").agg(F.count("*").alias("files"), example)
    first = [F.col(f"example.{name}") for name in ("path", "message")]
    in_order = counted.orderBy(F.col("is_finding").desc(), "example")
    return in_order.select(*_SAME, *first, "files", "is_finding")


def _finding(row: Row) -> str:
    """Return the lines of a finding; they are printed by one call, which is quicker."""
    kind = f" ({cell(row['kind'])})" if row["kind"] else ""
    path = cell(row["path"])
    more = f"{row['files']} files, e.g. {path}" if row["files"] > 1 else path
    if not row["is_finding"]:
        said = f"{cell(row['verdict'])}{kind}, {cell(row['consequence'])}"
        return f"note: {more}: {said}; action: {cell(row['action'])}\n"
    lines = [f"{more}: [bold]{cell(row['verdict'])}[/bold]{kind}"]
    lines += (f"  {name}: {cell(row[column])}" for name, column in _LINES.items())
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
        table.add_row(*("" if value is None else cell(str(value)) for value in row))
    show_table(table)
