"""What ``divergence`` prints."""

from pyspark.sql import Row
from pyspark.sql import functions as F

from kafka_segments.console.grouping import counted
from kafka_segments.console.lines import say
from kafka_segments.console.output import size_text
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import alike_rows, print_result, without_numbers
from kafka_segments.verbs.copies.divergence.decide.copies import BY_HEADERS, DifferenceKind
from kafka_segments.verbs.copies.divergence.run import Compared

_NAMES = ("log", "from>", "until>", "difference", "copies", "go by", "what was found")


def print_divergence(compared: Compared, output: str) -> int:
    """Print the rows; return how many findings there are.

    A table leaves out equal ranges, and has one row for differences in the same copies that are
    told in the same words, with a count and the first; JSON and CSV have all rows.
    """
    differing = compared.rows.where(F.col("kind") != DifferenceKind.EQUAL)
    found = differing.agg(
        F.count_if("is_finding").alias("findings"),
        F.count_distinct("topic", "partition").alias("logs"),
    ).collect()[0]
    by_log = ("topic", "partition", "row")
    if output != "table":
        print_result(compared.rows.orderBy(*by_log), output, names=_NAMES, cells=_cells)
    elif found["logs"]:
        words = ("kind", "is_finding", "copies", "right_copies", without_numbers(F.col("detail")))
        in_order = (~F.col("is_finding"), *map(F.col, by_log))
        print_result(
            alike_rows(differing, *words, order=in_order), output, names=_NAMES, cells=_cells
        )
    say(
        f"{compared.logs} logs in two copies or more, {compared.logs - found['logs']} of them equal"
        f" from start to end, {compared.alone} in one copy alone; findings: {found['findings']};"
        f" {read_text(compared)}"
    )
    return int(found["findings"])


def read_text(compared: Compared) -> str:
    """Return in words how much was read, as a share of what there is."""
    read, there = compared.bytes_read, compared.bytes_there
    share = f"{100 * read / there:.1f} %" if there else "none"
    said = f"read {size_text(read)}, {share} of {size_text(there)}"
    return f"{said}; {BY_HEADERS}" if compared.is_by_headers else said


def _cells(row: Row) -> tuple[str, ...]:
    detail = row["detail"]
    if row["epoch"] is not None:
        detail = f"last common epoch {row['epoch']}; {detail}"
    return (
        counted(row["alike"], f"{row['topic']}-{row['partition']}"),
        or_dash(row["from_offset"]),
        or_dash(row["until_offset"]),
        row["kind"] if row["is_finding"] else f"({row['kind']})",
        " ".join(row["copies"]),
        " ".join(row["right_copies"]) or "-",
        detail,
    )
