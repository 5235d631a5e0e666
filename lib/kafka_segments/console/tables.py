"""Tables on the terminal: as many rows as a person reads, and a line where there are more."""

import sys
from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame, Row
from rich.markup import escape
from rich.table import Table

from kafka_segments.console.output import MOST_ROWS_SHOWN, console, print_rows

Cells = Callable[[Row], Iterable[str]]


def print_result(rows: DataFrame, output: str, *, names: Iterable[str], cells: Cells) -> list[Row]:
    """Print all rows as JSON lines or CSV, or the first ones as a table; return these.

    Args:
        rows: in the order in which they are printed.
        output: ``table``, ``json`` or ``csv``.
        names: headings of the table, as for ``made_table``.
        cells: returns the table's cells of a row, one for each heading.
    """
    if output != "table":
        print_rows(rows, output)
        return []
    found = rows.take(MOST_ROWS_SHOWN + 1)
    table = made_table(*names)
    for row in found[:MOST_ROWS_SHOWN]:
        table.add_row(*map(escape, cells(row)))
    print_table(table, len(found))
    return found[:MOST_ROWS_SHOWN]


def made_table(*names: str) -> Table:
    """Return an empty table. A heading that ends in ``>`` stands over numbers."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        is_number = name.endswith(">")
        table.add_column(
            name.rstrip(">"), justify="right" if is_number else "left", overflow="fold"
        )
    return table


def print_table(table: Table, found: int) -> None:
    """Print a table, and a line that says so where more rows were found than it has."""
    console().print(table)
    if found > MOST_ROWS_SHOWN:
        sys.stdout.write("… and more: --output csv prints them all\n")


def or_dash(value: object) -> str:
    """Return the text of a value, and a dash for None."""
    return "-" if value is None else str(value)
